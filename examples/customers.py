"""
Customers: segments of credit applicants, for new ones too
==========================================================

690 people applied for a credit card. Fifteen columns, names taken away by the bank, some values missing. A marketing
department wants segments: which, what makes them, how to assign tomorrow's applicants, whether the mix has changed.
Whether the card was granted is not used for fitting. The table is "Credit Approval" of the UCI Machine Learning
Repository (CC BY 4.0).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ilk

TABLE = Path(__file__).parents[1] / "tests" / "data" / "credit_approval.csv"


def main() -> None:
    people = pd.read_csv(TABLE)
    known, fresh = people.iloc[:600], people.iloc[600:].reset_index(drop=True)
    result = ilk.cluster(known, truth="target")
    print(result)

    stable = [group for group in result.groups if (group.stability or 0) >= 0.75]
    print(
        "\nSegments with a stability (mean Jaccard over resamples) of at least 0.75: "
        f"{', '.join(g.letter for g in stable) or 'none'}."
    )
    print("Only of these should a campaign be made; the others are listed so that nobody finds them twice.\n")

    granted = known["target"] == "+"
    letter = np.array(result.model.letters)[result.labels]
    print("Cards granted in each segment (a column that the model has not seen):")
    for group in result.groups:
        here = letter == group.letter
        print(
            f"  {group.letter} {group.name:<40.40} {here.sum():>4} people, {granted[here].mean():.0%} granted"
        )

    placed = result.assign(fresh.drop(columns="target"))
    print("\nThe next 90 applicants, assigned one by one:")
    print(placed.head(5).to_string())
    before, after = (
        pd.Series(letter).value_counts(normalize=True),
        placed["group"].value_counts(normalize=True),
    )
    moved = float((before - after.reindex(before.index, fill_value=0)).abs().sum() / 2)
    print(f"\n{moved:.0%} of them would have to change segments for the mix to be that of the first 600.")
    print(f"{int((placed['novelty'] > 0.99).sum())} are more unusual than 99 % of the first 600.")

    _, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    ilk.ProfileDisplay.from_result(result, ax=left)
    shares = [granted[letter == group.letter].mean() for group in result.groups]
    right.bar([group.letter for group in result.groups], shares)
    right.set(xlabel="segment", ylabel="share of cards granted")
    plt.show()


if __name__ == "__main__":
    main()
