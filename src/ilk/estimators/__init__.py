"""The scikit-learn face: one class a method."""
