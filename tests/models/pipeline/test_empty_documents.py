"""A document of which the features know nothing gets no label, whatever the decision is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import catalog
from models.base.abilities import can_explain
from models.baselines.svm import SVM
from models.data.examples import Examples, FeatureRows
from models.features import TextFeatures
from models.mail import Email, read_email
from models.pipeline import Pipeline

TEXTS = [f"{color} {thing}" for color in ("red", "blue", "green") for thing in ("rose", "sky", "grass")] * 3
SETS = [(text.split()[0],) for text in TEXTS]
DECISIONS: list[dict[str, Any]] = [
    {"kind": "auto"},
    {"kind": "target", "measure": "recall", "value": 1.0},
    {"kind": "at_least_one"},
    {"kind": "top_k", "k": 2},
    {"kind": "single_label"},
    {"kind": "tuned_threshold", "fbr": 0.0},
]
CALIBRATED: dict[str, Any] = {"algorithm": "mlpp", "calibrated": True}


def fitted(decision: dict[str, Any], learner: dict[str, Any], kind: str, **features: Any) -> Pipeline:
    documents: Any = [Email(subject=text) for text in TEXTS] if kind == "email" else TEXTS
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text", **features}),
        catalog.LEARNER_PARAMETERS.validate_python(learner),
        catalog.DECISION_PARAMETERS.validate_python(decision),
    ).fit(Examples(kind, documents, SETS))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["text", "email"])
@pytest.mark.parametrize("decision", DECISIONS, ids=str)
@pytest.mark.parametrize("learner", [{"algorithm": "svm"}, CALIBRATED], ids=str)
def test_no_label_is_predicted(decision: dict[str, Any], learner: dict[str, Any], kind: str) -> None:
    model = fitted(decision, learner, kind)
    every = replace(model.rule_, thresholds=np.full(3, -1e9), at_least=3, at_most=None)
    texts = ["asdf", "red sky", "", "unseen " * 5]
    documents: Any = [Email(text=text) for text in texts] if kind == "email" else texts
    for rule, known in ((model.rule_, model.predict(documents)[1]), (every, ("blue", "green", "red"))):
        expected = [[], [model.labels_.index(label) for label in known], [], []]
        whole = model.rank(documents, rule=rule)
        assert whole.label_sets == expected
        assert whole.empty.tolist() == [True, False, True, True]
        assert [model.rank([one], rule=rule).label_sets[0] for one in documents] == expected
        assert [model.rank([one], rule=rule).empty[0] for one in documents] == [True, False, True, True]
        for options in ({}, {"explain": True}):
            if options and not can_explain(model.learner_):
                continue
            predictions = model.predictions(documents, rule=rule, **options)
            assert [prediction.labels for prediction in predictions] == [[], [*known], [], []]
    examples = Examples(kind, documents, [("red",), ("red",), (), ()])  # type: ignore[arg-type]
    exactly_right = (model.predict(documents)[1] == ("red",)) + 2
    assert model.score(examples) == exactly_right / 4
    assert 1 - model.evaluate(examples).measures["subset_zero_one"] == exactly_right / 4


def test_a_document_whose_terms_have_no_weight_is_empty() -> None:
    model = fitted(
        {"kind": "single_label"}, {"algorithm": "svm"}, "text", selection={"kind": "rocchio", "per_label": 1}
    )
    assert set(model.features_.names_) == {"blue", "green", "red"}
    assert model.predict(["red sky", "sky"]) == [("red",), ()]


@pytest.mark.parametrize(
    ("read", "empty"), [("new_text", [True, False, True]), ("recipients", [False, True, True])]
)
def test_a_message_is_empty_without_the_fields_that_are_read(read: str, empty: list[bool]) -> None:
    fields = {name: {"weight": int(name == read)} for name in ("subject", "new_text", "recipients")}
    messages = [Email(to=f"{name}@example.org", text=name) for name in ("billing", "sales", "support")]
    model = Pipeline(TextFeatures(fields=fields), SVM(), {"kind": "top_k", "k": 1})
    model.fit(messages, [("billing",), ("sales",), ("support",)])
    mails = [Email(to="billing@example.org"), Email(text="billing"), Email(text=" \n")]
    assert model.rank([*map(read_email, mails)]).empty.tolist() == empty


def test_one_class_per_document_has_no_empty_set() -> None:
    model = Pipeline().fit(TEXTS, [label for (label,) in SETS])
    assert model.predict(["asdf"])[0] in model.classes_
    assert model.rank(["asdf"]).label_sets == [[]]


@pytest.mark.parametrize("scaling", ["none", "max_abs", "unit"])
def test_numbers_are_empty_only_if_the_model_knows_none_of_them(scaling: str) -> None:
    X = np.array([[1e300 if scaling == "max_abs" else 4.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    model = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "numeric", "scaling": scaling}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "mp_boost", "rounds": 2}),
        catalog.DECISION_PARAMETERS.validate_python({"kind": "at_least_one"}),
    ).fit(Examples("features", FeatureRows(["a", "b"], csr_array(X)), [("x",), ("y",), ("x",)]))
    # The value of the last row is so small that nothing is left of it if it is divided by the largest one.
    rows = np.array([[0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [1.0, 0.0, 5.0], [1e-30, 0.0, 5.0]])
    documents = FeatureRows(["a", "b", "c"], csr_array(rows))
    alone = [model.rank(FeatureRows(["a", "b", "c"], csr_array(row[np.newaxis]))) for row in rows]
    assert model.rank(documents).empty.tolist() == [True, False, False, False]
    assert [one.empty.tolist() for one in alone] == [[True], [False], [False], [False]]
    assert [bool(labels) for labels in model.predict(documents)] == [False, True, True, True]
    explicit = csr_array((np.array([0.0, 5.0]), np.array([0, 2]), np.array([0, 2])), shape=(1, 3))
    assert model.rank(FeatureRows(["a", "b", "c"], explicit)).empty.tolist() == [True]
