"""Where the rows are: memory, disk, Spark, Dask, Ray."""
