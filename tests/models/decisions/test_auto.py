"""The decision ``auto``, compared with a slow implementation that follows its description."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from models.arrays import Floats
from models.base.validation import as_label_matrix
from models.decisions import AutoDecision, HeldOut
from models.decisions.auto import CANDIDATES, Candidate, choose
from models.splits import stratified_folds

LABELS = ["a", "b", "c", "d"]


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
        self, data: HeldOut, decision: AutoDecision, default: float | None, parents: list[int] | None
    ):
        self.scores, self.relevant = data.scores, data.Y.toarray() == 1
        unknown = np.zeros(self.scores.shape) if data.unknown is None else data.unknown.toarray()
        self.known, self.folds, self.tunable = unknown == 0, data.folds, data.tunable
        self.decision, self.default, self.parents = decision, default, parents

    def cost_of(self, label: int, kind: str) -> float:
        objective: Any = self.decision.optimize
        own = objective.labels.get(LABELS[label])
        value = getattr(own, kind, None)
        return float(getattr(objective, kind) if value is None else value)

    def label_set(self, scores: Floats, thresholds: list[float], at_least_one: bool) -> set[int]:
        best_first = sorted(range(4), key=lambda label: (-scores[label], label))
        chosen = [label for label in best_first if scores[label] > thresholds[label]]
        if at_least_one and not chosen:
            chosen = best_first[:1]
        sets = set(chosen[: self.decision.at_most])
        for label in list(sets):
            while self.parents is not None and (label := self.parents[label]) >= 0:
                sets.add(label)
        return sets

    def value(self, rows: list[int], sets: dict[int, set[int]], measure: str) -> float:
        tp = fp = fn = right = 0
        cost = 0.0
        for i in rows:
            wrong = 0
            for label in range(4):
                if self.known[i, label]:
                    predicted, relevant = label in sets[i], bool(self.relevant[i, label])
                    tp += predicted and relevant
                    fp += predicted and not relevant
                    fn += relevant and not predicted
                    wrong += predicted != relevant
                    if measure == "cost" and predicted != relevant:
                        cost += self.cost_of(label, "missed_label" if relevant else "false_label")
            right += wrong == 0
        if measure == "cost":
            return -cost / len(rows)
        return right / len(rows) if measure == "subset_accuracy" else 2 * tp / (2 * tp + fp + fn)

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

    def free(self, i: int, at_least_one: bool) -> list[int]:
        """Return the known labels of an example whose prediction depends on the threshold of all labels."""
        best_first = sorted(range(4), key=lambda label: (-self.scores[i, label], label))
        allowed = best_first[int(at_least_one) : self.decision.at_most]
        return [label for label in allowed if self.known[i, label]]

    def of_all(self, rows: list[int], at_least_one: bool, measure: str) -> float:
        if measure == "subset_accuracy":
            return self.of_all_sets(rows, at_least_one)
        scores = [self.scores[i, label] for i in rows for label in self.free(i, at_least_one)]
        if not scores:
            return 0.0
        best, best_value = 0.0, -np.inf
        parents, self.parents = self.parents, None  # ancestors are added afterwards
        for threshold in self.thresholds_between(scores):
            sets = {i: self.label_set(self.scores[i], [threshold] * 4, at_least_one) for i in rows}
            value = self.value(rows, sets, measure)
            if value > best_value + 1e-12:
                best, best_value = threshold, value
        self.parents = parents
        return best

    def of_all_sets(self, rows: list[int], at_least_one: bool) -> float:
        """Return the middle of the highest interval of thresholds with the most right label sets."""
        intervals = []
        for i in rows:
            free = self.free(i, at_least_one)
            fixed = self.label_set(self.scores[i], [np.inf] * 4, at_least_one)
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
        if candidate.thresholds == "zero":
            return [0.0] * 4
        of_all = self.of_all(rows, candidate.at_least_one, measure)
        if candidate.thresholds == "global":
            return [of_all] * 4
        own = [self.of_label(label, rows) for label in range(4)]
        if candidate.thresholds == "per_label":
            return own
        counts = [self.relevant[rows, j].sum() if self.tunable[j] else 0 for j in range(4)]
        return [n / (n + 20) * t + 20 / (n + 20) * of_all for n, t in zip(counts, own, strict=True)]

    def nested_value(self, candidate: Candidate, measure: str) -> float:
        sets: dict[int, set[int]] = {}
        for fold in range(3):
            others = [i for i in range(len(self.folds)) if self.folds[i] != fold]
            thresholds = self.thresholds(candidate, others, measure)
            for i in np.flatnonzero(self.folds == fold).tolist():
                sets[i] = self.label_set(self.scores[i], thresholds, candidate.at_least_one)
        return self.value(list(range(len(self.folds))), sets, measure)

    def choose(self, measure: str) -> Candidate:
        best, best_value = CANDIDATES[0], -np.inf
        for candidate in CANDIDATES:
            if candidate.thresholds != "zero" or self.default is not None:
                value = self.nested_value(candidate, measure)
                if value > best_value + 1e-12:
                    best, best_value = candidate, value
        return best


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
        (1, {"default": None}),
        (2, {"at_most": 1}),
        (3, {"unknown": True}),
        (4, {"ties": True}),
        (5, {"parents": [-1, 0, 1, -1]}),
        (6, {"at_most": 2, "unknown": True, "ties": True, "default": None}),
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
    choice = choose(
        decision,
        data,
        labels=LABELS,
        default=default,
        parents=None if parents is None else np.array(parents),
    )
    slow = Slow(data, decision, default, parents)
    measure = optimize if isinstance(optimize, str) else "cost"
    sign = -1 if measure == "cost" else 1
    for candidate, values in choice.values.items():
        assert sign * values[measure] == pytest.approx(slow.nested_value(candidate, measure), abs=1e-12), (
            candidate
        )
    assert choice.candidate == slow.choose(measure)
    # The thresholds lie between the same scores, so that they predict the same label sets.
    thresholds = slow.thresholds(choice.candidate, list(range(len(data.scores))), measure)
    expected = [slow.label_set(row, thresholds, choice.candidate.at_least_one) for row in data.scores]
    assert [set(np.flatnonzero(row).tolist()) for row in choice.rule.predicted(data.scores)] == expected
    np.testing.assert_allclose(choice.rule.thresholds, thresholds, atol=1e-12)


def test_of_equally_good_candidates_the_simplest_is_chosen() -> None:
    relevant = np.tile(np.eye(4, dtype=int), (6, 1))
    scores = np.where(relevant == 1, 1.0, -1.0)
    Y = as_label_matrix(relevant)
    data = HeldOut(scores, Y, None, stratified_folds(Y, 3, seed=0), np.ones(4, dtype=bool))
    decision = AutoDecision(kind="auto")
    for default, expected in ((0.0, "zero"), (None, "global")):
        choice = choose(decision, data, labels=LABELS, default=default, parents=None)
        assert choice.candidate == Candidate(expected, at_least_one=False)  # type: ignore[arg-type]
        assert {values["f1_micro"] for values in choice.values.values()} == {1.0}


def test_the_values_are_those_of_examples_on_which_nothing_was_tuned() -> None:
    """On noise, tuned thresholds look good on the examples on which they were tuned."""
    rng = np.random.default_rng(0)
    relevant = rng.random((60, 4)) < 0.1
    relevant[:3] = True
    Y = as_label_matrix(relevant.astype(int))
    data = HeldOut(rng.normal(size=(60, 4)), Y, None, stratified_folds(Y, 3, seed=0), np.ones(4, dtype=bool))
    choice = choose(AutoDecision(kind="auto"), data, labels=LABELS, default=0.0, parents=None)
    tuned = choice.rule.predicted(data.scores)
    optimistic = 2 * (tuned & relevant).sum() / (tuned.sum() + relevant.sum())
    assert choice.values[choice.candidate]["f1_micro"] < optimistic
