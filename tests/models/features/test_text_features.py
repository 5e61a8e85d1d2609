"""Text features: vocabulary, batches, independence from test documents, saved state."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models.arrays import Labels, Matrix
from models.boosting.mp_boost import MPBoostParameters
from models.data.examples import Examples
from models.errors import NotFittedError, UnsuitableDataError
from models.features import TextFeatures, TextFeaturesParameters
from models.mail import Email, MailDocument, read_email
from models.pipeline import Pipeline
from models.serialization.strings import pack_strings, unpack_strings

ENGLISH = {"drop_numbers": True, "stop_words": "english", "stemmer": "porter"}


def features(**options: Any) -> TextFeatures:
    return TextFeatures(TextFeaturesParameters.model_validate({"kind": "text", **options}))


def labels(n: int) -> Labels:
    return csr_array((np.arange(n)[:, None] % 3 == np.arange(3)).astype(np.int8))


def assert_same(a: Matrix, b: Matrix) -> None:
    assert a.shape == b.shape
    for mine, other in ((a.indptr, b.indptr), (a.indices, b.indices), (a.data, b.data)):
        np.testing.assert_array_equal(mine, other)


def corpus(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    vocabulary = [f"w{i}" for i in range(40)] + ["grüße", "счёт", "請求書", "houses", "the"]
    return [" ".join(rng.choice(vocabulary, size=rng.integers(0, 12))) for _ in range(n)]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"weighting": "binary", "analyzer": ENGLISH, "selection": {"kind": "information_gain", "per_label": 4}},
    {"weighting": "pivoted", "selection": {"kind": "rocchio", "per_label": 3}, "scaling": "unit"},
    {
        "weighting": "tf",
        "analyzer": {"ngrams": [1, 2]},
        "selection": {"kind": "document_frequency", "count": 9},
    },
    {"analyzer": {"unit": "character", "ngrams": [2, 3]}},
]


def test_defaults_are_those_of_the_api_contract() -> None:
    dumped = TextFeaturesParameters(kind="text").model_dump()
    assert dumped["weighting"] == "tfidf"
    assert dumped["selection"] == {"kind": "none"}
    assert dumped["scaling"] == "none"


def test_terms_are_in_code_point_order() -> None:
    fitted = features()
    fitted.fit_transform(["zebra Übel apple 10 9", "zebra éclair 東京"], labels(2))
    assert fitted.names_ == sorted(["zebra", "übel", "apple", "10", "9", "éclair", "東京"])


@pytest.mark.parametrize("options", OPTIONS)
def test_batch_sizes_do_not_matter(options: dict[str, Any]) -> None:
    texts, Y = corpus(60), labels(60)
    whole, parted = features(**options), features(**options)

    def once() -> Iterator[Sequence[str]]:
        yield from ([], texts[:1], texts[1:20], [], texts[20:])

    assert_same(whole.fit_transform(texts, Y), parted.fit_raw(parted.read(once()), Y))
    assert whole.names_ == parted.names_
    assert_same(
        whole.transform(texts[:30]),
        csr_array(np.vstack([parted.transform([t]).toarray() for t in texts[:30]])),
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_transform_agrees_with_fit_transform(options: dict[str, Any]) -> None:
    texts = corpus(50)
    fitted = features(**options)
    assert_same(fitted.fit_transform(texts, labels(50)), fitted.transform(texts))


@pytest.mark.parametrize("options", OPTIONS)
def test_transforming_other_documents_has_no_effect(options: dict[str, Any]) -> None:
    texts, others = corpus(50), [*corpus(80, seed=1), "unknown words alone"]
    fitted = features(**options)
    fitted.fit_transform(texts, labels(50))
    before = {name: array.copy() for name, array in fitted.get_state().items()}
    first = fitted.transform(others)
    assert_same(first, fitted.transform(others))
    for name, array in fitted.get_state().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("options", OPTIONS)
def test_the_state_can_be_saved_and_restored(options: dict[str, Any]) -> None:
    texts, others = corpus(50), corpus(20, seed=2)
    fitted = features(**options)
    fitted.fit_transform(texts, labels(50))
    state = fitted.get_state()
    for array in state.values():
        assert array.dtype != np.dtype(object)
        array.flags.writeable = False
    other = features(**options).set_state(state)
    assert other.names_ == fitted.names_
    assert_same(other.transform(others), fitted.transform(others))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_strings_can_be_packed_and_unpacked(strings: list[str]) -> None:
    assert unpack_strings(*pack_strings(strings)) == strings


def test_local_selection_returns_its_candidates() -> None:
    fitted = features(
        weighting="binary", selection={"kind": "information_gain", "policy": "local", "per_label": 2}
    )
    X = fitted.fit_transform(corpus(60), labels(60))
    assert fitted.candidates_ is not None
    assert fitted.candidates_.shape == (X.shape[1], 3)
    assert fitted.candidates_.sum(axis=0).tolist() == [2, 2, 2]


def test_documents_without_known_terms_are_empty_rows() -> None:
    fitted = features()
    X = fitted.fit_transform(["red", "", "blue !!!"], labels(3))
    assert np.diff(X.indptr).tolist() == [1, 0, 1]
    assert fitted.summary_.facts == {"terms": 2, "features": 2}
    assert fitted.summary_.warnings == ["1 training documents contain no term"]
    assert fitted.transform(["green", ""]).nnz == 0
    assert fitted.transform([]).shape == (0, 2)


@pytest.mark.parametrize("texts", [["", "..."], ["the and", "42"]])
def test_texts_without_terms_are_rejected(texts: list[str]) -> None:
    with pytest.raises(UnsuitableDataError, match="no training document contains a term"):
        features(analyzer=ENGLISH).fit_transform(texts, labels(len(texts)))


def test_a_selection_without_terms_is_rejected() -> None:
    no_label = csr_array(np.zeros((2, 1), dtype=np.int8))
    with pytest.raises(UnsuitableDataError, match="kept no term"):
        features(selection={"kind": "rocchio"}).fit_transform(["red", "blue"], no_label)


def test_unfitted_features_raise_an_error() -> None:
    with pytest.raises(NotFittedError):
        features().transform(["red"])


def test_sparse_data_stays_sparse() -> None:
    """A dense matrix of 20,000 documents and 220,000 terms needs 35 GB."""
    texts = [f"a{10 * i} " + " ".join(f"t{10 * i + j}" for j in range(10)) for i in range(20_000)]
    Y = csr_array(
        (np.ones(20_000, dtype=np.int8), np.arange(20_000) % 60, np.arange(20_001)), shape=(20_000, 60)
    )
    fitted = features(selection={"kind": "information_gain", "per_label": 5})
    X = fitted.fit_transform(texts, Y)
    assert X.shape == (20_000, 300)


def test_several_threads_give_the_same_result() -> None:
    """Many threads analyze the same new words at the same time, and the stemmer is not thread-safe."""
    texts = [" ".join(f"stor{letter}{i}ings" for i in range(200)) for letter in "abcdefgh"]
    fitted = features(weighting="pivoted", analyzer=ENGLISH)
    fitted.fit_transform(texts[:4], labels(4))
    alone = fitted.transform(texts)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            fresh = features(weighting="pivoted", analyzer=ENGLISH).set_state(fitted.get_state())
            with ThreadPoolExecutor(8) as pool:
                for result in pool.map(fresh.transform, [texts] * 8):
                    assert_same(result, alone)
    finally:
        sys.setswitchinterval(before)


def test_quoted_terms_are_features_of_their_own_with_binary_weights() -> None:
    new = MailDocument(new_text="the parcel is late, where is it", quoted_text="the invoice shows a payment")
    other = MailDocument(new_text="the invoice shows a payment twice")
    binary = features(weighting="binary")
    X = binary.fit_transform([new, other], labels(2)).toarray()
    values = dict(zip(binary.names_, X.T.tolist(), strict=True))
    assert values["invoice"] == [0.0, 1.0]
    assert values[">invoice"] == [1.0, 0.0]
    assert_same(csr_array(X), binary.transform([new, other]))
    for document, row in zip((new, other), X, strict=True):
        vector = binary.vector(document)
        assert vector is not None
        assert vector.indices.tolist() == row.nonzero()[0].tolist()
    counts = features(weighting="tf")
    X = counts.fit_transform([new, other], labels(2)).toarray()
    assert X[:, counts.names_.index("invoice")].tolist() == [0.5, 1.0]
    assert not any(name.startswith(">") for name in counts.names_)


def test_quoted_text_about_another_topic_does_not_decide() -> None:
    texts = {"billing": "the invoice shows the payment twice", "shipping": "my parcel is late and lost"}
    mails = [Email(text=f"{text} {n}") for n in range(6) for text in texts.values()]
    pipeline = Pipeline.from_parameters(
        TextFeaturesParameters(kind="text", weighting="binary"),
        MPBoostParameters(algorithm="mp_boost", rounds=10),
    ).fit(Examples("email", mails, [(label,) for _ in range(6) for label in texts]))
    reply = f"{texts['shipping']}\n\nOn Mon, 5 Aug 2024, Help wrote:\n> {texts['billing']}"
    quoted, alone = pipeline.scores([read_email(Email(text=text)) for text in (reply, texts["shipping"])])
    assert quoted.tolist() == alone.tolist()
    assert quoted[pipeline.labels_.index("shipping")] > quoted[pipeline.labels_.index("billing")]
