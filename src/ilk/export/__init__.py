"""A model for other programs: its hard assignment as one SELECT, and its parameters as JSON."""
