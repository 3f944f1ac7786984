"""
Students: support groups when teachers are few
==============================================

120 students of a course wait for support, and a teacher takes at most 25 at a time. Which students need the same kind
of help? First the kinds are found without looking at the rooms; then the groups get a limit, and what the limit costs
is told. The table is made here: no table of real students is free to come with ilk.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import ilk

CAPACITY = 25


def students(seed: int = 4) -> pd.DataFrame:
    """Those who lack mathematics, those who lack time, those who are fine; some answers are blank."""
    draws = np.random.default_rng(seed)
    kind = np.repeat(["mathematics", "time", "fine"], [46, 34, 40])
    maths = {"mathematics": 35, "time": 68, "fine": 78}
    hours = {"mathematics": 9, "time": 3, "fine": 10}
    works = {"mathematics": 0.2, "time": 0.9, "fine": 0.25}
    school = {"mathematics": [0.6, 0.2, 0.2], "time": [0.3, 0.4, 0.3], "fine": [0.1, 0.5, 0.4]}
    table = pd.DataFrame(
        {
            "maths_test": [draws.normal(maths[k], 8) for k in kind],
            "hours_a_week": [max(0.5, draws.normal(hours[k], 1.8)) for k in kind],
            "has_a_job": np.where(draws.random(len(kind)) < [works[k] for k in kind], "yes", "no"),
            "school": [draws.choice(["evening", "general", "technical"], p=school[k]) for k in kind],
        }
    ).round(1)
    table.loc[draws.random(len(kind)) < 0.05, "maths_test"] = np.nan
    return table


def main() -> None:
    table = students()
    free = ilk.cluster(table)
    print("Without a limit:\n")
    print(free)

    largest = max(group.rows for group in free.groups)
    rooms = -(-len(table) // CAPACITY)
    print(
        f"\nThe largest group has {largest:.0f} students and a teacher takes {CAPACITY}: {rooms} groups are needed.\n"
    )
    limited = ilk.cluster(table, k=rooms, max_size=CAPACITY)
    print(limited)

    print("\nWhere the students of each kind go:")
    kinds = np.array(free.model.letters)[free.labels]
    places = np.array(limited.model.letters)[limited.labels]
    print(pd.crosstab(pd.Series(kinds, name="kind"), pd.Series(places, name="support group")))
    shares = [
        (kinds[places == letter] == kind).mean() for letter in np.unique(places) for kind in np.unique(kinds)
    ]
    whole = np.max(np.reshape(shares, (len(np.unique(places)), -1)), axis=1)
    print(f"\nOn average {whole.mean():.0%} of a support group need the same kind of help.")
    print("No group is larger than", int(np.unique(places, return_counts=True)[1].max()), "students.")


if __name__ == "__main__":
    main()
