"""The decision ``auto``, compared with a slow implementation that follows its description."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from models.arrays import Floats
from models.base.validation import as_label_matrix
from models.decisions import AutoDecision, HeldOut, auto
from models.decisions.auto import AutoChoice, Candidate, LabelSetSizes, tune_auto
from models.decisions.values import SetCounts
from models.splits import stratified_folds

LABELS = ["a", "b", "c", "d"]
ANY = LabelSetSizes(most=4, exactly_one=False)
AT_MOST_2 = LabelSetSizes(most=2, exactly_one=False)


def held_out(seed: int, *, n: int = 40, unknown: bool = False, ties: bool = False) -> HeldOut:
    """Return scores that depend on the labels, of which the last one is too rare to be tuned."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 4)) < [0.5, 0.3, 0.15, 0.0]
    relevant[:2, 3] = True
    scores = rng.normal(size=(n, 4)) + 1.5 * relevant - 1
    if ties:
        scores = np.round(scores)
    mask = (rng.random((n, 4)) < 0.2) & ~relevant
    Y = as_label_matrix(relevant.astype(int))
    return HeldOut(
        scores=scores,
        Y=Y,
        unknown=as_label_matrix(mask.astype(int)) if unknown else None,
        folds=stratified_folds(Y, 3, seed=seed),
        tunable=np.array([True, True, True, False]),
    )


class Slow:
    """Loops over examples, labels and thresholds."""

    def __init__(
        self,
        data: HeldOut,
        decision: AutoDecision,
        sizes: LabelSetSizes,
        default: float | None,
        parents: list[int] | None,
    ):
        self.scores, self.relevant = data.scores, data.Y.toarray() == 1
        unknown = np.zeros(self.scores.shape) if data.unknown is None else data.unknown.toarray()
        self.known, self.folds, self.tunable = unknown == 0, data.folds, data.tunable
        self.decision, self.sizes, self.default, self.parents = decision, sizes, default, parents

    def candidates(self) -> list[Candidate]:
        kinds: list[Any] = ["global", "shrunk"]
        kinds = kinds if self.default is None else ["zero", *kinds]
        limits = [self.decision.at_most]
        if self.parents is None and self.sizes.most < min(4, self.decision.at_most or 4):
            limits = [self.sizes.most, self.decision.at_most]
        found = [Candidate(kind, least, most) for kind in kinds for most in limits for least in (False, True)]
        return found if self.parents is not None else [Candidate("none", True, 1), *found]

    def cost_of(self, label: int, kind: str) -> float:
        objective: Any = self.decision.optimize
        own = objective.labels.get(LABELS[label])
        value = getattr(own, kind, None)
        return float(getattr(objective, kind) if value is None else value)

    def label_set(
        self, scores: Floats, thresholds: list[float], at_least_one: bool, at_most: int | None
    ) -> set[int]:
        best_first = sorted(range(4), key=lambda label: (-scores[label], label))
        chosen = [label for label in best_first if scores[label] > thresholds[label]]
        if at_least_one and not chosen:
            chosen = best_first[:1]
        sets = set(chosen[:at_most])
        for label in list(sets):
            while self.parents is not None and (label := self.parents[label]) >= 0:
                sets.add(label)
        return sets

    def parts(self, rows: list[int], sets: dict[int, set[int]], measure: str) -> Floats:
        """Return the numerator and the denominator of the measure that each example adds to."""
        found: list[tuple[float, float]] = []
        for i in rows:
            tp = wrong = 0
            cost = 0.0
            for label in range(4):
                if self.known[i, label]:
                    predicted, relevant = label in sets[i], bool(self.relevant[i, label])
                    tp += predicted and relevant
                    wrong += predicted != relevant
                    if measure == "cost" and predicted != relevant:
                        cost += self.cost_of(label, "missed_label" if relevant else "false_label")
            if measure == "f1_micro":
                found.append((2 * tp, 2 * tp + wrong))
            else:
                found.append((-cost if measure == "cost" else wrong == 0, 1))
        return np.array(found, dtype=np.float64)

    def value(self, rows: list[int], sets: dict[int, set[int]], measure: str) -> float:
        return ratio(self.parts(rows, sets, measure))

    @staticmethod
    def thresholds_between(values: list[float]) -> list[float]:
        distinct = sorted(set(values))
        between = [(low + high) / 2 for low, high in pairwise(distinct)]
        return [distinct[-1] + 1, *reversed(between), distinct[0] - 1]

    def of_label(self, label: int, rows: list[int]) -> float:
        own = [i for i in rows if self.known[i, label]]
        if not self.tunable[label] or not any(self.relevant[i, label] for i in own):
            return max(self.scores[i, label] for i in rows) if self.default is None else self.default
        best, best_value = 0.0, -np.inf
        for threshold in self.thresholds_between([self.scores[i, label] for i in own]):
            tp = sum(self.scores[i, label] > threshold and self.relevant[i, label] for i in own)
            fp = sum(self.scores[i, label] > threshold and not self.relevant[i, label] for i in own)
            fn = sum(self.relevant[i, label] for i in own) - tp
            if isinstance(self.decision.optimize, str):
                value = 2 * tp / (2 * tp + fp + fn)
            else:
                value = -fp * self.cost_of(label, "false_label") - fn * self.cost_of(label, "missed_label")
            if value > best_value:
                best, best_value = threshold, value
        if isinstance(self.decision.optimize, str) and best_value < 0.1:
            return float(max(self.scores[i, label] for i in own))
        return float(best)

    def free(self, i: int, at_least_one: bool, at_most: int | None) -> list[int]:
        """Return the known labels of an example whose prediction depends on the threshold of all labels."""
        best_first = sorted(range(4), key=lambda label: (-self.scores[i, label], label))
        allowed = best_first[int(at_least_one) : at_most]
        return [label for label in allowed if self.known[i, label]]

    def of_all(self, rows: list[int], at_least_one: bool, at_most: int | None, measure: str) -> float:
        if measure == "subset_accuracy":
            return self.of_all_sets(rows, at_least_one, at_most)
        scores = [self.scores[i, label] for i in rows for label in self.free(i, at_least_one, at_most)]
        if not scores:
            return 0.0
        best, best_value = 0.0, -np.inf
        parents, self.parents = self.parents, None  # ancestors are added afterwards
        for threshold in self.thresholds_between(scores):
            sets = {i: self.label_set(self.scores[i], [threshold] * 4, at_least_one, at_most) for i in rows}
            value = self.value(rows, sets, measure)
            if value > best_value + 1e-12:
                best, best_value = threshold, value
        self.parents = parents
        return best

    def of_all_sets(self, rows: list[int], at_least_one: bool, at_most: int | None) -> float:
        """Return the middle of the highest interval of thresholds with the most right label sets."""
        intervals = []
        for i in rows:
            free = self.free(i, at_least_one, at_most)
            fixed = self.label_set(self.scores[i], [np.inf] * 4, at_least_one, at_most)
            others = {label for label in range(4) if self.known[i, label]} - set(free)
            if any((label in fixed) != self.relevant[i, label] for label in others):
                continue
            start = max(
                (self.scores[i, label] for label in free if not self.relevant[i, label]), default=-np.inf
            )
            end = min((self.scores[i, label] for label in free if self.relevant[i, label]), default=np.inf)
            if start < end:
                intervals.append((start, end))
        places = sorted({place for interval in intervals for place in interval if np.isfinite(place)})
        if not places:
            return 0.0
        gaps = [(places[0] - 2, places[0]), *pairwise(places), (places[-1], places[-1] + 2)]
        right = [sum(start <= low and high <= end for start, end in intervals) for low, high in gaps[1:-1]]
        right = [sum(start == -np.inf for start, _ in intervals), *right]
        right.append(sum(end == np.inf for _, end in intervals))
        best = max(range(len(gaps)), key=lambda gap: (right[gap], gap))
        return sum(gaps[best]) / 2

    def thresholds(self, candidate: Candidate, rows: list[int], measure: str) -> list[float]:
        if candidate.thresholds in ("none", "zero"):
            return [0.0] * 4
        of_all = self.of_all(rows, candidate.at_least_one, candidate.at_most, measure)
        if candidate.thresholds == "global":
            return [of_all] * 4
        own = [self.of_label(label, rows) for label in range(4)]
        counts = [self.relevant[rows, j].sum() if self.tunable[j] else 0 for j in range(4)]
        return [n / (n + 10) * t + 10 / (n + 10) * of_all for n, t in zip(counts, own, strict=True)]

    def nested_sets(self, candidate: Candidate, measure: str) -> dict[int, set[int]]:
        sets: dict[int, set[int]] = {}
        for fold in range(3):
            others = [i for i in range(len(self.folds)) if self.folds[i] != fold]
            thresholds = self.thresholds(candidate, others, measure)
            for i in np.flatnonzero(self.folds == fold).tolist():
                sets[i] = self.label_set(
                    self.scores[i], thresholds, candidate.at_least_one, candidate.at_most
                )
        return sets

    def choose(self, measure: str) -> tuple[Candidate, dict[Candidate, float]]:
        """Return the choice, and the value of each candidate."""
        rows = list(range(len(self.folds)))
        second = "f1_micro" if measure == "subset_accuracy" else "subset_accuracy"
        sets = {candidate: self.nested_sets(candidate, measure) for candidate in self.candidates()}
        parts = {candidate: self.parts(rows, found, measure) for candidate, found in sets.items()}
        values = {candidate: ratio(found) for candidate, found in parts.items()}
        of_second = {candidate: self.parts(rows, found, second) for candidate, found in sets.items()}
        chosen = equal_to_best(equal_to_best(list(sets), parts), of_second)[0]
        return chosen, values


def equal_to_best(candidates: list[Candidate], parts: dict[Candidate, Floats]) -> list[Candidate]:
    """Return the candidates that are not worse than the best by more than a standard error."""
    values = {candidate: ratio(parts[candidate]) for candidate in candidates}
    influence = {candidate: influences(parts[candidate]) for candidate in candidates}
    best = max(candidates, key=lambda candidate: round(values[candidate], 12))
    n = len(influence[best])
    return [
        candidate
        for candidate in candidates
        if values[best] - values[candidate]
        <= np.sqrt(((influence[best] - influence[candidate]) ** 2).sum() * n / (n - 1)) + 1e-7
    ]


def ratio(parts: Floats) -> float:
    numerator, denominator = parts.sum(axis=0).tolist()
    return float(numerator / denominator)


def influences(parts: Floats) -> Floats:
    """Return how fast a measure grows with the weight of each example, found by changing the weight."""
    step = 1e-4

    def changed(example: int, weight: float) -> float:
        weights = np.ones((len(parts), 1))
        weights[example] = weight
        return ratio(parts * weights)

    return np.array([(changed(i, 1 + step) - changed(i, 1 - step)) / (2 * step) for i in range(len(parts))])


OBJECTIVES: list[Any] = [
    "f1_micro",
    "subset_accuracy",
    {"kind": "cost", "missed_label": 3.0, "labels": {"b": {"false_label": 5.0}, "c": {"missed_label": 1.5}}},
]


@pytest.mark.parametrize("optimize", OBJECTIVES, ids=["f1_micro", "subset_accuracy", "cost"])
@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (0, {}),
        (1, {"default": None, "sizes": AT_MOST_2}),
        (2, {"at_most": 1}),
        (3, {"unknown": True, "sizes": AT_MOST_2}),
        (4, {"ties": True}),
        (5, {"parents": [-1, 0, 1, -1], "sizes": AT_MOST_2}),
        (6, {"at_most": 2, "unknown": True, "ties": True, "default": None, "sizes": AT_MOST_2}),
    ],
)
def test_the_choice_and_its_values_are_those_of_the_slow_implementation(
    seed: int, options: dict[str, Any], optimize: Any
) -> None:
    decision = AutoDecision.model_validate(
        {"kind": "auto", "optimize": optimize, "at_most": options.get("at_most")}
    )
    data = held_out(seed, unknown=options.get("unknown", False), ties=options.get("ties", False))
    default, parents = options.get("default", 0.0), options.get("parents")
    sizes = options.get("sizes", ANY)
    choice = tune_auto(
        decision,
        data,
        labels=LABELS,
        sizes=sizes,
        default=default,
        parents=None if parents is None else np.array(parents),
    )
    slow = Slow(data, decision, sizes, default, parents)
    measure = optimize if isinstance(optimize, str) else "cost"
    sign = -1 if measure == "cost" else 1
    chosen, expected_values = slow.choose(measure)
    assert {
        candidate: sign * values[measure] for candidate, values in choice.values.items()
    } == pytest.approx(expected_values, abs=1e-12)
    assert choice.candidate == chosen
    # The thresholds lie between the same scores, so that they predict the same label sets.
    thresholds = slow.thresholds(chosen, list(range(len(data.scores))), measure)
    expected = [slow.label_set(row, thresholds, chosen.at_least_one, chosen.at_most) for row in data.scores]
    assert [set(np.flatnonzero(row).tolist()) for row in choice.rule.predicted(data.scores)] == expected
    np.testing.assert_allclose(choice.rule.thresholds, thresholds, atol=1e-12)


def choose(relevant: Any, scores: Floats, *, seed: int = 0, **options: Any) -> AutoChoice:
    """Choose on label sets that are all known and tunable."""
    Y = as_label_matrix(np.asarray(relevant, dtype=int))
    data = HeldOut(scores, Y, None, stratified_folds(Y, 3, seed=seed), np.ones(4, dtype=bool))
    decision = AutoDecision.model_validate({"kind": "auto", **options.pop("decision", {})})
    tuned = {"labels": LABELS, "sizes": LabelSetSizes.of(Y), "default": 0.0, "parents": None, **options}
    return tune_auto(decision, data, **tuned)


def test_of_equally_good_candidates_the_simplest_is_chosen() -> None:
    relevant = np.tile(np.eye(4, dtype=int), (6, 1))
    scores = np.where(relevant == 1, 1.0, -1.0)
    for default, expected in ((0.0, "zero"), (None, "global")):
        choice = choose(relevant, scores, sizes=ANY, default=default)
        assert choice.candidate.thresholds == "none"
        # An ancestor is a second label, so the best label alone is no candidate.
        choice = choose(relevant, scores, default=default, parents=np.full(4, -1))
        assert choice.candidate == Candidate(expected, at_least_one=False, at_most=None)  # type: ignore[arg-type]
        assert {values["f1_micro"] for values in choice.values.values()} == {1.0}


def test_if_every_example_has_exactly_one_label_so_has_every_label_set_unless_mistakes_have_costs() -> None:
    relevant = np.tile(np.eye(4, dtype=int), (6, 1))
    scores = np.random.default_rng(0).normal(size=relevant.shape) + relevant
    choice = choose(relevant, scores)
    assert [*choice.values] == [Candidate("none", at_least_one=True, at_most=1)]
    assert (choice.rule.predicted(scores - 100).sum(axis=1) == 1).all()
    assert len(choose(relevant, scores, decision={"optimize": {"kind": "cost"}}).values) == 13
    unknown = as_label_matrix(1 - relevant)
    assert not LabelSetSizes.of(as_label_matrix(relevant), unknown).exactly_one


@pytest.mark.parametrize("objective", ["f1_micro", "subset_accuracy"])
@pytest.mark.parametrize(("n_wrong", "n_equal"), [(1, 2), (8, 1)])
def test_one_right_example_more_decides_nothing(objective: Any, n_wrong: int, n_equal: int) -> None:
    simple, other = Candidate("zero", False, None), Candidate("shrunk", False, None)
    relevant = np.ones((200, 1), dtype=bool)
    predicted = relevant.copy()
    predicted[:n_wrong] = False
    counts = {simple: SetCounts.of(predicted, relevant, None), other: SetCounts.of(relevant, relevant, None)}
    values = {candidate: found.values() for candidate, found in counts.items()}
    equal = auto._equal_to_best([simple, other], counts, values, objective)
    assert equal == [simple, other][-n_equal:]


def test_label_sets_depend_less_on_the_folds_than_with_the_best_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def variety(problem: int) -> float:
        """Return how often two draws of the folds give another decision on a label of a new document."""
        rng = np.random.default_rng(problem)
        relevant, unseen = rng.random((300, 4)) < 0.3, rng.random((1000, 4)) < 0.3
        scores, new = (rng.normal(size=part.shape) + 2 * part - 1 for part in (relevant, unseen))
        rules = [choose(relevant, scores, seed=seed).rule for seed in range(8)]
        share = np.mean([rule.predicted(new) for rule in rules], axis=0)
        return float((2 * share * (1 - share)).mean())

    with_equals = sum(map(variety, range(8)))

    def only_the_best(
        candidates: list[Candidate], _counts: Any, values: dict[Candidate, dict[str, float]], objective: str
    ) -> list[Candidate]:
        return [max(candidates, key=lambda candidate: values[candidate][objective])]

    monkeypatch.setattr(auto, "_equal_to_best", only_the_best)
    assert with_equals < 0.7 * sum(map(variety, range(8)))


def test_the_values_are_those_of_examples_on_which_nothing_was_tuned() -> None:
    """On noise, tuned thresholds look good on the examples on which they were tuned."""
    rng = np.random.default_rng(0)
    relevant = rng.random((60, 4)) < 0.1
    relevant[:3] = True
    scores = rng.normal(size=(60, 4))
    choice = choose(relevant, scores)
    tuned = choice.rule.predicted(scores)
    optimistic = 2 * (tuned & relevant).sum() / (tuned.sum() + relevant.sum())
    assert choice.values[choice.candidate]["f1_micro"] < optimistic
