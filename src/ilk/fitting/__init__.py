"""How parameters are found: starts, the loop, the finished fit."""
