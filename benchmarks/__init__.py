"""ilk and its peers on the same data, from the same start, for the same number of passes, as ratios.

`python -m benchmarks` runs everything, `python -m benchmarks kmeans seeding --quick` a part on small tables.
"""
