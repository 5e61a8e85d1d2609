"""Parameters of text analysis."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from models.text.languages import Stemmer, StopWords
from models.text.tokens import MAX_LENGTH

MAX_NGRAM = 8


class AnalyzerParameters(BaseModel):
    """How a text is split into terms. A token is a maximal run of letters and digits."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    unit: Literal["word", "character"] = "word"
    """Unit of the n-grams: words, or the characters of each word with a space at both ends."""

    unsegmented: Literal["bigrams", "none"] = "bigrams"
    """With the unit `word`, how scripts that do not separate words by spaces are split (Chinese, Japanese,
    Thai, Lao, Khmer, Myanmar): into all pairs of adjacent characters, or not at all, so that a clause is one
    token."""

    lowercase: bool = True
    """Convert letters to lower case."""

    drop_numbers: bool = False
    """Drop tokens that only have digits."""

    stop_words: StopWords = "none"
    """Drop the stop words of a language, regardless of case. `auto` uses the language of each document."""

    stemmer: Stemmer = "none"
    """Reduce words to stems, after dropping stop words. `auto` uses the language of each document."""

    min_length: Annotated[int, Field(ge=1, le=100)] = 1
    """Drop tokens with fewer characters, counted before stemming. Bigrams of scripts without spaces stay."""

    max_length: Annotated[int, Field(ge=1, le=1000)] = MAX_LENGTH
    """Split tokens with more characters into tokens of this length."""

    ngrams: tuple[Annotated[int, Field(ge=1, le=MAX_NGRAM)], Annotated[int, Field(ge=1, le=MAX_NGRAM)]] = (
        1,
        1,
    )
    """Minimum and maximum length of n-grams. N-grams of words join adjacent remaining words with a space."""

    @property
    def bigrams(self) -> bool:
        """Whether scripts without spaces are split into bigrams."""
        return self.unit == "word" and self.unsegmented == "bigrams"

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.ngrams[0] > self.ngrams[1]:
            raise ValueError("ngrams must be [minimum, maximum], with the minimum first")
        if self.min_length > self.max_length:
            raise ValueError("min_length must not be greater than max_length")
        return self
