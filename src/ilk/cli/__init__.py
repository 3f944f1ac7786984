"""The command line: options in, a job run, lines out."""
