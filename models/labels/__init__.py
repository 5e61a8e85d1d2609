"""Labels: their order, the label tree, label sets as a matrix, and rankings."""

from models.labels.tree import LabelTree

__all__ = [
    "LabelTree",
]
