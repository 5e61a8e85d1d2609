"""Weights, compared with literal implementations of the papers' formulas."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.arrays import Floats, Labels
from models.features import TextFeatures, TextFeaturesParameters
from models.mail.fields import MailFields, Part


def features(weighting: str, **options: Any) -> TextFeatures:
    return TextFeatures(
        TextFeaturesParameters.model_validate({"kind": "text", "weighting": weighting, **options})
    )


def literal(weighting: str, training: list[list[str]], document: list[str], terms: list[str]) -> list[float]:
    g = len(training)
    mean_distinct = sum(len(set(d)) for d in training) / g
    row = []
    for term in terms:
        count = document.count(term)
        df = sum(term in d for d in training)
        if count == 0:
            row.append(0.0)
        elif weighting == "binary":
            row.append(1.0)
        elif weighting == "tf":
            row.append(float(count))
        elif weighting == "tfidf":
            row.append(count * log(g / df))
        else:
            mean_count = len(document) / len(set(document))
            tf = (1 + log(count)) / (1 + log(mean_count))
            row.append(log(g / df) * tf / (1.0 - 0.3 + 0.3 * len(set(document)) / mean_distinct))
    return row


documents = st.lists(st.sampled_from("abcdefghij"), max_size=15)


def no_labels(n: int) -> Labels:
    return csr_array(np.zeros((n, 1), dtype=np.int8))


@pytest.mark.parametrize("weighting", ["binary", "tf", "tfidf", "pivoted"])
@settings(max_examples=30, deadline=None)
@given(st.lists(documents, min_size=1, max_size=6).filter(any), documents)
def test_weights_agree_with_the_literal_implementation(
    weighting: str, training: list[list[str]], other: list[str]
) -> None:
    fitted = features(weighting)
    Y = no_labels(len(training))
    X = fitted.fit_transform([" ".join(d) for d in training], Y)
    terms = sorted({term for d in training for term in d})
    assert fitted.names_ == terms
    expected = [literal(weighting, training, d, terms) for d in training]
    np.testing.assert_allclose(X.toarray(), expected, rtol=1e-9, atol=1e-12)
    assert (X.data != 0).all()
    np.testing.assert_allclose(
        fitted.transform([" ".join(other)]).toarray(),
        [literal(weighting, training, other, terms)] if other else np.zeros((1, len(terms))),
        rtol=1e-9,
        atol=1e-12,
    )


def test_document_lengths_include_terms_that_are_not_selected() -> None:
    """The pivot of a document is computed before the selection, in fit and in transform."""
    texts = ["a a b c d", "b", "c c"]
    Y = no_labels(3)
    whole, chosen = (
        features("pivoted"),
        features("pivoted", selection={"kind": "document_frequency", "count": 1}),
    )
    all_terms = whole.fit_transform(texts, Y).toarray()
    one_term = chosen.fit_transform(texts, Y).toarray()
    assert chosen.names_ == ["b"]
    np.testing.assert_allclose(one_term[:, 0], all_terms[:, 1], rtol=1e-12)
    np.testing.assert_array_equal(chosen.transform(texts).toarray(), one_term)


def test_fields_with_small_weights_do_not_cause_negative_weights() -> None:
    class Light:
        language = None

        def learning_parts(self, fields: MailFields) -> list[Part]:
            assert fields.usual
            return [Part("a a a a b", 0.3)]

    pivoted = features("pivoted")
    X = pivoted.fit_raw(pivoted.read([[Light(), "c d"]]), no_labels(2)).toarray()
    mean = (1.2 + 0.3) / 2
    assert X[0].tolist() == pytest.approx(
        [log(2) * (1 + log(1.2)) / mean, log(2) * 0.3 / mean, 0, 0], rel=1e-9
    )


def test_unit_scaling_normalizes_after_selection() -> None:
    fitted = features("tf", scaling="unit", selection={"kind": "document_frequency", "count": 2})
    X: Floats = fitted.fit_transform(["a a b c", "a b", ""], no_labels(3)).toarray()
    np.testing.assert_allclose(X, [[2 / 5**0.5, 1 / 5**0.5], [0.5**0.5, 0.5**0.5], [0, 0]], rtol=1e-12)
