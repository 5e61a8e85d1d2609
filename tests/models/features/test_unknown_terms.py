"""The share of unknown terms: of one document, and of training documents as if they were held out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models.features import TextFeatures
from models.features.text import TextFeaturesParameters
from models.mail import MailDocument
from models.mail.fields import DEFAULT_FIELDS
from models.text.hashing import HashedVocabulary, column_of
from models.text.parameters import AnalyzerParameters
from models.text.vocabulary import Vocabulary

TEXTS = ["red rose red", "red blue sky", "sky blue rose", "the lonely word", "red red sky", ""]
LABELS = csr_array(np.ones((len(TEXTS), 1), dtype=np.int8))


def features(**options: Any) -> TextFeatures:
    return TextFeatures(TextFeaturesParameters.model_validate({"kind": "text", **options}))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_df": 2},
        {"min_df": 0.3},
        {"analyzer": {"ngrams": [1, 2]}},
        {"analyzer": {"stop_words": "english"}},
        {"analyzer": {"unit": "character", "ngrams": [2, 3]}},
        {"hashing": {"n_features": 2**18}},
    ],
    ids=str,
)
def test_the_share_of_a_training_document_is_that_of_features_without_it(options: dict[str, Any]) -> None:
    fitted = features(**options)
    fitted.fit_transform(TEXTS, LABELS)
    assert fitted.unknown_terms_ is not None
    # A share of documents is of all training documents, also if one is held out.
    others = {**options, "min_df": 2} if options.get("min_df") == 0.3 else options
    for i, text in enumerate(TEXTS):
        without = features(**others)
        without.fit_transform(TEXTS[:i] + TEXTS[i + 1 :], LABELS[1:])
        vector = without.vector(text)
        assert vector is not None
        expected = np.nan if vector.unknown_terms is None else vector.unknown_terms
        np.testing.assert_allclose(fitted.unknown_terms_[i], expected, atol=1e-12)
    assert np.isnan(fitted.unknown_terms_[-1]), "a document without terms"
    assert fitted.unknown_terms_[3] > 0.8, "a document with words of its own"


def test_a_term_that_was_not_selected_is_unknown() -> None:
    fitted = features(selection={"kind": "document_frequency", "count": 1})
    fitted.fit_transform(TEXTS, LABELS)
    assert fitted.names_ == ["red"]
    vector = fitted.vector("red rose sky blue")
    assert vector is not None
    assert vector.unknown_terms == 0.75
    assert fitted.unknown_terms_ is not None
    np.testing.assert_allclose(fitted.unknown_terms_[:3], [1 / 3, 2 / 3, 1.0])


@pytest.mark.parametrize(
    "options",
    [{}, {"stop_words": "english", "stemmer": "porter"}, {"max_length": 4}, {"drop_numbers": True}],
    ids=str,
)
@pytest.mark.parametrize("hashed", [False, True])
def test_the_fast_count_of_known_terms_counts_the_unknown_ones_too(
    options: dict[str, Any], hashed: bool
) -> None:
    parameters = AnalyzerParameters(**options)
    terms = ["invoic", "invoice", "red", "7"]
    columns = np.array(sorted({column_of(term, 2**16) for term in terms}), dtype=np.int64)
    vocabulary = (
        HashedVocabulary(parameters, columns, 2**16)
        if hashed
        else Vocabulary(parameters, terms, DEFAULT_FIELDS)
    )
    for document in (
        "The invoices are red 7 8 and über",
        MailDocument(subject="red invoice", new_text="what is this", quoted_text="red sky the 8"),
        "",
        "the",
    ):
        for _ in range(2):  # the second time, the numbers of the words are cached
            fast, whole = vocabulary.count_one(document, unknown=False), vocabulary.count_one(document)
            assert fast is not None
            assert whole is not None
            assert (fast.unknown, fast.total) == (whole.unknown, whole.total)
            assert whole.unknown == whole.total - whole.counts.sum()


def test_features_of_an_older_model_know_no_share_of_their_training() -> None:
    fitted = features()
    fitted.fit_transform(TEXTS, LABELS)
    restored = features().set_state(fitted.get_state())
    assert restored.unknown_terms_ is None
    vector = restored.vector("red unseen")
    assert vector is not None
    assert vector.unknown_terms == 0.5
