"""`ilk.cluster` as a step of a scikit-learn pipeline."""
