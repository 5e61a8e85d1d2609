"""Text analysis: splits documents into terms and counts them."""

from models.text.analyzer import Analyzer, AnalyzerParameters
from models.text.documents import FieldedDocument, TextDocument

__all__ = [
    "Analyzer",
    "AnalyzerParameters",
    "FieldedDocument",
    "TextDocument",
]
