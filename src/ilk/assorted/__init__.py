"""The assorted model: mixed columns, each cluster with its own choice of columns."""
