"""
Survey classes: how many types of voters sit in the House?
==========================================================

435 members of the US House of 1984 answered sixteen questions with yes or no, and left some open. Which types of
members are there, can they be trusted, and is a missing value an answer? The party is compared afterwards.
The table is "Congressional Voting Records" of the UCI Machine Learning Repository (CC BY 4.0).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ilk

TABLE = Path(__file__).parents[1] / "tests" / "data" / "votes.csv"


def main() -> None:
    votes = pd.read_csv(TABLE)
    result = ilk.cluster(votes, truth="target")
    print(result)

    print("\nThe best model has more classes than there are groups:")
    merge = result.summary()["merge"]
    for level in merge["path"]:
        joined = " with ".join("+".join(str(piece + 1) for piece in pieces) for pieces in level["merged"])
        done = "merged" if level["separation"] < merge["threshold"] else "kept apart"
        print(
            f"  {level['groups']} left: {joined} have a separation of {level['separation']:.2f}, so they are {done}"
        )

    print("\nParty against group; the model has not seen the parties:")
    letter = np.array([*result.model.letters, "-"])[result.labels]
    print(pd.crosstab(votes["target"], letter))

    sure = np.nan_to_num(np.asarray(result.probabilities)).max(axis=1)
    crossed = (letter == "A") & (votes["target"] == "democrat").to_numpy()
    print(
        f"\n{int(crossed.sum())} Democrats vote with group A; their median probability "
        f"({np.median(sure[crossed]):.2f}) is like that of all ({np.median(sure):.2f}).\n"
        "They are no errors of the model but the conservative Democrats of those years."
    )

    _, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    ilk.ProfileDisplay.from_result(result, ax=left)
    ilk.UncertaintyDisplay.from_result(result, ax=right)
    plt.show()


if __name__ == "__main__":
    main()
