"""Bundled tables. `penguins.csv`: Palmer penguins, CC0; see LICENCE.md beside it."""
