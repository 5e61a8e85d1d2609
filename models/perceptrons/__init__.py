"""Perceptrons: one for each label (MMP, binary relevance) or for each pair of labels (MLPP)."""

from __future__ import annotations

from models.perceptrons.binary_relevance import BinaryRelevancePerceptron, BinaryRelevancePerceptronParameters
from models.perceptrons.mlpp import MLPP, MLPPParameters
from models.perceptrons.mmp import MMP, MMPParameters

__all__ = [
    "MLPP",
    "MMP",
    "BinaryRelevancePerceptron",
    "BinaryRelevancePerceptronParameters",
    "MLPPParameters",
    "MMPParameters",
]
