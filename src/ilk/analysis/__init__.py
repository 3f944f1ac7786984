"""From data to a Result: `ilk.cluster` and `ilk.select`."""
