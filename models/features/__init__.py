"""Features: convert text documents or named numbers to sparse feature vectors."""

from models.features.numeric import NumericFeatures, NumericFeaturesParameters
from models.features.text import TextFeatures, TextFeaturesParameters

__all__ = [
    "NumericFeatures",
    "NumericFeaturesParameters",
    "TextFeatures",
    "TextFeaturesParameters",
]
