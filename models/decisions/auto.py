"""The decision ``auto``: chooses and tunes thresholds on held-out scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.decisions.cuts import LabelCuts, PooledCuts, best_f1, least_cost
from models.decisions.exact_sets import best_for_sets
from models.decisions.held_out import N_FOLDS, HeldOut, rows_of
from models.decisions.label_sets import LabelSetRule
from models.decisions.rules import AutoDecision, CostObjective
from models.decisions.thresholds import Select, thresholds_of_labels, with_best_f1
from models.decisions.values import Costs, Tally
from models.labels.ranking import ranking

ThresholdKind: TypeAlias = Literal["zero", "global", "per_label", "shrunk"]
"""How the thresholds of a candidate are chosen."""

SHRINKAGE = 20
"""Examples with which a label's own threshold and that of all labels have the same weight in ``shrunk``."""

FBR = 0.1
"""``TunedThresholdDecision.fbr`` for the thresholds of labels."""


class Candidate(NamedTuple):
    """A way to choose thresholds.

    Attributes:
        thresholds: how they are chosen.
        at_least_one: whether at least one label is predicted.
    """

    thresholds: ThresholdKind
    at_least_one: bool


CANDIDATES = [
    Candidate(thresholds, at_least_one)
    for thresholds in ("zero", "global", "per_label", "shrunk")
    for at_least_one in (False, True)
]
"""All candidates, the simplest first."""


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


def choose(
    decision: AutoDecision,
    held_out: HeldOut,
    *,
    labels: Sequence[str],
    default: float | None,
    parents: Ints | None,
) -> AutoChoice:
    """Choose and tune the best candidate.

    Each candidate is tuned on the held-out scores of all folds but one and valued on this fold, for each
    fold. The sums over the folds decide. Of equal candidates, the simplest is chosen.

    Args:
        decision: the decision.
        held_out: the held-out scores.
        labels: the k labels, in label order.
        default: the threshold of a label that cannot be tuned, and of the candidate ``zero``; None if the
            scores have no meaningful threshold of their own. That candidate is then left out.
        parents: (k,) index of each label's parent, if ancestors of predicted labels are predicted, too.
    """
    objective = decision.optimize if isinstance(decision.optimize, str) else decision.optimize.kind
    tuning = _Tuning(decision, held_out, labels, default, parents)
    candidates = [c for c in CANDIDATES if default is not None or c.thresholds != "zero"]
    values = {candidate: tuning.held_out_values(candidate) for candidate in candidates}
    sign = -1 if objective == "cost" else 1
    best = max(candidates, key=lambda candidate: sign * values[candidate][objective])
    return AutoChoice(best, tuning.rule(best, N_FOLDS), values)


class _Tuning:
    """The thresholds of all candidates, tuned on all folds but each one, and on all of them.

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
        self._at_most = decision.at_most
        self._default = default
        self._parents = parents
        self._scores = held_out.scores
        self._folds = held_out.folds
        self._relevant, self._known = held_out.relevant(), held_out.known()
        self._costs = (
            Costs.of(decision.optimize, labels) if isinstance(decision.optimize, CostObjective) else None
        )
        self._parts = np.array([*(self._folds != fold for fold in range(N_FOLDS)), self._folds >= 0])
        self._of_labels = thresholds_of_labels(
            self._scores,
            self._relevant,
            self._known,
            self._parts,
            held_out.tunable,
            default=default,
            select=self._select_of_label(),
        )
        self._positives = np.array([self._relevant[part].sum(axis=0) for part in self._parts])
        self._positives[:, ~held_out.tunable] = 0
        self._of_all = {at_least_one: self._tune_global(at_least_one) for at_least_one in (False, True)}

    def _select_of_label(self) -> Select:
        costs = self._costs
        if costs is None:
            return with_best_f1(FBR)

        def select(label: int, cuts: LabelCuts) -> float:
            return cuts.threshold(least_cost(cuts, costs.false_label[label], costs.missed_label[label]))

        return select

    def _tune_global(self, at_least_one: bool) -> list[float]:
        """Return the best threshold of all labels on each part.

        A label that is predicted or not whatever the threshold is gets the score ∞ or −∞.
        """
        scores, k = self._scores, self._scores.shape[1]
        if at_least_one or (self._at_most is not None and self._at_most < k):
            order = ranking(scores, self._at_most)
            limited = np.full(scores.shape, -np.inf)
            np.put_along_axis(limited, order, np.take_along_axis(scores, order, axis=1), axis=1)
            if at_least_one:
                limited[np.arange(len(scores)), order[:, 0]] = np.inf
            scores = limited
        return [
            self._best_of_all(
                scores[part], self._relevant[part], None if self._known is None else self._known[part]
            )
            for part in self._parts
        ]

    def _best_of_all(self, scores: Floats, relevant: Bools, known: Bools | None) -> float:
        if self._optimize == "subset_accuracy":
            return best_for_sets(scores, relevant, known)
        if self._costs is None:
            cuts = PooledCuts.of(scores, relevant, known)
            return cuts.threshold(best_f1(cuts)[0])
        weighted = PooledCuts.of(
            scores, relevant, known, tp_weights=self._costs.missed_label, fp_weights=self._costs.false_label
        )
        return weighted.threshold(least_cost(weighted))

    def rule(self, candidate: Candidate, part: int) -> LabelSetRule:
        """Return the rule of a candidate that is tuned on a part."""
        k = self._scores.shape[1]
        of_all = np.full(k, self._of_all[candidate.at_least_one][part])
        match candidate.thresholds:
            case "zero":
                thresholds = np.full(k, self._default)
            case "global":
                thresholds = of_all
            case "per_label":
                thresholds = self._of_labels[part]
            case "shrunk":
                weight = self._positives[part] / (self._positives[part] + SHRINKAGE)
                thresholds = weight * self._of_labels[part] + (1 - weight) * of_all
        return LabelSetRule(thresholds, int(candidate.at_least_one), self._at_most, self._parents)

    def held_out_values(self, candidate: Candidate) -> dict[str, float]:
        """Return the values of a candidate on each fold, tuned on the other folds, over all folds."""
        tally = Tally(self._costs)
        for fold in range(N_FOLDS):
            rows = self._folds == fold
            predicted = self.rule(candidate, fold).predicted(self._scores[rows])
            tally.add(predicted, self._relevant[rows], rows_of(self._known, rows))
        return tally.values()
