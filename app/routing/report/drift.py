"""Drift of a group of decisions against the references of the versions that decided."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from app.routing.report.facts import LabelCount, VersionKey, VersionReference
from app.routing.report.schemas import Drift, DriftBin, DriftValue, UnknownWordsDrift
from models.arrays import Floats, Ints
from models.measures.drift import drift, frequent_categories, merge, quantile_bins
from models.pipeline.reference import SHARE_BINS, Reference

NO_LABEL = "(no department)"
RARE = "(rare departments)"

_References = Mapping[VersionKey, VersionReference]


def _histogram() -> Ints:
    return np.zeros(SHARE_BINS, dtype=np.int64)


@dataclass
class DriftSums:
    """The values that are compared with the references, by version.

    Attributes:
        messages: number of messages that a version decided.
        labels: number of messages by predicted label.
        without_label: number of messages without a predicted label.
        without_probability: number of these without ``set_probability``.
        set_probabilities: number of messages by bin of ``set_probability``.
        unknown_words: number of messages by bin of their share of unknown words.
        unknown_words_sum: sum of these shares.
    """

    messages: Counter[VersionKey] = field(default_factory=Counter)
    labels: dict[VersionKey, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    without_label: Counter[VersionKey] = field(default_factory=Counter)
    without_probability: Counter[VersionKey] = field(default_factory=Counter)
    set_probabilities: dict[VersionKey, Ints] = field(default_factory=lambda: defaultdict(_histogram))
    unknown_words: dict[VersionKey, Ints] = field(default_factory=lambda: defaultdict(_histogram))
    unknown_words_sum: dict[VersionKey, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, version: VersionKey, disposition: str, probability_bin: int | None, count: int) -> None:
        """Add messages that a version decided."""
        self.messages[version] += count
        if disposition == "fallback":
            self.without_label[version] += count
            self.without_probability[version] += count if probability_bin is None else 0
        if probability_bin is not None:
            self.set_probabilities[version][probability_bin] += count

    def add_label(self, item: LabelCount) -> None:
        """Add messages with a predicted label."""
        self.labels[item.version][item.label] += item.count

    def add_unknown_words(self, version: VersionKey, bin_: int, share_sum: float, count: int) -> None:
        """Add messages with about the same share of unknown words."""
        self.unknown_words[version][bin_] += count
        self.unknown_words_sum[version] += share_sum

    def drift(self, references: _References, *, with_bins: bool) -> Drift | None:
        """Return the drift; None if no version has a reference."""
        found = Drift(
            labels=self._labels(references, with_bins=with_bins),
            set_probability=self._set_probabilities(references, with_bins=with_bins),
            unknown_words=self._unknown_words(references, with_bins=with_bins),
        )
        return found if found.model_dump(exclude_none=True) else None

    def expected_labels(self, references: _References) -> tuple[dict[str, float], int]:
        """Return the expected number of messages with each label, and the number of all messages.

        Only messages of versions with a reference count.
        """
        expected: dict[str, float] = defaultdict(float)
        n_messages = 0
        for _, n, labels, reference in self._referenced(references):
            n_messages += n
            for label, count in zip(labels, reference.label_counts, strict=True):
                expected[label] += n * count / reference.examples
        return expected, n_messages

    def _referenced(self, references: _References) -> list[tuple[VersionKey, int, Sequence[str], Reference]]:
        found = []
        for version, n in sorted(self.messages.items(), key=repr):
            known = references.get(version)
            if known is not None and known.reference is not None and known.reference.examples:
                n_decided = n - self._undecided(version, known.reference)
                found.append((version, n_decided, known.labels, known.reference))
        return found

    def _undecided(self, version: VersionKey, reference: Reference) -> int:
        """Return the number of messages on which a version did not decide, such as those without text.

        If the version is calibrated, they are those without a probability. Otherwise, they are unknown.
        """
        return 0 if reference.set_probabilities is None else self.without_probability[version]

    def _labels(self, references: _References, *, with_bins: bool) -> DriftValue | None:
        expected, _ = self.expected_labels(references)
        observed: Counter[str] = Counter()
        sizes: list[tuple[float, float]] = []
        for version, n, _, reference in self._referenced(references):
            observed.update(self.labels[version])
            observed[NO_LABEL] += self.without_label[version] - self._undecided(version, reference)
            expected[NO_LABEL] = (
                expected.get(NO_LABEL, 0.0) + n * reference.without_label / reference.examples
            )
            values = sum(reference.label_counts) + reference.without_label
            sizes.append((n * values / reference.examples, values))
        total = sum(expected.values())
        if not total:
            return None
        inverse_size = sum((weight / total) ** 2 / values for weight, values in sizes if values)
        names = sorted({*observed, *expected})
        counts = np.array([observed[name] for name in names], dtype=np.int64)
        shares = np.array([expected.get(name, 0.0) / total for name in names])
        categories = frequent_categories(shares, int(counts.sum()))
        alone = np.bincount(categories) == 1
        merged_names = [RARE] * len(alone)
        for name, category in zip(names, categories.tolist(), strict=True):
            if alone[category]:
                merged_names[category] = name
        return _value(
            merge(counts, categories),
            merge(shares, categories),
            inverse_size,
            lambda: merged_names,
            with_bins=with_bins,
        )

    def _set_probabilities(self, references: _References, *, with_bins: bool) -> DriftValue | None:
        return self._shares(
            self.set_probabilities, references, lambda item: item.set_probabilities, with_bins=with_bins
        )

    def _unknown_words(self, references: _References, *, with_bins: bool) -> UnknownWordsDrift | None:
        value = self._shares(
            self.unknown_words, references, lambda item: item.unknown_terms, with_bins=with_bins
        )
        if value is None:
            return None
        n = total = expected = 0.0
        for version, histogram in self.unknown_words.items():
            known = references.get(version)
            reference = None if known is None else known.reference
            if reference is not None and reference.mean_unknown_terms is not None:
                n += int(histogram.sum())
                total += self.unknown_words_sum[version]
                expected += reference.mean_unknown_terms * int(histogram.sum())
        if not n:
            return None
        return UnknownWordsDrift(**value.model_dump(), mean=total / n, expected_mean=expected / n)

    def _shares(
        self,
        histograms: Mapping[VersionKey, Ints],
        references: _References,
        part: Callable[[Reference], list[int] | None],
        *,
        with_bins: bool,
    ) -> DriftValue | None:
        """Compare the histograms of versions with those of their references.

        The expected share of a bin is the mean over the versions, weighted by their messages.
        """
        observed = np.zeros(SHARE_BINS, dtype=np.int64)
        expected = np.zeros(SHARE_BINS)
        sizes: list[tuple[int, int]] = []
        for version, histogram in sorted(histograms.items(), key=repr):
            known = references.get(version)
            counts = None if known is None or known.reference is None else part(known.reference)
            if counts is None or not sum(counts) or not histogram.any():
                continue
            n, m = int(histogram.sum()), sum(counts)
            observed += histogram
            expected += n * np.array(counts) / m
            sizes.append((n, m))
        n_observed = int(observed.sum())
        if not n_observed:
            return None
        expected /= n_observed
        inverse_size = sum((n / n_observed) ** 2 / m for n, m in sizes)
        bins = quantile_bins(expected)
        return _value(
            merge(observed, bins),
            merge(expected, bins),
            inverse_size,
            lambda: _ranges(bins),
            with_bins=with_bins,
        )


def _value(
    observed: Floats,
    expected: Floats,
    inverse_size: float,
    names: Callable[[], list[str]],
    *,
    with_bins: bool,
) -> DriftValue | None:
    counts = np.rint(observed).astype(np.int64)
    found = drift(counts, expected, 1 / inverse_size if inverse_size else 0.0)
    if found is None:
        return None
    bins = None
    if with_bins:
        bins = [
            DriftBin(name=name, count=count, share=count / found.n, expected_share=share)
            for name, count, share in zip(names(), counts.tolist(), expected.tolist(), strict=True)
        ]
    return DriftValue(
        population_stability_index=found.population_stability_index,
        chance=found.chance,
        total_variation=found.total_variation,
        values=found.n,
        bins=bins,
    )


def _ranges(bins: Ints) -> list[str]:
    """Return the range of each merged bin.

    >>> _ranges(np.repeat([0, 1], [60, 40]))
    ['0–0.6', '0.6–1']
    """
    bounds = [*np.flatnonzero(np.diff(bins, prepend=-1)).tolist(), SHARE_BINS]
    return [f"{low / SHARE_BINS:g}–{high / SHARE_BINS:g}" for low, high in pairwise(bounds)]
