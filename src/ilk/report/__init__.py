"""What a person sees: facts computed once, printed by the terminal and the page alike."""
