"""What configurations without a name are called: their algorithm, and what sets them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def names_of(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """One name each, all different.

    Args:
        configurations: features, learner and decision with their defaults, and perhaps a name.

    >>> learners = [{"algorithm": "svm", "C": 1.0}, {"algorithm": "svm", "C": 2.0}, {"algorithm": "mmp"}]
    >>> names_of([{"learner": learner} for learner in learners])
    ['svm C=1', 'svm C=2', 'mmp']
    """
    flat = [dict(_flat(c)) for c in configurations]
    names = []
    for configuration, own in zip(configurations, flat, strict=True):
        if configuration.get("name"):
            names.append(str(configuration["name"]))
            continue
        algorithm = configuration["learner"]["algorithm"]
        alike = [
            f for f, c in zip(flat, configurations, strict=True) if c["learner"]["algorithm"] == algorithm
        ]
        differing = [place for place in own if _differs(place, own, alike)]
        names.append(" ".join([algorithm, *(f"{_short(place)}={_said(own[place])}" for place in differing)]))
    repeated = Counter(names)
    met: Counter[str] = Counter()
    for i, name in enumerate(names):
        if repeated[name] > 1:
            met[name] += 1
            names[i] = f"{name} ({met[name]})"
    return names


def _differs(place: str, own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a value sets a configuration apart; those of another kind do not have it anyway."""
    kind = f"{place.rpartition('.')[0]}.kind"
    comparable = [other for other in others if place == kind or other.get(kind) == own.get(kind)]
    return any(other.get(place) != own[place] for other in comparable)


def _flat(value: Any, place: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [leaf for key, inner in value.items() for leaf in _flat(inner, f"{place}.{key}")]
    return [(place.removeprefix("."), value)]


def _short(place: str) -> str:
    """The learner's parameters by their own names; others by all but the first part."""
    first, _, rest = place.partition(".")
    return rest if first == "learner" else ("decision" if place == "decision.kind" else rest or first)


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
