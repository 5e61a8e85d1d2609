"""Parameters of text analysis."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from models.text.languages import TURKIC_LANGUAGES, Stemmer, StopWords
from models.text.tokens import MAX_LENGTH, TokenRules, without_invisible
from models.unicode import normalize

MAX_NGRAM = 8
MAX_STOP_WORDS: Final = 10_000

CHARACTER_MARK: Final = "~"
"""Begins the character n-grams that are terms in addition to words. No word contains it."""

_RESERVED: Final = f">:{CHARACTER_MARK}"
"""Characters that begin or end the prefix of a term."""

NgramRange = tuple[Annotated[int, Field(ge=1, le=MAX_NGRAM)], Annotated[int, Field(ge=1, le=MAX_NGRAM)]]


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class StopWordList(_Parameters):
    """Stop words of your own."""

    words: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=MAX_LENGTH)], ...],
        Field(min_length=1, max_length=MAX_STOP_WORDS),
    ]
    """Words to drop, regardless of case. Entries are split into words like texts: `don't` into `don` and
    `t`."""

    include: StopWords = "none"
    """Stop words to drop, too."""


class TokenCharacters(_Parameters):
    """Characters other than letters and digits that belong to tokens. A character is in at most one set."""

    inside: Annotated[str, Field(max_length=32)] = ""
    """Characters that belong to a token if they are between two letters or digits: with `-.@`, `e-mail`,
    `v1.2` and `ann@example.org` are tokens, and the full stop after a sentence is not part of one."""

    anywhere: Annotated[str, Field(max_length=32)] = ""
    """Characters that are like letters: with `+#`, `c++`, `#1` and `+` are tokens."""

    @field_validator("inside", "anywhere")
    @classmethod
    def _check_characters(cls, characters: str) -> str:
        for character in characters:
            if character in _RESERVED:
                raise ValueError(f"{character!r} has a meaning in the names of terms; remove it")
            if character.isalnum() or unicodedata.category(character)[0] not in "PS":
                raise ValueError(f"{character!r} is no punctuation mark or symbol; remove it")
            if normalize(character) != character or without_invisible(character) != character:
                raise ValueError(
                    f"{character!r} does not occur in normalized text; use {normalize(character)!r}"
                )
        return characters

    @model_validator(mode="after")
    def _check_sets(self) -> Self:
        both = self.inside + self.anywhere
        for character in both:
            if both.count(character) > 1:
                raise ValueError(f"{character!r} is given twice; remove one")
        return self


class AnalyzerParameters(_Parameters):
    """How a text is split into terms. A token is a maximal run of letters and digits."""

    unit: Literal["word", "character", "spectrum"] = "word"
    """Unit of the n-grams: words; the characters of each word with a space at both ends; or all characters
    of the text, so that n-grams extend across words (`spectrum`, all substrings as in a spectrum kernel). In
    the text of `spectrum`, the remaining words are separated by one space."""

    character_ngrams: NgramRange | None = None
    """With the unit `word`: minimum and maximum length of character n-grams of each word, with a space at
    both ends, that are terms in addition to the words. Their names begin with `~`. They find the parts of
    compounds and other forms of a word. By default, only words are terms."""

    unsegmented: Literal["bigrams", "none"] = "bigrams"
    """With the unit `word`, how scripts that do not separate words by spaces are split (Chinese, Japanese,
    Thai, Lao, Khmer, Myanmar): into all pairs of adjacent characters, or not at all, so that a clause is one
    token."""

    lowercase: bool = True
    """Convert letters to lower case."""

    fold_turkic_i: bool = True
    """With `lowercase`, make the letters I, ı, İ and i of a term one letter, so that Turkish and Azerbaijani
    words match whatever their case and their language. Stemmers and stop words for these languages get the
    correct lower case."""

    token_characters: TokenCharacters = TokenCharacters()
    """Characters other than letters and digits that belong to tokens."""

    drop_numbers: bool = False
    """Drop tokens that only have digits, apart from `token_characters`."""

    stop_words: StopWords | StopWordList = "none"
    """Drop the stop words of a language, regardless of case, or a list of your own. `auto` uses the language
    of each document. `smart` are the 571 English ones of the SMART system."""

    stemmer: Stemmer = "none"
    """Reduce words to stems, after dropping stop words. `auto` uses the language of each document."""

    min_length: Annotated[int, Field(ge=1, le=100)] = 1
    """Drop tokens with fewer characters, counted before stemming. Bigrams of scripts without spaces stay."""

    max_length: Annotated[int, Field(ge=1, le=1000)] = MAX_LENGTH
    """Split tokens with more characters into tokens of this length."""

    ngrams: NgramRange = (1, 1)
    """Minimum and maximum length of n-grams. N-grams of words join adjacent remaining words with a space.
    With the unit `spectrum`, at least 2."""

    @property
    def bigrams(self) -> bool:
        """Whether scripts without spaces are split into bigrams."""
        return self.unit == "word" and self.unsegmented == "bigrams"

    @property
    def stop_list(self) -> str:
        """The name of the list of stop words, apart from own words."""
        return self.stop_words.include if isinstance(self.stop_words, StopWordList) else self.stop_words

    @property
    def by_language(self) -> bool:
        """Whether the analysis depends on the language of a document."""
        return "auto" in (self.stop_list, self.stemmer)

    def is_turkic(self, language: str | None) -> bool:
        """Return whether words are analyzed as Turkish or Azerbaijani ones.

        Args:
            language: the language of a document, for ``auto``.
        """
        names = {language if name == "auto" else name for name in (self.stop_list, self.stemmer)}
        return self.lowercase and self.fold_turkic_i and not names.isdisjoint(TURKIC_LANGUAGES)

    def token_rules(self, language: str | None) -> TokenRules:
        """Return how the texts of a document are split into words.

        Args:
            language: the language of the document, for ``auto``.
        """
        fold: Literal["fold", "none"] = "fold" if self.fold_turkic_i else "none"
        return TokenRules(
            lowercase=self.lowercase,
            max_length=self.max_length,
            bigrams=self.bigrams,
            turkic="lower" if self.is_turkic(language) else fold,
            inside=self.token_characters.inside,
            anywhere=self.token_characters.anywhere,
        )

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        for name, ngrams in (("ngrams", self.ngrams), ("character_ngrams", self.character_ngrams)):
            if ngrams and ngrams[0] > ngrams[1]:
                raise ValueError(f"{name} must be [minimum, maximum], with the minimum first")
        if self.min_length > self.max_length:
            raise ValueError("min_length must not be greater than max_length")
        return self

    @model_validator(mode="after")
    def _check_unit(self) -> Self:
        if self.unit == "spectrum" and self.ngrams[0] == 1:
            raise ValueError("with the unit spectrum, ngrams must be at least 2; try [4, 4]")
        if self.unit != "word" and self.character_ngrams:
            raise ValueError(f"character_ngrams are for the unit word; use ngrams with the unit {self.unit}")
        return self
