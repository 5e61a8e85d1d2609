"""Text: from documents to sparse vectors of terms that have names."""

from models.text.analyzer import Analyzer, AnalyzerParameters
from models.text.documents import FieldedDocument, TextDocument
from models.text.features import TextFeatures, TextFeaturesParameters

__all__ = [
    "Analyzer",
    "AnalyzerParameters",
    "FieldedDocument",
    "TextDocument",
    "TextFeatures",
    "TextFeaturesParameters",
]
