"""Which model: candidates over methods and K, their criteria, and how far the winner can be trusted."""
