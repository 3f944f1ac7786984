"""Tables larger than memory: read in pieces, packed on disk."""
