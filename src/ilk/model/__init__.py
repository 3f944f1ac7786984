"""A fitted model on its own: assigning rows, saving, loading; which families can be saved."""
