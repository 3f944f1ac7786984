"""Data of any kind as a table: read, typed, encoded, conditioned."""
