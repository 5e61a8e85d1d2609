"""Text analysis: splits documents into terms and counts them."""

from models.text.analyzer import Analyzer
from models.text.documents import FieldedDocument, TextDocument
from models.text.parameters import AnalyzerParameters
from models.text.vocabulary import Vocabulary

__all__ = [
    "Analyzer",
    "AnalyzerParameters",
    "FieldedDocument",
    "TextDocument",
    "Vocabulary",
]
