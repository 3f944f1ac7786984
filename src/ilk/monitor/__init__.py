"""A model or a run against later rows: drift, and two labellings compared."""
