"""Generates names for configurations that have none: the algorithm, and the parameters that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def configuration_names(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a unique name for each configuration.

    Args:
        configurations: features, learner and decision with their defaults filled in, and an optional name.

    >>> learners = [{"algorithm": "svm", "C": 1.0}, {"algorithm": "svm", "C": 2.0}, {"algorithm": "mmp"}]
    >>> configuration_names([{"learner": learner} for learner in learners])
    ['svm C=1', 'svm C=2', 'mmp']
    """
    parameters = [dict(_flatten(c)) for c in configurations]
    names = []
    for configuration, own in zip(configurations, parameters, strict=True):
        if configuration.get("name"):
            names.append(str(configuration["name"]))
            continue
        algorithm = configuration["learner"]["algorithm"]
        same_algorithm = [
            p
            for p, c in zip(parameters, configurations, strict=True)
            if c["learner"]["algorithm"] == algorithm
        ]
        differing = [path for path in own if _differs(path, own, same_algorithm)]
        names.append(" ".join([algorithm, *(f"{_shorten(path)}={_format(own[path])}" for path in differing)]))
    count = Counter(names)
    numbered: Counter[str] = Counter()
    for i, name in enumerate(names):
        if count[name] > 1:
            numbered[name] += 1
            names[i] = f"{name} ({numbered[name]})"
    return names


def _differs(path: str, own: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether another configuration has another value for a parameter.

    Configurations of another ``kind`` are not compared, because they do not have the parameter.
    """
    kind = f"{path.rpartition('.')[0]}.kind"
    comparable = [other for other in others if path == kind or other.get(kind) == own.get(kind)]
    return any(other.get(path) != own[path] for other in comparable)


def _flatten(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Return the leaves of nested mappings by dotted path."""
    if isinstance(value, Mapping):
        return [leaf for key, inner in value.items() for leaf in _flatten(inner, f"{path}.{key}")]
    return [(path.removeprefix("."), value)]


def _shorten(path: str) -> str:
    """Return a path without its first part, and ``decision`` for the kind of the decision rule."""
    first, _, rest = path.partition(".")
    return rest if first == "learner" else ("decision" if path == "decision.kind" else rest or first)


def _format(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
