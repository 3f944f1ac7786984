"""
In a notebook: one table from file to decision
==============================================

All that a result answers to, cell by cell, on the 344 penguins that come with ilk: what the columns are taken for, the
groups, the rows with their groups, pictures, names, another number of groups, new rows, and the same as an estimator.
"""

import sys
import tempfile
from pathlib import Path
from subprocess import run

import pandas as pd

import ilk

TABLE = Path(ilk.__file__).parent / "data" / "penguins.csv"
penguins = pd.read_csv(TABLE)
ilk.columns(penguins, truth="species")  # what every column is taken for, and why

# %%
# The groups. In a notebook a bar shows how far the run is; `progress=True` shows it anywhere.
result = ilk.cluster(penguins, truth="species", ignore="year", progress=True)
result

# %%
result.plot()  # the rows on a map; result.plot("groups") and the other kinds draw every block of the report

# %%
# The rows with their groups, and what is in the groups.
result.to_frame().head()

# %%
result.profile

# %%
result.importance

# %%
# A short rule for a group, and what tells it from the group most like it.
first = result.groups[0]
print(first.rule)
print(
    f"unlike {first.unlike.group}:",
    [(fact.column, fact.category or fact.value) for fact in first.unlike.facts],
)
print(pd.Series(result.letters).value_counts())

# %%
# Names that somebody gives are there in every table, picture and report from then on.
named = result.rename({first.letter: "small females of Adelie"})
named.assign(penguins.head(3))

# %%
# Do five groups put the same rows together? And a table without groups has segments.
other = ilk.cluster(penguins, k=5, truth="species", ignore="year")
print(ilk.compare(named, other))
print(ilk.cluster(penguins[["bill_depth_mm"]].head(60)).segments)

# %%
# A run that `ilk fit` wrote comes back as a result; later rows are held against it.
with tempfile.TemporaryDirectory() as folder:
    run(
        [sys.executable, "-m", "ilk.cli.main", "fit", TABLE, "-q", "-o", f"{folder}/penguins.ilk"], check=True
    )
    loaded = ilk.load(f"{folder}/penguins.ilk")
print(ilk.check(loaded, penguins.tail(100)))

# %%
# The same as an estimator, for pipelines and searches.
model = ilk.Clusterer(random_state=0).fit(penguins.drop(columns=["species", "year"]))
model.predict(penguins.head(5)), model.verdict_.word
