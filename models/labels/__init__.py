"""Labels: label order, the label tree, label sets as a matrix, and rankings of labels."""

from models.labels.tree import LabelTree

__all__ = [
    "LabelTree",
]
