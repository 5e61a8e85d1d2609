"""AdaBoost.LC against figure 2 of the paper, written out in loops, and against its theorem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sparse_cases import features, frozen, noncanonical

from models.arrays import Floats
from models.base import Context, Problem, State, Step
from models.boosting import weight_sums
from models.boosting.adaboost_lc import AdaBoostLC
from models.covering import parse_covering
from models.errors import ParameterError, StopTraining

Sets = list[frozenset[str]]


# ------------------------------------------------------------------------ the paper's definitions, in loops


def literal_matches(when: Any, y: set[str]) -> bool:
    if when == "otherwise":
        return True
    ((key, value),) = when.items()
    if key == "has":
        return value in y
    if key == "has_not":
        return value not in y
    if key == "any":
        return any(label in y for label in value)
    if key == "every":
        return all(label in y for label in value)
    return bool(value.get("at_least", 0) <= len(y) <= value.get("at_most", math.inf))


def literal_cover(covering: dict[str, Any], y: set[str], labels: Sequence[str]) -> Sets:
    """The multiset of cover elements of a label set, without empty elements."""
    on, off = y, set(labels) - y
    single = [frozenset({label}) for label in labels]
    kind, weight = covering["kind"], covering.get("weight", 1)
    elements: Sets = []
    if kind == "hamming":
        elements = single
    elif kind == "zero_one":
        elements = [frozenset(labels)]
    elif kind == "two_sets":
        elements = [frozenset(on), frozenset(off)]
    elif kind == "weighted_positive":
        elements = [frozenset(on)] * weight + [frozenset({label}) for label in off]
    elif kind == "weighted_negative":
        elements = [frozenset(off)] * weight + [frozenset({label}) for label in on]
    elif kind == "groups":
        for group in covering["groups"]:
            elements += [frozenset(group["labels"])] * group.get("weight", 1)
    else:
        rule = next(rule for rule in covering["rules"] if literal_matches(rule["when"], y))
        for element in rule["cover"]:
            times = element.get("weight", 1)
            if "each" in element:
                elements += [frozenset({label}) for label in element["each"]] * times
            elif "all" in element:
                elements += [frozenset(element["all"])] * times
            else:
                (sign,) = {"positives", "negatives"} & element.keys()
                chosen = on if sign == "positives" else off
                if element[sign] == "all":
                    elements += [frozenset(chosen)] * times
                else:
                    elements += [frozenset({label}) for label in chosen] * times
    return [element for element in elements if element]


class Literal:
    """Figure 2 with every sum as a loop."""

    def __init__(
        self, X: Floats, Y: Any, covering: dict[str, Any], template: Any, smoothing: float | None
    ) -> None:
        self.labels = [str(label) for label in range(Y.shape[1])]
        self.y = np.where(Y, 1, -1)
        self.m: int = X.shape[0]
        self.H: int = X.shape[1]
        self.k: int = Y.shape[1]
        self.scale = np.abs(X).max() if X.any() else 1.0
        self.h = X / self.scale
        self.smoothing = smoothing
        self.covers = [
            [
                [int(label) for label in sorted(element, key=int)]
                for element in literal_cover(
                    covering, {self.labels[c] for c in np.flatnonzero(Y[i])}, self.labels
                )
            ]
            for i in range(self.m)
        ]
        if template == "sequential":
            self.B = np.eye(self.H)
        else:
            groups = (
                [range(self.H)] if template == "parallel" else [[int(j) for j in group] for group in template]
            )
            self.B = np.zeros((len(groups), self.H))
            given_templates = [[]] if template == "parallel" else template
            for b, group, given in zip(self.B, groups, given_templates, strict=True):
                entries = {j: given[str(j)] if isinstance(given, dict) else 1.0 for j in group}
                worst = max(sum(entries[j] * abs(self.h[i, j]) for j in group) for i in range(self.m))
                for j in group:
                    b[j] = entries[j] / worst if worst > 0 else entries[j]
        self.alpha = np.zeros((self.H, self.k))

    def f(self) -> Floats:
        return np.asarray(self.h @ self.alpha)

    def loss(self) -> float:
        f = self.f()
        losses = [
            math.log(1 + sum(math.exp(-self.y[i, c] * f[i, c]) for c in element))
            for i in range(self.m)
            for element in self.covers[i]
        ]
        return sum(losses) / self.m

    def error(self) -> float:
        on = np.where(self.f() > 0, 1, -1)
        errors = [
            any(on[i, c] != self.y[i, c] for c in element)
            for i in range(self.m)
            for element in self.covers[i]
        ]
        return sum(errors) / self.m

    def sums(self) -> tuple[Floats, Floats]:
        """W₊ and W₋."""
        f = self.f()
        plus, minus = np.zeros((self.H, self.k)), np.zeros((self.H, self.k))
        for i in range(self.m):
            for element in self.covers[i]:
                denominator = 1 + sum(math.exp(-self.y[i, r] * f[i, r]) for r in element)
                for c in element:
                    q = math.exp(-self.y[i, c] * f[i, c]) / denominator
                    for j in range(self.H):
                        plus[j, c] += max(q * self.y[i, c] * self.h[i, j], 0)
                        minus[j, c] += max(-q * self.y[i, c] * self.h[i, j], 0)
        return plus, minus

    def round(self) -> tuple[float, float, bool]:
        """Takes a round; returns the bounds of eq. 8 and of theorem 3.1, and whether every W is positive."""
        plus, minus = self.sums()
        epsilon = self.smoothing
        if epsilon is None:
            both = [v for v in (plus + minus).ravel() if v > 0]
            epsilon = 1e-4 * sum(both) / len(both) if both else 0.0
        d = np.zeros((self.H, self.k))
        for j in range(self.H):
            for c in range(self.k):
                if plus[j, c] + epsilon > 0 or minus[j, c] + epsilon > 0:
                    d[j, c] = 0.5 * math.log((plus[j, c] + epsilon) / (minus[j, c] + epsilon))
        eq8 = theorem = 0.0
        for c in range(self.k):
            gains = [
                sum(b[j] * (math.sqrt(plus[j, c]) - math.sqrt(minus[j, c])) ** 2 for j in range(self.H))
                for b in self.B
            ]
            tolerance = 1e-12 * max(1e-300, (plus + minus)[:, c].max())
            b = self.B[next(n for n, gain in enumerate(gains) if gain >= max(gains) - tolerance)]
            theorem += max(gains)
            for j in range(self.H):
                eq8 += b[j] * (plus[j, c] * (1 - math.exp(-d[j, c])) + minus[j, c] * (1 - math.exp(d[j, c])))
                self.alpha[j, c] += b[j] * d[j, c]
        return eq8 / self.m, theorem / self.m, bool((plus > 0).all() and (minus > 0).all())


# ------------------------------------------------------------------------------------------------- problems

K = 4
COVERINGS: list[dict[str, Any]] = [
    {"kind": "hamming"},
    {"kind": "zero_one"},
    {"kind": "two_sets"},
    {"kind": "weighted_positive", "weight": 6},
    {"kind": "weighted_negative", "weight": 4},
    {"kind": "groups", "groups": [{"labels": ["0", "2"]}, {"labels": ["1", "2", "3"], "weight": 3}]},
    {
        "kind": "rules",
        "rules": [
            {"when": {"has": "1"}, "cover": [{"each": ["2", "1"], "weight": 2}, {"all": ["0", "3"]}]},
            {
                "when": {"any": ["2", "3"]},
                "cover": [{"positives": "each"}, {"negatives": "all", "weight": 2}],
            },
            {"when": {"count": {"at_most": 0}}, "cover": [{"all": ["0", "1"]}, {"all": ["1", "2", "3"]}]},
            {"when": "otherwise", "cover": [{"positives": "all", "weight": 2}, {"negatives": "each"}]},
        ],
    },
    {
        "kind": "rules",
        "rules": [
            {"when": {"every": ["0", "2"]}, "cover": [{"positives": "all"}, {"each": ["1", "3"]}]},
            {"when": {"has_not": "3"}, "cover": [{"negatives": "each"}, {"all": ["0", "1", "2"]}]},
            {"when": {"count": {"at_least": 2, "at_most": 3}}, "cover": [{"all": ["0", "1", "2", "3"]}]},
            {"when": "otherwise", "cover": [{"each": ["0", "1", "2", "3"]}, {"all": ["1", "3"]}]},
        ],
    },
]
TEMPLATES: list[Any] = [
    "parallel",
    "sequential",
    [["0", "2"], ["1"], ["2", "3", "4"]],
    [{"0": 2.0, "2": 0.5}, {"1": 1e-3, "3": 1e-3, "4": 1e-4}, ["0", "3"], {"2": 7.0}],
]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Floats, Any]:
    """Few examples: rare and equal columns, repeated rows, and labels that are on nowhere or everywhere."""
    n = draw(st.integers(1, 12))
    X = draw(features(n, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Y = (rng.random((n, K)) < rng.choice([0.0, 0.2, 0.5, 1.0], K)).astype(int)
    if draw(st.booleans()):
        X[n // 2 :], Y[n // 2 :] = X[: n - n // 2], Y[: n - n // 2]
    return X, Y


def curve_of(learner: AdaBoostLC, X: Any, Y: Any) -> list[dict[str, float]]:
    curve: list[dict[str, float]] = []
    learner.fit_problem(Problem(X, Y), monitor=lambda step: curve.append(dict(step.measures)))
    return curve


@pytest.mark.parametrize("template", TEMPLATES, ids=["parallel", "sequential", "groups", "entries"])
@pytest.mark.parametrize("covering", COVERINGS, ids=lambda covering: covering["kind"])
@example(
    problem=(  # features 0 and 4 have equal columns
        np.array([[1.8, 0.3, 1.0, 1.2, 1.8], [0, 2.4, 0, 1.0, 0], [0, 0, 0, 0.8, 0]]),
        np.array([[0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]]),
    ),
    smoothing=None,
    small_blocks=False,
)
@given(problem=problems(), smoothing=st.sampled_from([None, 0.3]), small_blocks=st.booleans())
@settings(max_examples=15, deadline=None)
def test_training_is_figure_2(
    covering: dict[str, Any],
    template: Any,
    problem: tuple[Floats, Any],
    smoothing: float | None,
    small_blocks: bool,
) -> None:
    X, Y = problem
    literal = Literal(X, Y, covering, template, smoothing)
    learner = AdaBoostLC(rounds=3, covering=covering, template=template, smoothing=smoothing)
    with pytest.MonkeyPatch.context() as patch:
        if small_blocks:  # as if the training part were too large for one block and for the gathered values
            patch.setattr(weight_sums, "BLOCK_SCORES", K)
            patch.setattr(weight_sums, "MAX_GATHERED", 0)
        curve = curve_of(learner, frozen(noncanonical(X, seed=len(X))), Y)
    before = literal.loss()
    for measures in curve:
        eq8, _, _ = literal.round()
        assert measures["covering_loss"] == pytest.approx(literal.loss(), rel=1e-9, abs=1e-9)
        assert measures["covering_error"] * math.log(2) <= measures["covering_loss"] + 1e-12
        assert before - measures["covering_loss"] >= eq8 - 1e-12
        assert eq8 >= -1e-12
        before = measures["covering_loss"]
    for _ in range(3 - len(curve)):  # training stopped because no round would change a weight
        literal.round()
    np.testing.assert_allclose(learner.coef_ * literal.scale, literal.alpha, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(learner.decision_function(X), literal.f(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("template", TEMPLATES, ids=["parallel", "sequential", "groups", "entries"])
@pytest.mark.parametrize("covering", COVERINGS, ids=lambda covering: covering["kind"])
def test_theorem_3_1(covering: dict[str, Any], template: Any) -> None:
    rng = np.random.default_rng(7)
    X = np.where(rng.random((24, 5)) < 0.8, rng.random((24, 5)) + 0.1, 0.0)
    Y = (rng.random((24, K)) < 0.4).astype(int)
    literal = Literal(X, Y, covering, template, 0.0)
    before = literal.loss()
    curve = curve_of(AdaBoostLC(rounds=6, covering=covering, template=template, smoothing=0), X, Y)
    assert len(curve) == 6
    for measures in curve:
        eq8, theorem, positive = literal.round()
        assert positive
        assert measures["covering_loss"] == pytest.approx(literal.loss(), rel=1e-9)
        assert measures["covering_error"] == pytest.approx(literal.error())
        assert eq8 == pytest.approx(theorem)
        assert before - measures["covering_loss"] >= theorem - 1e-12
        before = measures["covering_loss"]


@pytest.mark.parametrize("covering", COVERINGS, ids=lambda covering: covering["kind"])
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([0.0, 1.0, 30.0]))
@settings(max_examples=15, deadline=None)
def test_losses_and_errors_are_those_of_the_paper(covering: dict[str, Any], seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    Y = (rng.random((9, K)) < rng.choice([0.0, 0.4, 1.0], (9, 1))).astype(np.int8)
    scores = np.round(size * rng.normal(size=(9, K)), 1)
    labels = [str(label) for label in range(K)]
    compiled = parse_covering(covering).compile(labels)
    losses, errors = compiled.losses(csr_array(Y), scores), compiled.errors(csr_array(Y), scores)
    for i in range(9):
        cover = literal_cover(covering, {labels[c] for c in np.flatnonzero(Y[i])}, labels)
        z = {labels[c]: -scores[i, c] if Y[i, c] else scores[i, c] for c in range(K)}
        wrong = {labels[c]: (scores[i, c] > 0) != Y[i, c] for c in range(K)}
        assert errors[i] == sum(any(wrong[label] for label in element) for element in cover)
        expected = sum(math.log(1 + sum(math.exp(z[label]) for label in element)) for element in cover)
        assert losses[i] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert errors[i] * math.log(2) <= losses[i] + 1e-12


# --------------------------------------------------------------------------------------------- as a learner


def example_problem(seed: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.random((60, 8)) * (rng.random((60, 8)) < 0.4) * rng.choice([-1, 1], (60, 8))
    return csr_array(X), csr_array((X[:, :K] + 0.1 * rng.normal(size=(60, K)) > 0.1).astype(np.int8))


@pytest.mark.parametrize("template", TEMPLATES, ids=["parallel", "sequential", "groups", "entries"])
def test_resuming_gives_the_same_bits(template: Any) -> None:
    X, Y = example_problem()
    whole = AdaBoostLC(rounds=9, covering=COVERINGS[-1], template=template).fit(X, Y)
    kept: list[State] = []

    def stop_at_four(step: Step) -> None:
        if step.completed == 4:
            kept.append(step.snapshot())
            raise StopTraining

    interrupted = AdaBoostLC(rounds=9, covering=COVERINGS[-1], template=template)
    with pytest.raises(StopTraining):
        interrupted.fit_problem(Problem(X, Y), monitor=stop_at_four)
    steps: list[int] = []
    resumed = AdaBoostLC(rounds=9, covering=COVERINGS[-1], template=template).fit_problem(
        Problem(X, Y), resume=kept[0], monitor=lambda step: steps.append(step.completed)
    )
    assert steps == [5, 6, 7, 8, 9]
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    assert resumed.summary_.facts == whole.summary_.facts


def test_saved_state_predicts_the_same_and_explains_scores() -> None:
    X, Y = example_problem()
    learner = AdaBoostLC(rounds=5).fit(X, Y)
    state = learner.get_state()
    for array in state.values():
        array.flags.writeable = False
    again = AdaBoostLC(rounds=5).set_state(state)
    np.testing.assert_array_equal(again.decision_function(X), learner.decision_function(X))
    scores = learner.decision_function(X)
    for label in range(K):
        explained, weights = learner.explain(X[[4]], label)
        assert set(explained) <= set(X[[4]].indices)
        assert weights.sum() == pytest.approx(scores[4, label])


def test_the_order_of_the_labels_does_not_matter() -> None:
    X, Y = example_problem()
    order = [2, 0, 3, 1]
    names = ["a", "b", "c", "d"]
    covering = {
        "kind": "groups",
        "groups": [{"labels": ["a", "c"]}, {"labels": ["b", "c", "d"], "weight": 2}],
    }
    one = AdaBoostLC(rounds=5, covering=covering).fit(X, Y, context=Context(labels=names))
    covering["groups"].reverse()  # type: ignore[attr-defined]
    other = AdaBoostLC(rounds=5, covering=covering).fit(
        X, Y[:, order], context=Context(labels=[names[column] for column in order])
    )
    np.testing.assert_allclose(other.coef_, one.coef_[:, order], rtol=1e-12, atol=1e-14)


def test_infinite_weights_without_smoothing_are_an_error() -> None:
    X, Y = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.array([[1], [1], [0]])
    context = Context(labels=["billing"], features=["invoice", "hello"])
    with pytest.raises(ParameterError, match=r"'invoice'.*'billing'") as raised:
        AdaBoostLC(smoothing=0).fit(X, Y, context=context)
    assert raised.value.pointer == "/learner/smoothing"


def test_template_groups_name_features() -> None:
    X, Y = example_problem()
    names = [f"word{column}" for column in range(8)]
    learner = AdaBoostLC(rounds=4, template=[["word1", "word2"], ["word5"]])
    learner.fit(X, Y, context=Context(features=names))
    assert not learner.coef_[[0, 3, 4, 6, 7]].any()
    with pytest.raises(ParameterError, match="'word9'") as raised:
        AdaBoostLC(template=[["word1"], ["word2", "word9"]]).fit(X, Y, context=Context(features=names))
    assert raised.value.pointer == "/learner/template/1/1"


def test_template_entries_are_as_large_as_eq_6_allows() -> None:
    X, Y = example_problem()
    learner = AdaBoostLC(rounds=1, smoothing=1.0).fit(X, Y)
    literal = Literal(X.toarray(), Y.toarray(), {"kind": "hamming"}, "parallel", 1.0)
    assert np.abs(literal.B[0] * literal.h).sum(axis=1).max() == pytest.approx(1)
    literal.round()
    np.testing.assert_allclose(learner.coef_ * literal.scale, literal.alpha, rtol=1e-9)


def test_only_the_proportions_of_the_entries_of_a_template_matter() -> None:
    X, Y = example_problem()
    given: list[Any] = [{"1": 4.0, "2": 1.0}, {"5": 3.0, "6": 3.0}]
    halved: list[Any] = [{"1": 2.0, "2": 0.5}, {"5": 1.5, "6": 1.5}]
    names: list[Any] = [{"1": 4.0, "2": 1.0}, ["5", "6"]]
    coefficients = [AdaBoostLC(rounds=4, template=t).fit(X, Y).coef_ for t in (given, halved, names)]
    np.testing.assert_array_equal(coefficients[0], coefficients[1])
    np.testing.assert_array_equal(coefficients[0], coefficients[2])
    assert coefficients[0][[1, 2]].any()


def test_an_unknown_feature_with_an_entry_is_named() -> None:
    X, Y = example_problem()
    with pytest.raises(ParameterError, match="'a/b'") as raised:
        AdaBoostLC(template=[["1"], {"2": 1.0, "a/b": 0.5}]).fit(X, Y)
    assert raised.value.pointer == "/learner/template/1/a~1b"
    wrong: Any
    for wrong in (0, -1.0, float("inf"), "much"):
        with pytest.raises(ParameterError, match="/learner/template/"):
            AdaBoostLC(template=[{"1": wrong}]).fit(X, Y)


def test_training_stops_if_no_weight_changes() -> None:
    learner = AdaBoostLC().fit(np.zeros((3, 2)), np.array([[1, 0], [0, 0], [1, 1]]))
    assert learner.summary_.facts["rounds"] == 0
    assert learner.summary_.warnings
    assert not learner.coef_.any()


@pytest.mark.parametrize(
    "kind", ["hamming", "zero_one", "two_sets", "weighted_positive", "weighted_negative"]
)
def test_margins_of_any_size_do_not_overflow(kind: str) -> None:
    compiled = parse_covering({"kind": kind}).compile(["a", "b", "c"])
    Y = csr_array(np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 1]], dtype=np.int8))
    scores = np.array([[1e300, -1e300, -2.0], [1e4, -1e4, 5.0], [-800.0, 800.0, 0.0], [-1e300, 1e300, 1.0]])
    with np.errstate(all="raise", under="ignore"):
        losses = compiled.losses(Y, scores)
    assert np.isfinite(losses).all()
    assert losses[1] >= 1e4


def test_many_labels_do_not_overflow() -> None:
    names = [str(label) for label in range(3000)]
    losses = (
        parse_covering({"kind": "hamming"}).compile(names).losses(csr_array((1, 3000)), np.zeros((1, 3000)))
    )
    assert losses[0] == pytest.approx(3000 * math.log(2))
