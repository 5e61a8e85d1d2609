"""The decision ``auto``: chooses and tunes a rule on held-out scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, Self, TypeAlias

import numpy as np

from models.arrays import Bools, Floats, Ints, Labels
from models.decisions.apply import LabelSetRule
from models.decisions.curves import BestF1, Cuts, LeastCost, best_f1, between, label_thresholds
from models.decisions.held_out import N_FOLDS, HeldOut, rows_of
from models.decisions.rules import AutoDecision, CostObjective
from models.decisions.values import Costs, Objective, SetCounts
from models.labels.ranking import ranking

ThresholdKind: TypeAlias = Literal["none", "zero", "global", "shrunk"]
"""How the thresholds of a candidate are chosen; ``none`` predicts the best label only."""

SHRINKAGE = 10
"""Examples with which a label's own threshold and that of all labels have the same weight in ``shrunk``."""

FBR = 0.1
"""``TunedThresholdDecision.fbr`` for the thresholds of labels."""

MAX_AT_MOST = 3
"""Largest number of labels of all training examples that limits label sets."""

_ROUNDING = 1e-9
"""Differences of values that come from rounding."""


@dataclass(frozen=True)
class LabelSetSizes:
    """How many labels the training examples have.

    Attributes:
        most: the largest number of labels of an example.
        exactly_one: whether every example has exactly one label.
    """

    most: int
    exactly_one: bool

    @classmethod
    def of(cls, Y: Labels, unknown: Labels | None = None) -> Self:
        """Count the labels of g examples, (g, k). An example with unknown labels could have more of them."""
        sizes = np.diff(Y.indptr)
        return cls(int(sizes.max(initial=0)), unknown is None and bool((sizes == 1).all()))


class Candidate(NamedTuple):
    """A way to turn scores into label sets.

    Attributes:
        thresholds: how thresholds are chosen.
        at_least_one: whether at least one label is predicted.
        at_most: maximum number of predicted labels; None for no limit.
    """

    thresholds: ThresholdKind
    at_least_one: bool
    at_most: int | None


@dataclass(frozen=True)
class AutoChoice:
    """The chosen candidate.

    Attributes:
        candidate: the candidate.
        rule: its rule, tuned on all held-out scores.
        values: for each candidate its values on held-out examples on which it was not tuned, by measure.
    """

    candidate: Candidate
    rule: LabelSetRule
    values: dict[Candidate, dict[str, float]]


def tune_auto(
    decision: AutoDecision,
    held_out: HeldOut,
    *,
    labels: Sequence[str],
    sizes: LabelSetSizes,
    default: float | None,
    parents: Ints | None,
) -> AutoChoice:
    """Choose and tune a candidate.

    If every training example has exactly one label, so has every label set, unless mistakes have costs.
    Otherwise each candidate is tuned on the held-out scores of all folds but one and valued on this fold, for
    each fold. Candidates count as equal to the best one if their value is not worse by more than the standard
    error of the difference (Breiman, Friedman, Olshen and Stone 1984, section 3.4.3), so that the choice
    depends little on the folds. Of these, those remain that are equal to the best one by right label sets,
    too, or by F1 if right label sets are the objective. The simplest one is chosen.

    Args:
        decision: the decision.
        held_out: the held-out scores.
        labels: the k labels, in label order.
        sizes: how many labels the training examples have.
        default: the threshold of a label that cannot be tuned, and of the candidate ``zero``; None if the
            scores have no meaningful threshold of their own. That candidate is then left out.
        parents: (k,) index of each label's parent, if ancestors of predicted labels are predicted, too.
    """
    objective: Objective = decision.optimize if isinstance(decision.optimize, str) else decision.optimize.kind
    tuner = _CandidateTuner(decision, held_out, labels, default, parents)
    candidates = _candidates(decision, sizes, len(labels), default, parents)
    counts = {candidate: tuner.counts(candidate) for candidate in candidates}
    values = {candidate: found.values() for candidate, found in counts.items()}
    second: Objective = "f1_micro" if objective == "subset_accuracy" else "subset_accuracy"
    equals = _equal_to_best(candidates, counts, values, objective)
    chosen = _equal_to_best(equals, counts, values, second)[0]
    return AutoChoice(chosen, tuner.rule(chosen, N_FOLDS), values)


def _equal_to_best(
    candidates: Sequence[Candidate],
    counts: dict[Candidate, SetCounts],
    values: dict[Candidate, dict[str, float]],
    objective: Objective,
) -> list[Candidate]:
    """Return the candidates that are not worse than the best one by more than a standard error.

    Of n examples, one more or less that is right is such a difference.
    """
    sign = -1 if objective == "cost" else 1
    best = max(candidates, key=lambda candidate: sign * values[candidate][objective])
    of_best = counts[best].influence(objective)

    def is_equal(candidate: Candidate) -> bool:
        loss = sign * (values[best][objective] - values[candidate][objective])
        difference = of_best - counts[candidate].influence(objective)
        n = len(difference)
        return bool(loss <= np.sqrt((difference**2).sum() * n / max(1, n - 1)) + _ROUNDING)

    return [*filter(is_equal, candidates)]


def _candidates(
    decision: AutoDecision, sizes: LabelSetSizes, k: int, default: float | None, parents: Ints | None
) -> list[Candidate]:
    """Return the candidates, the simplest first."""
    limits: list[int | None] = [decision.at_most]
    candidates: list[Candidate] = []
    if parents is None:
        candidates.append(Candidate("none", at_least_one=True, at_most=1))
        if sizes.exactly_one and isinstance(decision.optimize, str):
            return candidates
        if max(sizes.most, 1) < min(k, decision.at_most or k, MAX_AT_MOST + 1):
            limits.insert(0, max(sizes.most, 1))
    kinds: tuple[ThresholdKind, ...] = ("zero", "global", "shrunk")
    candidates += [
        Candidate(thresholds, at_least_one, at_most)
        for thresholds in kinds
        for at_most in limits
        for at_least_one in (False, True)
        if thresholds != "zero" or default is not None
    ]
    return candidates


class _CandidateTuner:
    """The rules of all candidates, tuned on all folds but each one, and on all of them.

    The parts 0 … ``N_FOLDS`` − 1 are the examples outside of a fold; the part ``N_FOLDS`` is all examples.
    """

    def __init__(
        self,
        decision: AutoDecision,
        held_out: HeldOut,
        labels: Sequence[str],
        default: float | None,
        parents: Ints | None,
    ) -> None:
        self._optimize = decision.optimize
        self._default = default
        self._parents = parents
        self._held_out = held_out
        self._scores = held_out.scores
        self._folds = held_out.folds
        self._relevant, self._known = held_out.relevant(), held_out.known()
        self._costs = (
            Costs.of(decision.optimize, labels) if isinstance(decision.optimize, CostObjective) else None
        )
        self._parts = np.array([*(self._folds != fold for fold in range(N_FOLDS)), self._folds >= 0])
        self._positives = np.array([self._relevant[part].sum(axis=0) for part in self._parts])
        self._positives[:, ~held_out.tunable] = 0
        self._of_labels = cache(self._tune_labels)
        self._of_all = cache(self._tune_global)

    def _tune_labels(self) -> Floats:
        """Return the best threshold of each label on each part, (``N_FOLDS`` + 1, k)."""
        return label_thresholds(
            self._scores,
            self._relevant,
            self._known,
            self._parts,
            self._held_out.tunable,
            default=self._default,
            goals=[BestF1(FBR)] * self._scores.shape[1] if self._costs is None else self._costs.goals(),
        )

    def _tune_global(self, at_least_one: bool, at_most: int | None) -> list[float]:
        """Return the best threshold of all labels on each part.

        A label that is predicted or not whatever the threshold is gets the score ∞ or −∞.
        """
        scores, k = self._scores, self._scores.shape[1]
        if at_least_one or (at_most is not None and at_most < k):
            order = ranking(scores, at_most)
            limited = np.full(scores.shape, -np.inf)
            np.put_along_axis(limited, order, np.take_along_axis(scores, order, axis=1), axis=1)
            if at_least_one:
                limited[np.arange(len(scores)), order[:, 0]] = np.inf
            scores = limited
        return [
            self._best_of_all(scores[part], self._relevant[part], rows_of(self._known, part))
            for part in self._parts
        ]

    def _best_of_all(self, scores: Floats, relevant: Bools, known: Bools | None) -> float:
        if self._optimize == "subset_accuracy":
            return best_for_sets(scores, relevant, known)
        if self._costs is None:
            cuts = Cuts.of(scores, relevant, known)
            return cuts.threshold(best_f1(cuts)[0])
        weighted = Cuts.of(
            scores, relevant, known, tp_weights=self._costs.missed_label, fp_weights=self._costs.false_label
        )
        return weighted.threshold(LeastCost().cut(weighted))

    def rule(self, candidate: Candidate, part: int) -> LabelSetRule:
        """Return the rule of a candidate that is tuned on a part."""
        thresholds = self._thresholds(candidate, part)
        return LabelSetRule(thresholds, int(candidate.at_least_one), candidate.at_most, self._parents)

    def _thresholds(self, candidate: Candidate, part: int) -> Floats:
        k = self._scores.shape[1]
        match candidate.thresholds:
            case "none":
                return np.zeros(k)
            case "zero":
                return np.full(k, self._default)
        of_all = np.full(k, self._of_all(candidate.at_least_one, candidate.at_most)[part])
        if candidate.thresholds == "global":
            return of_all
        weight = self._positives[part] / (self._positives[part] + SHRINKAGE)
        shrunk: Floats = weight * self._of_labels()[part] + (1 - weight) * of_all
        return shrunk

    def counts(self, candidate: Candidate) -> SetCounts:
        """Return what a candidate that is tuned on the other folds predicts for each fold."""
        parts = []
        for fold in range(N_FOLDS):
            rows = self._folds == fold
            predicted = self.rule(candidate, fold).predicted(self._scores[rows])
            parts.append(
                SetCounts.of(predicted, self._relevant[rows], rows_of(self._known, rows), self._costs)
            )
        return SetCounts.concatenate(parts)


def best_for_sets(scores: Floats, relevant: Bools, known: Bools | None = None) -> float:
    """Return the threshold with the most right label sets; the largest one if several are equally good.

    The label set of an example is right if the threshold is at least the highest score of its other labels,
    and below the lowest score of its relevant labels.

    Args:
        scores: (h, k) scores. A pair with the score ∞ is always predicted, with −∞ never.
        relevant: (h, k) whether each example has each label.
        known: (h, k) false for unknown labels, which do not count; None if there are none.

    >>> scores, relevant = np.array([[3.0, 1.0], [4.0, 2.0]]), np.array([[True, False], [True, False]])
    >>> best_for_sets(scores, relevant)
    2.5
    """
    others = ~relevant if known is None else ~relevant & known
    start = np.where(others, scores, -np.inf).max(axis=1)
    end = np.where(relevant, scores, np.inf).min(axis=1)
    possible = start < end
    start, end = np.sort(start[possible]), np.sort(end[possible])
    places = np.unique(np.concatenate([start, end]))
    places = places[np.isfinite(places)]
    if not len(places):
        return 0.0
    # Between two consecutive places, the number of right label sets is constant.
    right = np.searchsorted(start, places, side="right") - np.searchsorted(end, places, side="right")
    best = len(places) - 1 - int(np.argmax(right[::-1]))
    if np.count_nonzero(start == -np.inf) > right[best]:
        return float(places[0]) - 1.0
    if best == len(places) - 1:
        return float(places[-1]) + 1.0
    return between(float(places[best]), float(places[best + 1]))
