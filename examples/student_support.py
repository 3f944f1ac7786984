"""
Students: support groups when teachers are few
==============================================

120 students of a course wait for support, and a teacher takes at most 42. Which students need the same kind of help?
First the groups are found without looking at the teachers; then the groups get a limit, and those who have to go
elsewhere are the ones who lose least by it. The table is made here: no table of real students is free to come with ilk.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ilk

CAPACITY = 42


def students(seed: int = 4) -> pd.DataFrame:
    """Those who lack mathematics, those who lack time, those who are fine; some answers are missing."""
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

    largest = max(free.groups, key=lambda group: group.rows)
    print(f"\nGroup {largest.letter} has {largest.rows:.0f} students and a teacher takes {CAPACITY}.\n")
    limited = ilk.cluster(table, max_size=CAPACITY)
    print(limited)

    kinds, places = (np.array(result.model.letters)[result.labels] for result in (free, limited))
    print("\nWhere the students of each group go:")
    print(pd.crosstab(pd.Series(kinds, name="group"), pd.Series(places, name="teacher")))

    chance = np.asarray(free.probabilities)
    sure = chance[np.arange(len(table)), free.labels]
    teacher_of = {
        kind: max(set(places), key=lambda place: int((places[kinds == kind] == place).sum()))
        for kind in set(kinds)
    }
    moved = places != np.array([teacher_of[kind] for kind in kinds])
    print(f"\n{int(moved.sum())} students go to another teacher than their group:")
    print(
        table[moved]
        .assign(own=kinds[moved], teacher=places[moved], probability=sure[moved].round(2))
        .to_string()
    )
    print(f"\nThe median probability of all students is {np.median(sure):.3f}; those with a low one move.")

    _, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for ax, result, title in zip(axes, (free, limited), ("groups", "teachers"), strict=True):
        ilk.UncertaintyDisplay.from_result(result, ax=ax)
        ax.set_title(title)
    plt.show()


if __name__ == "__main__":
    main()
