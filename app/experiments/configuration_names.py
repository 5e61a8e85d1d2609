"""Generate names for configurations that have none: the algorithm, and the parameters that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

MAX_LENGTH = 180
"""Maximum length of a generated name, without the number that makes it unique. A title has at most 200
characters."""

_Group: TypeAlias = tuple[str, str, Any]
"""An algorithm, a path, and the ``kind`` in the same object. Only configurations of the same kind have the
parameter."""


def configuration_names(configurations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a unique name for each configuration, in time linear in their total size.

    Args:
        configurations: features, learner and decision with their defaults filled in, and an optional name.

    >>> learners = [{"algorithm": "svm", "C": 1.0}, {"algorithm": "svm", "C": 2.0}, {"algorithm": "mmp"}]
    >>> configuration_names([{"learner": learner} for learner in learners])
    ['svm C=1', 'svm C=2', 'mmp']
    """
    flat = [(c["learner"]["algorithm"], dict(_flatten(c))) for c in configurations]
    differing = _differing(flat)
    names = []
    for configuration, (algorithm, parameters) in zip(configurations, flat, strict=True):
        if configuration.get("name"):
            names.append(str(configuration["name"]))
            continue
        shown = [
            f"{_shorten(path)}={_format(value)}"
            for path, value in parameters.items()
            if _group(algorithm, path, parameters) in differing
        ]
        name = " ".join([algorithm, *shown])
        names.append(name if len(name) <= MAX_LENGTH else f"{name[: MAX_LENGTH - 1]}…")
    count = Counter(names)
    numbered: Counter[str] = Counter()
    for i, name in enumerate(names):
        if count[name] > 1:
            numbered[name] += 1
            names[i] = f"{name} ({numbered[name]})"
    return names


def _differing(flat: Sequence[tuple[str, Mapping[str, Any]]]) -> set[_Group]:
    """Return the groups of configurations in which a parameter does not have the same value everywhere."""
    of_algorithm = Counter(algorithm for algorithm, _ in flat)
    with_kind: Counter[tuple[str, str]] = Counter()
    of_kind: Counter[_Group] = Counter()
    first: dict[_Group, Any] = {}
    having: Counter[_Group] = Counter()
    differing: set[_Group] = set()
    for algorithm, parameters in flat:
        for path, value in parameters.items():
            group = _group(algorithm, path, parameters)
            having[group] += 1
            if first.setdefault(group, value) != value:
                differing.add(group)
            if path == _kind_path(path):
                with_kind[algorithm, path] += 1
                of_kind[algorithm, path, value] += 1
    for (algorithm, path, kind), n_having in having.items():
        kind_path = _kind_path(path)
        if path == kind_path:
            comparable = of_algorithm[algorithm]
        elif kind is None:
            comparable = of_algorithm[algorithm] - with_kind[algorithm, kind_path]
        else:
            comparable = of_kind[algorithm, kind_path, kind]
        if n_having < comparable:  # some configurations do not have the parameter
            differing.add((algorithm, path, kind))
    return differing


def _group(algorithm: str, path: str, parameters: Mapping[str, Any]) -> _Group:
    kind_path = _kind_path(path)
    return algorithm, path, None if path == kind_path else parameters.get(kind_path)


def _kind_path(path: str) -> str:
    return f"{path.rpartition('.')[0]}.kind"


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
    return f"{value:g}" if isinstance(value, float) else str(value)[:MAX_LENGTH]
