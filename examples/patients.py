"""
Patients: types of heart patients, and when not to trust them
=============================================================

303 patients of the Cleveland clinic, with numbers, yes/no columns, categories and missing values as the doctors wrote
them down. Are there types of patients? The answer comes with a verdict, and here the verdict is a warning. The
diagnosis is not used for fitting. The table is "Heart Disease" of the UCI Machine Learning Repository (CC BY 4.0).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import ilk

TABLE = Path(__file__).parents[1] / "tests" / "data" / "heart_cleveland.csv"


def main() -> None:
    patients = pd.read_csv(TABLE)
    result = ilk.cluster(patients, truth="target", types={"ca": "categorical"})
    print(result)

    print("\nEach group in one rule:")
    for group in result.groups:
        print(f"  {group.letter}: {group.rule}")

    print("\nThe diagnosis within the groups:")
    letter = np.array([*result.model.letters, "-"])[result.labels]
    print(pd.crosstab(letter, patients["target"], normalize="index").round(2))

    print(f"\nVerdict: {result.verdict.word}. {result.verdict.sentence}.")
    if result.verdict.word == "weak":
        print(
            "So these are two ends of one scale of severity rather than two diseases: good for describing the table,\n"
            "not for deciding about a patient near the border. Those with the lowest probability:"
        )
        least = np.asarray(result.probabilities).max(axis=1).argsort()[:3]
        print(patients.loc[least, ["age", "sex", "cp", "thalach", "oldpeak"]].to_string())

    _, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    ilk.UncertaintyDisplay.from_result(result, ax=left)
    ilk.ProfileDisplay.from_result(result, ax=right)
    plt.show()


if __name__ == "__main__":
    main()
