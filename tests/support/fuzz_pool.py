"""What a fuzzed service is known to hold, so that requests reach real things; some is kept from harm."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

Names = dict[str, Any]
"""Path parameters by name."""

RESOURCES = (
    "/v1/models/{name}/versions/{version}/evaluations/{evaluation_id}",
    "/v1/models/{name}/versions/{version}",
    "/v1/models/{name}/aliases/{alias}",
    "/v1/models/{name}",
    "/v1/routers/{name}",
    "/v1/datasets/{dataset_id}",
    "/v1/training-jobs/{job_id}",
    "/v1/experiments/{experiment_id}",
    "/v1/decisions/{decision_id}",
    "/v1/api-keys/{key_id}",
)
"""The paths of single things, inner ones first."""

_BY_PREFIX = {
    "ds": ("/v1/datasets/{dataset_id}", "dataset_id"),
    "job": ("/v1/training-jobs/{job_id}", "job_id"),
    "exp": ("/v1/experiments/{experiment_id}", "experiment_id"),
    "dec": ("/v1/decisions/{decision_id}", "decision_id"),
    "key": ("/v1/api-keys/{key_id}", "key_id"),
    "evl": (RESOURCES[0], "evaluation_id"),
}
_MOST = 40
"""Things of one kind that are remembered besides those that are kept."""


class Pool:
    """Path parameters that lead somewhere, by the path of the thing.

    Args:
        dice: decides what is picked.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._kept: dict[str, list[Names]] = {path: [] for path in RESOURCES}
        self._known: dict[str, list[Names]] = {path: [] for path in RESOURCES}

    def keep(self, path: str, **names: Any) -> None:
        """Remember something for good: :meth:`spares` tells requests that would end it."""
        self._kept[path].append(names)

    def pick(self, path: str) -> Names:
        """Parameters for an operation's path, often of something kept; none where nothing is known."""
        if (thing := _thing(path)) is None:
            return {}
        choices = [known for known in (self._kept[thing], self._known[thing]) if known]
        return dict(self._dice.choice(self._dice.choice(choices))) if choices else {}

    def spares(self, path: str, names: Mapping[str, Any]) -> bool:
        """Whether these parameters name something that is kept, or what it stands on."""
        thing = _thing(path)
        return any(
            all(str(names.get(name)) == str(value) for name, value in kept.items() if name in names)
            for inner, all_kept in self._kept.items()
            if thing is not None and inner.startswith(thing)
            for kept in all_kept
        )

    def learn(self, path: str, names: Mapping[str, Any], answer: Any) -> None:
        """Remember what an answer names.

        Args:
            path: of the operation.
            names: its path parameters.
            answer: the body.
        """
        for thing, found in _found(path, names, answer):
            known = self._known[thing]
            if found not in known and found not in self._kept[thing]:
                known.append(found)
                if len(known) > _MOST:
                    known.pop(self._dice.randrange(_MOST))

    def forget(self, path: str, names: Mapping[str, Any]) -> None:
        """What was deleted leads nowhere any more."""
        if path in self._known:
            self._known[path] = [known for known in self._known[path] if known != names]


def _thing(path: str) -> str | None:
    return next((thing for thing in RESOURCES if path == thing or path.startswith(f"{thing}/")), None)


def _found(path: str, names: Mapping[str, Any], answer: Any) -> Iterator[tuple[str, Names]]:
    if not isinstance(answer, dict):
        return
    for item in answer.get("items", ()):
        if isinstance(item, dict):
            yield from _found(path, names, item)
    for field in ("id", "decision_id"):
        prefix = str(answer.get(field, "")).split("_")[0]
        if prefix in _BY_PREFIX and (field == "decision_id" or path.startswith("/v1/")):
            thing, parameter = _BY_PREFIX[prefix]
            if thing == RESOURCES[0]:
                if "version" in names:
                    yield (
                        thing,
                        {"name": names["name"], "version": names["version"], parameter: answer[field]},
                    )
            elif not path.startswith("/v1/datasets/{dataset_id}/examples"):
                yield thing, {parameter: answer[field]}
    if isinstance(answer.get("model"), str) and isinstance(answer.get("version"), int):
        version = {"name": answer["model"], "version": answer["version"]}
        yield "/v1/models/{name}/versions/{version}", version
        yield "/v1/models/{name}", {"name": answer["model"]}
        if isinstance(answer.get("alias"), str):
            alias = {"name": answer["model"], "alias": answer["alias"]}
            yield "/v1/models/{name}/aliases/{alias}", alias
    if path.startswith(("/v1/models", "/v1/routers")) and isinstance(answer.get("name"), str):
        kind = path.split("/")[2]
        yield f"/v1/{kind}/{{name}}", {"name": answer["name"]}
