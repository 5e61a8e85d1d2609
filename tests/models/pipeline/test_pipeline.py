"""The pipeline: from documents of each kind to label sets, rankings, explanations and measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pytest
from scipy.sparse import csr_array

from models import catalog
from models.arrays import AnyArray, Bools, Floats, Ints, Matrix
from models.base import Learner, LearnerParameters, Problem, State, Training
from models.baselines.svm import SVM
from models.data.examples import Examples, FeatureRows, Kind, Split
from models.errors import NotFittedError, ParameterError, UnsuitableDataError
from models.features import TextFeatures, TextFeaturesParameters
from models.labels import LabelTree
from models.mail import MAIL_VERSION, Email, read_email
from models.pipeline import Pipeline, Progress, TrainingSet

TEXTS = ["red rose", "blue sky", "red sky", "green grass", "green rose", "blue grass"]
SETS: list[tuple[str, ...]] = [
    ("red", "flower"),
    ("blue",),
    ("red",),
    ("green",),
    ("green", "flower"),
    (),
]


def examples() -> Examples:
    return Examples("text", TEXTS, SETS)


def pipeline(
    learner: str = "svm", decision: str | None = None, features: str = "text", **options: Any
) -> Pipeline:
    parameters = catalog.LEARNER_PARAMETERS.validate_python({"algorithm": learner, **options})
    kind = decision or catalog.own_decision(parameters).kind
    return Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": features}),
        parameters,
        catalog.DECISION_PARAMETERS.validate_python({"kind": kind}),
    )


@dataclass(frozen=True)
class BatchesOfTwo:
    """A source that returns its examples in batches of two."""

    whole: Examples

    @property
    def kind(self) -> Kind:
        return self.whole.kind

    @property
    def n_examples(self) -> int:
        return self.whole.n_examples

    def batches(self) -> Iterator[Examples]:
        numbers = np.arange(self.n_examples)
        for first in range(0, self.n_examples, 2):
            yield self.whole.where(numbers // 2 == first // 2)

    def label_sets(self) -> list[tuple[str, ...]]:
        return self.whole.label_sets()

    def unknown_sets(self) -> list[tuple[str, ...]]:
        return self.whole.unknown_sets()

    def example_weights(self) -> Floats | None:
        return self.whole.example_weights()

    def splits(self) -> list[Split | None]:
        return self.whole.splits()

    def document_digests(self) -> Ints:
        return self.whole.document_digests()

    def where(self, keep: Bools) -> BatchesOfTwo:
        return BatchesOfTwo(self.whole.where(keep))


class CountsParameters(LearnerParameters):
    """Parameters of ``counts``."""

    algorithm: Literal["counts"]


class Counted(Training):
    """A training without steps."""

    unit = "examples"

    def advance(self) -> None:
        raise AssertionError("there is no step")

    def arrays(self) -> State:
        return {}

    def restore(self, arrays: State) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


class Counts(Learner):
    """A learner that is not in the catalog. The score of a label is its number of examples minus 1/2."""

    parameters = CountsParameters
    algorithm: ClassVar[str] = "counts"

    def _training(self, problem: Problem, parameters: Any) -> Training:  # noqa: ARG002
        self.context_ = problem.context
        self.counts_ = np.asarray(problem.Y.sum(axis=0), dtype=np.float64) - 0.5
        return Counted(0)

    def _scores(self, X: Matrix) -> Floats:
        return np.tile(self.counts_, (X.shape[0], 1))

    def _get_state(self) -> State:
        return {"counts": self.counts_}

    def _set_state(self, state: Mapping[str, AnyArray]) -> Self:
        self.counts_ = state["counts"]
        self.n_labels_ = len(self.counts_)
        return self


def fitted_counts() -> Pipeline:
    return Pipeline(TextFeatures(TextFeaturesParameters(kind="text")), Counts())


def test_labels_are_those_with_a_training_example_in_label_order() -> None:
    assert pipeline().fit(examples()).labels_ == ["blue", "flower", "green", "red"]


def test_a_pipeline_learns_from_text() -> None:
    fitted = pipeline().fit(examples())
    predictions = fitted.predictions(["a red rose", "the blue sky"])
    assert [set(p.labels) for p in predictions] == [{"red", "flower"}, {"blue"}]


def test_rankings_are_sorted_by_score() -> None:
    fitted = pipeline().fit(examples())
    scores = fitted.scores(TEXTS)
    for row, prediction in zip(scores, fitted.predictions(TEXTS), strict=True):
        expected = sorted(zip(fitted.labels_, row.tolist(), strict=True), key=lambda x: (-x[1], x[0]))
        assert prediction.ranking == expected
        assert prediction.labels == [label for label, s in zip(fitted.labels_, row, strict=True) if s > 0]
        assert prediction.explanation == []


def test_equal_scores_rank_by_label_order() -> None:
    fitted = fitted_counts().fit(Examples("text", ["x", "x", "x"], [("b", "c"), ("c", "a", "b"), ("c",)]))
    assert fitted.predictions(["y"])[0].ranking == [("c", 2.5), ("b", 1.5), ("a", 0.5)]
    fitted = fitted_counts().fit(Examples("text", ["x", "x"], [("b", "a"), ("c",)]))
    assert [label for label, _ in fitted.predictions(["y"])[0].ranking] == ["a", "b", "c"]


def test_top_limits_the_ranking_but_not_the_label_set() -> None:
    fitted = pipeline().fit(examples())
    whole, short = fitted.predictions(TEXTS), fitted.predictions(TEXTS, top=1)
    assert [p.ranking for p in short] == [p.ranking[:1] for p in whole]
    assert [p.labels for p in short] == [p.labels for p in whole]
    assert fitted.predictions(TEXTS, top=99) == whole


def test_a_batch_has_the_predictions_of_its_documents() -> None:
    fitted = pipeline().fit(examples())
    assert fitted.predictions(TEXTS, explain=True) == [
        fitted.predictions([text], explain=True)[0] for text in TEXTS
    ]
    assert fitted.predictions([]) == []
    assert fitted.scores([]).shape == (0, 4)


def test_explanations_add_up_to_the_score() -> None:
    fitted = pipeline().fit(examples())
    assert isinstance(fitted.learner_.intercept_, np.ndarray)
    intercepts = dict(zip(fitted.labels_, fitted.learner_.intercept_.tolist(), strict=True))
    (prediction,) = fitted.predictions(["red red rose balloon"], explain=True)
    scores = dict(prediction.ranking)
    assert [e.label for e in prediction.explanation] == prediction.labels == ["flower", "red"]
    for explanation in prediction.explanation:
        assert {item.term for item in explanation.terms} == {"red", "rose"}
        total = sum(item.weight for item in explanation.terms)
        assert total + intercepts[explanation.label] == pytest.approx(scores[explanation.label])
        sizes = [abs(item.weight) for item in explanation.terms]
        assert sizes == sorted(sizes, reverse=True)


def test_explanations_have_the_words_of_the_document() -> None:
    fitted = pipeline().fit(examples())
    (prediction,) = fitted.predictions(["Red, RED rose"], explain=True)
    words = {
        (item.term, *item.source.words)
        for explanation in prediction.explanation
        for item in explanation.terms
    }
    assert words == {("red", "Red", "RED"), ("rose", "rose")}


def test_parts_of_words_count_for_the_words_that_contain_them() -> None:
    analyzer = {"character_ngrams": [3, 4], "ngrams": [1, 2]}
    fitted = Pipeline(TextFeatures(analyzer=analyzer), SVM()).fit(examples())
    text = "Redder, redder than the roses: a red nose"
    (explanation,) = fitted.explain([text], "red", terms=1000)
    assert isinstance(fitted.learner_.intercept_, np.ndarray)
    red = fitted.labels_.index("red")
    total = sum(item.weight for item in explanation.terms) + fitted.learner_.intercept_[red]
    assert total == pytest.approx(fitted.scores([text])[0, red])

    assert isinstance(fitted.features_, TextFeatures)
    names = fitted.features_.names_
    features, contributions = fitted.learner_.explain(fitted.features_.transform([text]), red)
    expected: Counter[str] = Counter()
    for feature, contribution in zip(features.tolist(), contributions.tolist(), strict=True):
        gram = names[feature].removeprefix("~")
        words = text.lower().replace(",", "").replace(":", "").split() if gram != names[feature] else []
        counts = [sum(f" {word} "[i:].startswith(gram) for i in range(len(word))) for word in words]
        for word, count in zip(words, counts, strict=True):
            expected[word] += contribution * count / sum(counts)
        expected[names[feature]] += 0 if words else contribution
    found = {item.term: item.weight for item in explanation.terms}
    assert found == {term: pytest.approx(weight) for term, weight in expected.items() if weight}
    assert {"redder", "roses", "red", "nose"} <= set(found), "also words that training has not seen"
    (item,) = [item for item in explanation.terms if item.term == "redder"]
    assert (item.source.words, len(item.source.occurrences)) == (["Redder", "redder"], 2)


def test_products_of_features_are_explained_as_such() -> None:
    rows = FeatureRows(["a", "b"], csr_array(np.array([[1.0, 2.0], [2.0, 0.0], [0.0, 1.0], [3.0, 1.0]])))
    fitted = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "numeric", "interactions": 2}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "svm"}),
    ).fit(Examples("features", rows, [("x",), (), (), ("x",)]))
    (explanation,) = fitted.explain(FeatureRows(["a", "b"], csr_array(np.array([[1.0, 2.0]]))), "x")
    factors = {item.term: item.source.factors for item in explanation.terms}
    assert factors == {"a": (), "b": (), "a*b": ("a", "b"), "a^2": ("a", "a"), "b^2": ("b", "b")}


def test_any_label_can_be_explained() -> None:
    fitted = pipeline().fit(examples())
    (explanation,) = fitted.explain(["red rose"], "blue", terms=1)
    assert explanation.label == "blue"
    assert len(explanation.terms) == 1
    with pytest.raises(ParameterError, match="'mauve'") as error_info:
        fitted.explain(["red rose"], "mauve")
    assert error_info.value.pointer == "/label"


def test_numeric_columns_are_matched_by_name() -> None:
    matrix = csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]]))
    source = Examples("features", FeatureRows(["left", "right"], matrix), [("l",), ("r",), ("l",), ("r",)])
    fitted = pipeline(features="numeric").fit(source)
    swapped = FeatureRows(["right", "other", "left"], csr_array(np.array([[0.0, 5.0, 3.0]])))
    assert fitted.predictions(swapped)[0].labels == ["l"]


def test_mail_is_parsed_in_training_and_in_prediction() -> None:
    mails = [Email(subject=text, text="Hello,\n") for text in TEXTS]
    fitted = pipeline().fit(Examples("email", mails, SETS))
    assert fitted.mail_version_ == MAIL_VERSION
    raw = Email(raw=b"Subject: red rose\r\n\r\nHello,\r\n")
    assert fitted.predictions([raw])[0].labels == ["flower", "red"]
    # A parsed message is not parsed again.
    assert fitted.predictions([read_email(raw)]) == fitted.predictions([raw])


def test_only_mail_has_a_mail_version() -> None:
    assert pipeline().fit(examples()).mail_version_ is None


def test_batch_sizes_do_not_matter() -> None:
    whole, parts = pipeline().fit(examples()), pipeline().fit(BatchesOfTwo(examples()))
    assert (whole.scores(TEXTS) == parts.scores(BatchesOfTwo(examples()))).all()
    assert whole.evaluate(examples()) == parts.evaluate(BatchesOfTwo(examples()))


def test_with_a_tree_training_sets_include_ancestors() -> None:
    tree = LabelTree({"red": "colour", "green": "colour", "unmet": "colour"})
    fitted = pipeline("h_svm").fit(examples(), tree=tree)
    assert fitted.labels_ == ["blue", "colour", "flower", "green", "red"]
    assert fitted.closed_under_ancestors_
    for prediction in fitted.predictions(TEXTS):
        assert set(tree.closure(prediction.labels)) == set(prediction.labels)
    # Evaluation adds the ancestors, too.
    rows = {row.label: row for row in fitted.evaluate(examples()).labels}
    assert rows["colour"].tp + rows["colour"].fn == 4
    assert "hierarchical" in fitted.evaluate(examples()).measures


def test_only_a_tree_learner_with_the_sign_decision_guarantees_closed_sets() -> None:
    tree = LabelTree({"red": "colour"})
    assert not pipeline("h_svm").fit(examples()).closed_under_ancestors_
    assert not pipeline("svm").fit(examples(), tree=tree).closed_under_ancestors_
    assert not pipeline("h_svm", "tuned_threshold").fit(examples(), tree=tree).closed_under_ancestors_


def test_the_learner_receives_names_tree_and_kind() -> None:
    own = fitted_counts().fit(examples(), tree=LabelTree({"red": "colour"}))
    assert isinstance(own.learner, Counts)
    context = own.learner.context_
    assert context.labels == ["blue", "colour", "flower", "green", "red"]
    assert context.features == ["blue", "grass", "green", "red", "rose", "sky"]
    assert context.parents is not None
    assert context.parents.tolist() == [-1, -1, -1, -1, 1]
    assert not context.numeric_features


def test_different_decisions_use_the_same_scores() -> None:
    one = pipeline(decision="single_label").fit(examples())
    assert [len(p.labels) for p in one.predictions(TEXTS)] == [1] * 6
    some = pipeline(decision="at_least_one").fit(examples())
    assert all(p.labels for p in some.predictions(["blue", "blue grass"]))


def test_the_default_decision_is_that_of_the_learner() -> None:
    assert pipeline("svm").fit(examples()).decision_.kind == "sign"
    assert pipeline("mmp").fit(examples()).decision_.kind == "tuned_threshold"


def test_invalid_requests_are_rejected_before_documents_are_read() -> None:
    with pytest.raises(ParameterError) as error_info:
        pipeline(decision="calibrated_label").fit(examples())
    assert error_info.value.pointer == "/decision/kind"
    with pytest.raises(ParameterError) as error_info:
        pipeline(features="numeric").fit(examples())
    assert error_info.value.pointer == "/features/kind"
    with pytest.raises(UnsuitableDataError, match="no training example has a label"):
        pipeline().fit(Examples("text", TEXTS, [()] * 6))
    with pytest.raises(UnsuitableDataError):
        pipeline().fit(Examples("text", [], []))


def test_documents_of_the_wrong_kind_are_rejected() -> None:
    rows = FeatureRows(["a"], csr_array(np.ones((1, 1))))
    with pytest.raises(ParameterError, match="text"):
        pipeline().fit(examples()).predictions(rows)
    numbers = pipeline(features="numeric").fit(Examples("features", rows, [("x",)]))
    with pytest.raises(ParameterError, match="features"):
        numbers.predictions(["text"])


@pytest.mark.parametrize(
    "use",
    [
        lambda p: p.predictions(["x"]),
        lambda p: p.scores(["x"]),
        lambda p: p.evaluate(examples()),
        lambda p: p.explain(["x"], "red"),
        lambda p: p.get_state(),
    ],
)
def test_an_unfitted_pipeline_cannot_predict(use: Callable[[Pipeline], object]) -> None:
    with pytest.raises(NotFittedError):
        use(pipeline())


def test_constant_labels_and_empty_documents_cause_warnings() -> None:
    source = Examples("text", ["red", "blue", "", "!"], [("all", "r"), ("all",), ("all",), ("all",)])
    notes = pipeline().fit(source).summary_
    assert "labels that every training example has: all" in notes.warnings
    assert "2 training documents have none of the features" in notes.warnings
    assert notes.facts["empty_documents"] == 2
    assert pipeline().fit(examples()).summary_.warnings == []
    assert pipeline().fit(examples()).summary_.facts["unlabelled"] == 1


def test_labels_that_only_the_test_part_has_cause_a_warning_and_are_not_measured() -> None:
    fitted = pipeline().fit(examples())
    evaluation = fitted.evaluate(Examples("text", ["red rose", "?"], [("red", "flower"), ("mauve", "ochre")]))
    assert evaluation.warnings == ["labels without a training example are not measured: mauve, ochre"]
    assert [row.label for row in evaluation.labels] == fitted.labels_
    assert evaluation.measures["n_unlabelled"] == 1
    assert fitted.evaluate(examples()).warnings == []


def test_every_kind_of_label_and_document_trains_and_predicts() -> None:
    texts = ["a b", "", "c", "a", "b c", "zz"]
    sets: list[tuple[str, ...]] = [
        ("all", "once"),
        ("all",),
        ("all", "x"),
        ("all", "x"),
        ("all",),
        ("all", "x"),
    ]
    for algorithm in catalog.ENTRIES:
        fitted = pipeline(algorithm).fit(Examples("text", texts, sets))
        predictions = fitted.predictions(["", "unknown", "a b c"])
        scores = [score for p in predictions for _, score in p.ranking]
        assert len(scores) == 9
        assert np.isfinite(scores).all(), algorithm
        assert np.isfinite(list(fitted.evaluate(Examples("text", texts, sets)).measures.values())).all()


def test_progress_is_reported_for_every_phase() -> None:
    steps_reported: list[Progress] = []
    pipeline(decision="tuned_threshold").fit_training(
        TrainingSet(BatchesOfTwo(Examples("text", TEXTS * 3, SETS * 3))), monitor=steps_reported.append
    )
    assert [p.phase for p in steps_reported] == ["features"] * 9 + ["training"] * 4 + ["thresholds"] * 12
    for phase in ("features", "training", "thresholds"):
        steps = [p for p in steps_reported if p.phase == phase]
        counts = [p.completed for p in steps]
        assert counts == sorted(set(counts))
        assert counts[-1] == steps[-1].total
        assert {p.total for p in steps} == {steps[-1].total}


def test_phases_are_timed() -> None:
    assert set(pipeline().fit(examples()).timings_) == {"features", "training", "thresholds"}


def test_a_learner_with_a_covering_is_evaluated_with_it() -> None:
    fitted = pipeline("adaboost_lc", covering={"kind": "zero_one"}).fit(examples())
    measures = fitted.evaluate(examples()).measures
    assert measures["covering_error"] == measures["subset_zero_one"]
    hamming = fitted.evaluate(examples(), covering={"kind": "hamming"}).measures
    assert hamming["covering_error"] == pytest.approx(4 * hamming["hamming_loss"])
    assert "covering_error" not in pipeline("svm").fit(examples()).evaluate(examples()).measures


def test_reading_and_counting_reports_parts_of_a_batch_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: dict[int, list[int]] = {}
    scores = []
    for size in (2, 100):
        monkeypatch.setattr("models.pipeline.training_set.DOCUMENTS_OF_A_STEP", size)
        seen = steps[size] = []

        def monitor(progress: Progress, /, seen: list[int] = seen) -> None:
            if progress.phase == "features":
                seen.append(progress.completed)

        scores.append(
            pipeline().fit_training(TrainingSet(examples()), monitor=monitor).decision_function(TEXTS)
        )
    assert steps == {2: [2, 4, 6], 100: [6]}
    np.testing.assert_array_equal(scores[0], scores[1])
