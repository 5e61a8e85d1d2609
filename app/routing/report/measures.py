"""Quality and calibration of a group of decisions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.routing.report.schemas import Calibration, CalibrationBin, DispositionShare, Estimate, Quality, Share
from app.routing.schemas import Disposition
from models.measures.calibration import N_BINS
from models.measures.intervals import RatioSums, Stratum, f1_of_jaccard, stratified_share, wilson

_MEAN_DEVIATION = math.sqrt(2 / math.pi)
"""Mean absolute deviation of a normal distribution, in standard deviations."""

DISPOSITIONS: tuple[Disposition, ...] = ("routed", "review", "fallback")


def share_of(count: int, of: int) -> Share | None:
    """Return a share of independent trials; None without trials."""
    if not of:
        return None
    low, high = wilson(count / of, of)
    return Share(count=count, of=of, share=count / of, low=low, high=high)


def _share_of_sums(sums: RatioSums) -> Share | None:
    if sums.share is None or sums.interval is None:
        return None
    low, high = sums.interval
    return Share(count=sums.a, of=sums.b, share=sums.share, low=low, high=high)


@dataclass
class LabelQuality:
    """The sums of precision, recall and F1."""

    precision: RatioSums = field(default_factory=RatioSums)
    recall: RatioSums = field(default_factory=RatioSums)
    jaccard: RatioSums = field(default_factory=RatioSums)

    def add(self, both: int, predicted: int, correct: int) -> None:
        """Add a message.

        Args:
            both: number of labels that are predicted and correct.
            predicted: number of predicted labels.
            correct: number of correct labels.
        """
        self.precision.add(both, predicted)
        self.recall.add(both, correct)
        self.jaccard.add(both, predicted + correct - both)

    @property
    def f1(self) -> Estimate | None:
        """F1; None if no label is predicted or correct."""
        if self.jaccard.share is None or self.jaccard.interval is None:
            return None
        value, (low, high) = self.jaccard.share, self.jaccard.interval
        return Estimate(value=f1_of_jaccard(value), low=f1_of_jaccard(low), high=f1_of_jaccard(high))


@dataclass
class Outcomes:
    """The messages of a group, with their feedback.

    Attributes:
        messages: number of messages by disposition.
        right: number of messages with feedback whose label set is exactly right, by disposition.
        wrong: number of other messages with feedback, by disposition.
        labels: the sums of precision, recall and F1, by disposition.
    """

    messages: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    labels: dict[str, LabelQuality] = field(default_factory=dict)

    def add(self, disposition: str, right: bool | None, count: int) -> None:
        """Add messages. ``right`` is None without feedback."""
        self.messages[disposition] += count
        if right is not None:
            (self.right if right else self.wrong)[disposition] += count

    def add_labels(self, disposition: str, both: int, predicted: int, correct: int) -> None:
        """Add a message with feedback to precision, recall and F1; see ``LabelQuality.add``."""
        for key in ("", disposition):
            self.labels.setdefault(key, LabelQuality()).add(both, predicted, correct)

    def dispositions(self) -> list[DispositionShare]:
        """Return the messages by disposition."""
        total = self.messages.total()
        shares = [(disposition, share_of(self.messages[disposition], total)) for disposition in DISPOSITIONS]
        return [
            DispositionShare(disposition=disposition, **share.model_dump())
            for disposition, share in shares
            if share is not None
        ]

    def quality(self) -> list[Quality]:
        """Return the quality of all messages with feedback, and by disposition."""
        found = [Quality(**self._measures(None, DISPOSITIONS))]
        found += [
            Quality(disposition=disposition, **self._measures(disposition, (disposition,)))
            for disposition in DISPOSITIONS
            if self.messages[disposition] or disposition in self.labels
        ]
        return found

    def _measures(
        self, key: Disposition | None, dispositions: tuple[Disposition, ...]
    ) -> dict[str, int | Share | Estimate | None]:
        right = sum(self.right[disposition] for disposition in dispositions)
        n = right + sum(self.wrong[disposition] for disposition in dispositions)
        labels = self.labels.get(key or "", LabelQuality())
        return {
            "messages": sum(self.messages[disposition] for disposition in dispositions),
            "with_feedback": n,
            "set_accuracy": share_of(right, n),
            "precision": _share_of_sums(labels.precision),
            "recall": _share_of_sums(labels.recall),
            "f1": labels.f1,
        }

    def estimated_set_accuracy(self) -> Estimate | None:
        """Estimate the set accuracy of all messages, with and without feedback."""
        found = stratified_share(
            [
                Stratum(self.messages[name], self.right[name] + self.wrong[name], self.right[name])
                for name in DISPOSITIONS
            ]
        )
        if found is None:
            return None
        value, (low, high) = found
        return Estimate(value=value, low=low, high=high)


@dataclass
class ReliabilitySums:
    """The sums of a reliability diagram with ``N_BINS`` bins of equal width."""

    counts: list[int] = field(default_factory=lambda: [0] * N_BINS)
    right: list[int] = field(default_factory=lambda: [0] * N_BINS)
    probabilities: list[float] = field(default_factory=lambda: [0.0] * N_BINS)

    def add(self, bin_: int, probability_sum: float, right: bool, count: int = 1) -> None:
        """Add predictions in a bin."""
        self.counts[bin_] += count
        self.probabilities[bin_] += probability_sum
        if right:
            self.right[bin_] += count

    def calibration(self) -> Calibration | None:
        """Return the calibration; None without predictions."""
        n = sum(self.counts)
        if not n:
            return None
        bins, error, by_chance = [], 0.0, 0.0
        for b, count in enumerate(self.counts):
            observed = share_of(self.right[b], count)
            if observed is not None:
                # Sums of many floats can leave the bin by a rounding error.
                mean = min(max(self.probabilities[b] / count, 0.0), 1.0)
                error += count / n * abs(mean - observed.share)
                by_chance += count / n * _MEAN_DEVIATION * math.sqrt(mean * (1 - mean) / count)
                bins.append(
                    CalibrationBin(
                        low=b / N_BINS, high=(b + 1) / N_BINS, mean_probability=mean, observed=observed
                    )
                )
        return Calibration(
            messages=n,
            expected_calibration_error=error,
            expected_by_chance=by_chance,
            bins=bins,
        )


def coarse_bin(fine: int, n_fine: int) -> int:
    """Return the bin of a reliability diagram that contains a finer bin.

    >>> coarse_bin(0, 100), coarse_bin(9, 100), coarse_bin(10, 100)
    (0, 0, 1)
    """
    return fine * N_BINS // n_fine


def feedback_coverage(outcomes: Outcomes) -> Mapping[str, tuple[int, int]]:
    """Return the number of messages with feedback, and of all messages, by disposition."""
    return {
        name: (outcomes.right[name] + outcomes.wrong[name], outcomes.messages[name])
        for name in DISPOSITIONS
        if outcomes.messages[name]
    }
