"""One document has the same features, scores, ranking and label set alone as in a batch, bit for bit."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from models import catalog
from models.arrays import Floats
from models.artifact import load, save
from models.base.abilities import can_explain
from models.base.validation import as_feature_matrix
from models.data.examples import Examples, FeatureRows
from models.errors import UnsuitableDataError
from models.features import (
    NumericFeatures,
    NumericFeaturesParameters,
    TextFeatures,
    TextFeaturesParameters,
)
from models.labels import LabelTree
from models.labels.ranking import ranking
from models.mail import MailDocument
from models.pipeline import Pipeline, Ranking
from models.text.documents import TextDocument
from models.text.vocabulary import MAX_CHARACTERS

WORDS = (
    "the invoice invoices invoiced is are wrong Wrong WRONG please pay paid 42 2026 a I server servers down "
    "restart restarted müller Müller GRÜSSE naïve co\u00adop ﬁne Ⅳ e\u0301té день x_y re: order-17 "
) + "A" * 105
NAMES = ["billing", "faults", "orders", "other", "spam"]


def corpus() -> tuple[list[str], list[tuple[str, ...]]]:
    """Return training texts and their label sets."""
    rng = np.random.default_rng(0)
    words = WORDS.split()
    texts = [" ".join(rng.choice(words, size=rng.integers(1, 30))) for _ in range(40)]
    sets = [
        tuple(name for j, name in enumerate(NAMES) if words[3 * j] in text or rng.random() < 0.1)
        for text in texts
    ]
    return texts, sets


TEXTS, SETS = corpus()

MAILS = [
    MailDocument(),
    MailDocument(subject="Invoice"),
    MailDocument(subject="Wrong invoice", new_text=TEXTS[1], quoted_text=TEXTS[2]),
    MailDocument(quoted_text="invoice invoice server", attachments=(("invoice-17.pdf", "x/y"), ("", "z"))),
]

SPECIAL_TEXTS = [
    "",
    " \x00\t\n",
    "unknown words only",
    "...",
    "ÀÉ день",
    "a" * 1000 + " invoice",
    "naïve " + "é" * 250,
    " ".join(TEXTS) * 3,
    "_invoice__wrong_",
    "invoice\x1cserver\x85down\u2028restart",
]

texts = st.one_of(
    st.sampled_from([*SPECIAL_TEXTS, *TEXTS]),
    st.lists(st.sampled_from([*WORDS.split(), "unknown", "zz9"]), max_size=60).map(" ".join),
    st.text(max_size=80),
)
mails = st.builds(
    MailDocument,
    subject=texts,
    new_text=texts,
    quoted_text=texts,
    attachments=st.lists(st.tuples(texts, st.just("text/plain")), max_size=2).map(tuple),
)
analyzers = st.fixed_dictionaries(
    {
        "unit": st.sampled_from(["word", "word", "character"]),
        "lowercase": st.booleans(),
        "drop_numbers": st.booleans(),
        "stop_words": st.sampled_from(["none", "none", "english", "auto"]),
        "stemmer": st.sampled_from(["none", "none", "porter", "auto"]),
        "min_length": st.sampled_from([1, 1, 2]),
        "max_length": st.sampled_from([100, 5]),
        "ngrams": st.sampled_from([(1, 1), (1, 1), (1, 2), (2, 2), (1, 3)]),
    }
)
SELECTIONS: list[dict[str, Any]] = [
    {"kind": "none"},
    {"kind": "information_gain", "per_label": 3},
    {"kind": "document_frequency", "count": 7},
    {"kind": "rocchio", "per_label": 4},
]


def rows(names: list[str], values: Any) -> FeatureRows:
    return FeatureRows(names, csr_array(np.array(values, dtype=np.float64)))


def labels_of(sets: Sequence[tuple[str, ...]]) -> csr_array[Any, tuple[int, int]]:
    return csr_array(np.array([[name in labels for name in NAMES] for labels in sets], dtype=np.int8))


def assert_same_vectors(features: TextFeatures, documents: Sequence[TextDocument]) -> None:
    X = as_feature_matrix(features.vectors(documents))
    for i, document in enumerate(documents):
        vector = features.vector(document)
        assert vector is not None
        row = X[[i]]
        assert vector.indices.tolist() == row.indices.tolist()
        assert vector.data.tobytes() == row.data.tobytes()
        assert vector.data.dtype == np.float64


@settings(max_examples=100)
@given(
    analyzer=analyzers,
    weighting=st.sampled_from(["binary", "tf", "tfidf", "pivoted"]),
    scaling=st.sampled_from(["none", "unit"]),
    selection=st.sampled_from(SELECTIONS),
    documents=st.lists(texts | mails, min_size=1, max_size=6),
)
@example(
    analyzer={"stemmer": "porter", "drop_numbers": True},
    weighting="pivoted",
    scaling="unit",
    selection={"kind": "none"},
    documents=[*SPECIAL_TEXTS, *MAILS],
)
@example(
    analyzer={},
    weighting="pivoted",
    scaling="unit",
    selection={"kind": "none"},
    documents=[*SPECIAL_TEXTS, *MAILS],
)
@example(
    analyzer={"ngrams": (1, 2)},
    weighting="pivoted",
    scaling="none",
    selection={"kind": "document_frequency", "count": 7},
    documents=[*SPECIAL_TEXTS, *MAILS],
)
@example(
    analyzer={"unit": "character", "ngrams": (2, 4)},
    weighting="pivoted",
    scaling="unit",
    selection={"kind": "none"},
    documents=[*SPECIAL_TEXTS, *MAILS],
)
def test_a_text_or_mail_has_the_same_features_alone_as_in_a_batch(
    analyzer: dict[str, Any],
    weighting: str,
    scaling: str,
    selection: dict[str, Any],
    documents: list[TextDocument],
) -> None:
    features = TextFeatures(
        TextFeaturesParameters.model_validate(
            {
                "kind": "text",
                "analyzer": analyzer,
                "weighting": weighting,
                "scaling": scaling,
                "selection": selection,
            }
        )
    )
    try:
        features.fit_transform(TEXTS, labels_of(SETS))
    except UnsuitableDataError:
        return
    assert_same_vectors(features, documents)
    loaded = TextFeatures(features.parameters).set_state(features.get_state())
    assert_same_vectors(loaded, documents)


@pytest.mark.parametrize("weighting", ["tf", "pivoted"])
@pytest.mark.parametrize("ngrams", [[1, 1], [1, 2]])
def test_one_message_has_the_bits_of_a_batch_for_any_weight_of_a_field(
    weighting: str, ngrams: list[int]
) -> None:
    fields = {"subject": {"weight": 0.3}, "quoted_text": {"weight": 0.7}, "new_text": {"weight": 1e-9}}
    features = TextFeatures(
        TextFeaturesParameters.model_validate(
            {"kind": "text", "weighting": weighting, "fields": fields, "analyzer": {"ngrams": ngrams}}
        )
    )
    mails = [
        MailDocument(subject=f"invoice {text}", new_text=text, quoted_text=f"{text} invoice" * 3)
        for text in TEXTS
    ]
    features.fit_transform(mails, labels_of(SETS))
    assert_same_vectors(features, mails)


def test_a_long_text_is_left_to_the_batch() -> None:
    """There, a word takes less memory."""
    pipeline = fitted("svm", {})
    assert isinstance(pipeline.features_, TextFeatures)
    text = "invoice wrong " * (MAX_CHARACTERS // 14)
    assert pipeline.features_.vector(text) is not None
    assert pipeline.features_.vector(text + "invoice wrong ") is None
    whole = pipeline.rank([text, text + "invoice wrong"])
    assert_same_ranking(pipeline.rank([text]), whole, 0)
    assert_same_ranking(pipeline.rank([text + "invoice wrong"]), whole, 1)


COLUMNS = ["a", "b", "c", "d", "e"]
values = st.sampled_from([0.0, -0.0, 1.0, -2.5, 0.1, 3e-310, 1e-5, 1e300])


@pytest.mark.parametrize("interactions", [1, 2])
@settings(max_examples=60)
@given(
    scaling=st.sampled_from(["none", "max_abs", "standard", "unit"]),
    names=st.lists(st.sampled_from([*COLUMNS, "unknown", "other"]), unique=True, max_size=6),
    data=st.data(),
)
def test_numeric_features_have_the_same_values_alone_as_in_a_batch(
    scaling: Any, interactions: Any, names: list[str], data: st.DataObject
) -> None:
    rng = np.random.default_rng(1)
    training = FeatureRows(
        COLUMNS, csr_array(np.where(rng.random((12, 5)) < 0.6, rng.normal(size=(12, 5)), 0))
    )
    features = NumericFeatures(
        NumericFeaturesParameters(kind="numeric", scaling=scaling, interactions=interactions)
    )
    features.fit_transform(training, csr_array(np.ones((12, 1), dtype=np.int8)))
    drawn = data.draw(
        st.lists(st.lists(values, min_size=len(names), max_size=len(names)), min_size=1, max_size=4)
    )
    X = csr_array(np.array(drawn).reshape(len(drawn), len(names)))
    try:
        expected = as_feature_matrix(features.transform(FeatureRows(names, X)), n_features=None)
    except (UnsuitableDataError, ValueError):
        return
    for i in range(len(drawn)):
        vector = features.vector(FeatureRows(names, X[[i]]))
        if interactions == 2:
            assert vector is None
            continue
        assert vector is not None
        row = expected[[i]]
        assert vector.indices.tolist() == row.indices.tolist()
        assert vector.data.tobytes() == row.data.tobytes()


def test_a_row_that_is_too_large_or_not_finite_is_rejected_alone_as_in_a_batch() -> None:
    features = NumericFeatures(NumericFeaturesParameters(kind="numeric", scaling="max_abs"))
    features.fit_transform(rows(["a", "b"], [[1e-300, 1.0]]), csr_array(np.ones((1, 1), dtype=np.int8)))
    large = rows(["a", "b"], [[1e300, 1.0]])
    for compute in (features.transform, features.vector):
        with pytest.raises(UnsuitableDataError, match="too large"):
            compute(large)
    for bad in (np.nan, np.inf):
        assert features.vector(rows(["a"], [[bad]])) is None
    repeated = csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    assert features.vector(FeatureRows(["a"], repeated)) is None


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("adaboost_mh", {"rounds": 10}),
    ("adaboost_mh", {"rounds": 10, "stump": "threshold"}),
    ("mp_boost", {"rounds": 10}),
    ("mp_boost", {"rounds": 10, "stump": "threshold"}),
    ("adaboost_lc", {"rounds": 5}),
    ("mmp", {}),
    ("mlpp", {}),
    ("mlpp", {"calibrated": True, "voting": "weighted"}),
    ("binary_relevance_perceptron", {}),
    ("naive_bayes", {}),
    ("naive_bayes", {"label_mode": "single_label"}),
    ("svm", {}),
    ("h_svm", {}),
    ("h_rls", {}),
    ("h_m3", {"passes": 3}),
    ("h_m3", {"passes": 3, "kernel": "rbf"}),
    ("h_m3", {"passes": 3, "kernel": "polynomial"}),
]


def test_every_learner_is_tested() -> None:
    assert {algorithm for algorithm, _ in VARIANTS} == {*catalog.ENTRIES}


def fitted(
    algorithm: str,
    options: dict[str, Any],
    decision: dict[str, Any] | None = None,
    kind: str = "text",
    features: dict[str, Any] | None = None,
) -> Pipeline:
    learner = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm, **options})
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(
            features or {"kind": "text", "weighting": "pivoted", "scaling": "unit"}
        ),
        learner,
        catalog.DECISION_PARAMETERS.validate_python(decision or catalog.own_decision(learner)),
    )
    documents: Any = TEXTS
    if kind == "email":
        documents = [MailDocument(subject=text[:20], new_text=text[20:]) for text in TEXTS]
    tree = LabelTree({"billing": "orders", "spam": "other"})
    return pipeline.fit(Examples(kind, documents, SETS), tree=tree)  # type: ignore[arg-type]


def same_bits(one: Floats, other: Floats) -> bool:
    return one.shape == other.shape and one.tobytes() == np.ascontiguousarray(other).tobytes()


def assert_same_ranking(one: Ranking, whole: Ranking, i: int) -> None:
    assert same_bits(one.scores, whole.scores[[i]])
    assert one.order.tolist() == whole.order[[i]].tolist()
    assert one.label_sets == [whole.label_sets[i]]


DOCUMENTS = [*SPECIAL_TEXTS, *TEXTS[:10]]


@pytest.mark.parametrize(("algorithm", "options"), VARIANTS, ids=str)
def test_a_document_has_the_same_ranking_alone_as_in_a_batch(
    algorithm: str, options: dict[str, Any], tmp_path: Path
) -> None:
    pipeline = fitted(algorithm, options)
    save(pipeline, tmp_path / "model")
    loaded = load(tmp_path / "model")
    for top in (None, 1, 3):
        whole = pipeline.rank(DOCUMENTS, top=top)
        for i, document in enumerate(DOCUMENTS):
            assert_same_ranking(pipeline.rank([document], top=top), whole, i)
            assert_same_ranking(loaded.rank([document], top=top), whole, i)
    scores = pipeline.scores(DOCUMENTS)
    rankings = pipeline.rank(DOCUMENTS)
    assert same_bits(np.take_along_axis(scores, rankings.order, axis=1), rankings.scores)


@pytest.mark.parametrize(("algorithm", "options"), VARIANTS, ids=str)
def test_a_document_has_the_same_explanations_alone_as_in_a_batch(
    algorithm: str, options: dict[str, Any]
) -> None:
    pipeline = fitted(algorithm, options, {"kind": "top_k", "k": 2})
    explain = can_explain(pipeline.learner_)
    whole = pipeline.predictions(DOCUMENTS, explain=explain)
    assert [pipeline.predictions([document], explain=explain)[0] for document in DOCUMENTS] == whole


@pytest.mark.parametrize(
    "decision",
    [
        {"kind": "sign"},
        {"kind": "at_least_one"},
        {"kind": "top_k", "k": 2},
        {"kind": "top_k", "k": 99},
        {"kind": "single_label"},
        {"kind": "tuned_threshold"},
    ],
    ids=str,
)
def test_a_document_has_the_same_label_set_alone_as_in_a_batch(decision: dict[str, Any]) -> None:
    pipeline = fitted("svm", {}, decision)
    whole = pipeline.rank(DOCUMENTS)
    assert whole.label_sets == [
        np.flatnonzero(row).tolist() for row in pipeline.decide(pipeline.scored(DOCUMENTS)).toarray()
    ]
    for i, document in enumerate(DOCUMENTS):
        assert_same_ranking(pipeline.rank([document]), whole, i)


def test_a_document_has_the_same_label_set_alone_as_in_a_batch_with_an_artificial_label() -> None:
    pipeline = fitted("mlpp", {"calibrated": True}, {"kind": "calibrated_label"})
    whole = pipeline.rank(DOCUMENTS)
    for i, document in enumerate(DOCUMENTS):
        assert_same_ranking(pipeline.rank([document]), whole, i)


def test_a_mail_has_the_same_ranking_alone_as_in_a_batch() -> None:
    pipeline = fitted("mp_boost", {"rounds": 5}, kind="email")
    whole = pipeline.rank(MAILS)
    for i, mail in enumerate(MAILS):
        assert_same_ranking(pipeline.rank([mail]), whole, i)


@pytest.mark.parametrize("interactions", [1, 2])
@pytest.mark.parametrize("algorithm", ["mp_boost", "svm"])
def test_a_numeric_row_has_the_same_ranking_alone_as_in_a_batch(algorithm: str, interactions: int) -> None:
    rng = np.random.default_rng(2)
    X = np.where(rng.random((len(SETS), 5)) < 0.5, rng.normal(size=(len(SETS), 5)), 0)
    X[3] = 0
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python(
            {"kind": "numeric", "scaling": "standard", "interactions": interactions}
        ),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": algorithm}),
    ).fit(Examples("features", FeatureRows(COLUMNS, csr_array(X)), SETS))
    names = ["e", "unknown", "a", "c"]
    others = X[:, [4, 1, 0, 2]]
    whole = pipeline.rank(rows(names, others))
    for i in range(len(SETS)):
        assert_same_ranking(pipeline.rank(rows(names, others[[i]])), whole, i)


@pytest.mark.parametrize("n_labels", [1, 2, 17])
@pytest.mark.parametrize("algorithm", ["svm", "mp_boost", "naive_bayes", "mmp"])
def test_sums_over_many_features_have_the_same_bits(algorithm: str, n_labels: int) -> None:
    """NumPy sums a single column pairwise, which rounds differently from SciPy's sequential sum."""
    rng = np.random.default_rng(3)
    X = csr_array(np.where(rng.random((60, 400)) < 0.5, rng.random((60, 400)), 0))
    Y = (rng.random((60, n_labels)) < 0.5).astype(np.int8)
    learner: Any = catalog.ENTRIES[algorithm].learner().fit(X, Y)
    scores = learner.decision_function(X)
    features = NumericFeatures(NumericFeaturesParameters(kind="numeric"))
    names = [f"{j:03}" for j in range(400)]
    features.fit_transform(FeatureRows(names, X), csr_array(Y))
    for i in range(60):
        vector = features.vector(FeatureRows(names, X[[i]]))
        assert vector is not None
        assert same_bits(learner.score_one(vector), scores[i])


def test_a_score_that_is_not_finite_is_rejected() -> None:
    training = rows(["a", "b"], [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "numeric"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm", "C": 1e6}),
    ).fit(Examples("features", training, [("x",), (), ("x",)]))
    with pytest.raises(UnsuitableDataError, match="scores are not finite"):
        pipeline.rank(rows(["a"], [[1.7e308]]))


def test_the_best_labels_are_the_first_of_all_labels_with_ties_in_label_order() -> None:
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 5, (20, 300)).astype(np.float64)  # ties across the end of every selection
    scores[0] = 0.0
    scores[1, ::2] = -0.0
    scores[2] = rng.normal(size=300)
    for top in (0, 1, 2, 7, 59, 60, 61, 75, 299, 300, 999):
        assert ranking(scores, top).tolist() == ranking(scores)[:, :top].tolist()
        assert ranking(scores[:, :9], top).tolist() == ranking(scores[:, :9])[:, :top].tolist()


@pytest.mark.parametrize("analyzer", [{}, {"stemmer": "auto", "stop_words": "english"}, {"ngrams": (1, 2)}])
def test_threads_can_rank_with_one_pipeline_at_the_same_time(analyzer: dict[str, Any]) -> None:
    features = {"kind": "text", "weighting": "pivoted", "analyzer": analyzer}
    pipeline = fitted("mp_boost", {"rounds": 5}, features=features)
    whole = fitted("mp_boost", {"rounds": 5}, features=features).rank(DOCUMENTS)
    together = threading.Barrier(8)

    def rank_all(shift: int) -> None:
        together.wait()
        for j in range(3 * len(DOCUMENTS)):
            i = (j + shift) % len(DOCUMENTS)
            assert_same_ranking(pipeline.rank([DOCUMENTS[i]]), whole, i)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(rank_all, range(8)))
