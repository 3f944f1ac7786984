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

    print(
        "\nMore classes have a lower BIC, but no groups that hold in resamples; so each group is one class:"
    )
    for k in range(1, 7):
        found = [candidate.bic for candidate in result.candidates if candidate.k == k and candidate.bic]
        print(f"  K = {k}: " + (f"BIC {min(found):,.0f}" if found else "not fitted"))

    print("\nParty against group; the model has not seen the parties:")
    letter = np.array([*result.model.letters, "-"])[result.labels]
    print(pd.crosstab(votes["target"], letter))

    sure = np.nan_to_num(np.asarray(result.probabilities)).max(axis=1)
    party = votes["target"].to_numpy()
    theirs = pd.Series(letter[party == "republican"]).mode()[0]  # the group of most Republicans
    crossed = (letter == theirs) & (party == "democrat")
    print(
        f"\n{int(crossed.sum())} Democrats vote with group {theirs}; their median probability "
        f"({np.median(sure[crossed]):.2f}) is like that of all ({np.median(sure):.2f}).\n"
        "They are no errors of the model but the conservative Democrats of those years."
    )

    _, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    ilk.ProfileDisplay.from_result(result, ax=left)
    ilk.UncertaintyDisplay.from_result(result, ax=right)
    plt.show()


if __name__ == "__main__":
    main()
