"""What we try to break, and how often: `make torture`. Every input that broke something is kept in `corpus`."""
