"""What is printed in the terminal, made from summaries alone."""
