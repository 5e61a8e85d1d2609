"""Text analysis: from documents to counted terms."""

from models.text.analyzer import Analyzer, AnalyzerParameters
from models.text.documents import FieldedDocument, TextDocument

__all__ = [
    "Analyzer",
    "AnalyzerParameters",
    "FieldedDocument",
    "TextDocument",
]
