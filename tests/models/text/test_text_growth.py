"""Time and memory for a text grow in proportion to its length, with every option of the analyzer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import adversarial
import numpy as np
import pytest
from adversarial import ALPHABETS, LONG, SHORT, check_memory, check_time, distinct_words, factors, repeat
from scipy.sparse import csr_array

from models.features import TextFeatures, TextFeaturesParameters
from models.text.languages import Stemmer, StopWords

SIZE = 5_000
"""Characters of the smallest text. The measured ones have this number and 8 times as many."""

STEMMERS = [name for name in get_args(get_args(Stemmer.__value__)[0]) if name != "none"]
STOP_WORDS = [name for name in get_args(get_args(StopWords.__value__)[0]) if name != "none"]

OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "clauses": {"unsegmented": "none"},
    "case": {"lowercase": False},
    "numbers": {"drop_numbers": True},
    "long words": {"min_length": 100, "max_length": 1000},
    "words of one letter": {"max_length": 1},
    "n-grams of words": {"ngrams": [1, 8]},
    "n-grams of characters": {"unit": "character", "ngrams": [1, 8]},
    "n-grams beside words": {"character_ngrams": [1, 8]},
    "n-grams across words": {"unit": "spectrum", "ngrams": [2, 8]},
    "characters of tokens": {"token_characters": {"inside": ".-@_'", "anywhere": "+#"}, "drop_numbers": True},
    "own stop words": {"stop_words": {"words": ["abc", "e-mail"], "include": "auto"}},
    "n-grams of long words": {"unit": "character", "ngrams": [8, 8], "max_length": 1000, "stemmer": "porter"},
}


def fitted(analyzer: dict[str, Any], **options: Any) -> TextFeatures:
    features = TextFeatures(
        TextFeaturesParameters.model_validate({"kind": "text", "analyzer": analyzer, **options})
    )
    word = "abc" * 40
    features.fit_transform([f"red rose {word}", f"blue sky {word}"], csr_array(np.eye(2, dtype=np.int8)))
    return features


def transform(features: TextFeatures, build: Callable[[int], str], size: int) -> None:
    features.transform([build(size)])


def variants(text: str, length: int) -> str:
    """Return different long words."""
    return " ".join(f"{text[i % 7 :]}{i}" for i in range(length // 1000))


@factors
@pytest.mark.parametrize("weighting", ["tf", "pivoted"])
@pytest.mark.parametrize("options", OPTIONS)
def test_time_grows_with_the_length_of_a_text(options: str, weighting: str, factor: int) -> None:
    features = fitted(OPTIONS[options], weighting=weighting)
    for name, alphabet in ALPHABETS.items():
        check_time(
            f"{options}, {name}", partial(transform, features, partial(repeat, alphabet)), SIZE * factor
        )
    check_time(options, partial(transform, features, distinct_words), SIZE * factor)


@pytest.mark.parametrize(
    ("stemmer", "factor"),
    [
        *((stemmer, SHORT) for stemmer in ("auto", "porter", "german", "arabic")),
        *(pytest.param(stemmer, LONG, marks=pytest.mark.long) for stemmer in STEMMERS),
    ],
)
def test_stemming_takes_linear_time(stemmer: str, factor: int) -> None:
    features = fitted({"stemmer": stemmer, "max_length": 1000})
    for name in ("one word", "sharp s", "combining marks", "vowels", "word ends", "CJK", "capital I"):
        text = repeat(ALPHABETS[name], 2_000)
        check_time(
            f"{stemmer}, {name}",
            partial(transform, features, partial(variants, text)),
            SIZE * factor,
        )
    check_time(stemmer, partial(transform, features, distinct_words), SIZE * factor)


@factors
def test_removing_stop_words_takes_linear_time(factor: int) -> None:
    for stop_words in ("auto", "english", "chinese") if factor == SHORT else STOP_WORDS:
        features = fitted({"stop_words": stop_words})
        check_time(stop_words, partial(transform, features, distinct_words), SIZE * factor)


@pytest.mark.parametrize("options", OPTIONS)
def test_memory_grows_with_the_length_of_a_text(options: str) -> None:
    features = fitted(OPTIONS[options], weighting="pivoted")
    n = 4 * SIZE
    check_memory(options, partial(transform, features, distinct_words), n, n)
    for name in ("one word", "ligature"):
        text = repeat(ALPHABETS[name], n)
        check_memory(
            f"{options}, {name}",
            partial(transform, features, partial(repeat, ALPHABETS[name])),
            n,
            len(text.encode()),
        )


@pytest.mark.long
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("alphabet", ["distinct words", *ALPHABETS])
def test_the_longest_text_takes_limited_memory(options: str, alphabet: str) -> None:
    features = fitted(OPTIONS[options], weighting="pivoted")
    n = 1_000_000
    build = distinct_words if alphabet == "distinct words" else partial(repeat, ALPHABETS[alphabet])
    check_memory(f"{options}, {alphabet}", partial(transform, features, build), n, len(build(n).encode()))


@factors
@pytest.mark.parametrize("alphabet", ["-a", "-", ".-@", "a-", "+", "é-", "手-"])
def test_characters_of_tokens_are_found_in_linear_time(alphabet: str, factor: int) -> None:
    features = fitted(OPTIONS["characters of tokens"])
    check_time(alphabet, partial(transform, features, partial(repeat, alphabet)), SIZE * factor)


@factors
@pytest.mark.parametrize("options", ["defaults", "n-grams of words", "n-grams across words"])
def test_hashing_takes_linear_time(options: str, factor: int) -> None:
    features = fitted(OPTIONS[options], weighting="pivoted", hashing={"n_features": 2**10})
    for name, build in (("words", distinct_words), ("one word", partial(repeat, ALPHABETS["one word"]))):
        check_time(f"hashing, {options}, {name}", partial(transform, features, build), SIZE * factor)


def test_the_measurement_finds_quadratic_time_and_memory() -> None:
    """A check that never fails would prove nothing."""
    with pytest.raises(pytest.fail.Exception, match="takes"):
        check_time("quadratic", lambda n: sum(1 for _ in range(n) for _ in range(n)), 500)
    with pytest.raises(AssertionError, match="bytes of memory"):
        check_memory("much", lambda _: bytearray(adversarial.BASE_BYTES + 2**21), 1, 100)
