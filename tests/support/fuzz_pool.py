"""Resources that exist in a fuzzed service, so that requests can use their ids. Some are protected."""

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
    "/v1/batch-predictions/{batch_prediction_id}",
    "/v1/decisions/{decision_id}",
    "/v1/api-keys/{key_id}",
)
"""Paths of single resources; nested resources come before the resources that contain them."""

_BY_PREFIX = {
    "ds": ("/v1/datasets/{dataset_id}", "dataset_id"),
    "job": ("/v1/training-jobs/{job_id}", "job_id"),
    "exp": ("/v1/experiments/{experiment_id}", "experiment_id"),
    "bp": ("/v1/batch-predictions/{batch_prediction_id}", "batch_prediction_id"),
    "dec": ("/v1/decisions/{decision_id}", "decision_id"),
    "key": ("/v1/api-keys/{key_id}", "key_id"),
    "evl": (RESOURCES[0], "evaluation_id"),
}
_MAX_KNOWN = 40
"""Maximum number of known resources per path, not counting protected ones."""


class Pool:
    """Path parameters of existing resources, by the path of the resource.

    Args:
        rng: chooses the resources.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._protected: dict[str, list[Names]] = {path: [] for path in RESOURCES}
        self._known: dict[str, list[Names]] = {path: [] for path in RESOURCES}

    def protect(self, path: str, **names: Any) -> None:
        """Add a resource that requests must not delete or end; see :meth:`is_protected`."""
        self._protected[path].append(names)

    def choose(self, path: str) -> Names:
        """Return parameters for a path, often of a protected resource; empty if none is known."""
        if (resource := _resource_of(path)) is None:
            return {}
        choices = [known for known in (self._protected[resource], self._known[resource]) if known]
        return dict(self._rng.choice(self._rng.choice(choices))) if choices else {}

    def is_protected(self, path: str, names: Mapping[str, Any]) -> bool:
        """Whether the parameters name a protected resource, or a resource that contains one."""
        resource = _resource_of(path)
        return any(
            all(str(names.get(name)) == str(value) for name, value in protected.items() if name in names)
            for inner, all_protected in self._protected.items()
            if resource is not None and inner.startswith(resource)
            for protected in all_protected
        )

    def add_from_response(self, path: str, names: Mapping[str, Any], body: Any) -> None:
        """Add the resources that a response names.

        Args:
            path: path of the operation.
            names: its path parameters.
            body: body of the response.
        """
        for resource, parameters in _named_resources(path, names, body):
            known = self._known[resource]
            if parameters not in known and parameters not in self._protected[resource]:
                known.append(parameters)
                if len(known) > _MAX_KNOWN:
                    known.pop(self._rng.randrange(_MAX_KNOWN))

    def remove(self, path: str, names: Mapping[str, Any]) -> None:
        """Remove a resource after its deletion."""
        if path in self._known:
            self._known[path] = [known for known in self._known[path] if known != names]


def _resource_of(path: str) -> str | None:
    return next(
        (resource for resource in RESOURCES if path == resource or path.startswith(f"{resource}/")), None
    )


def _named_resources(path: str, names: Mapping[str, Any], body: Any) -> Iterator[tuple[str, Names]]:
    if not isinstance(body, dict):
        return
    for item in body.get("items", ()):
        if isinstance(item, dict):
            yield from _named_resources(path, names, item)
    for field in ("id", "decision_id"):
        prefix = str(body.get(field, "")).split("_")[0]
        if prefix in _BY_PREFIX and (field == "decision_id" or path.startswith("/v1/")):
            resource, parameter = _BY_PREFIX[prefix]
            if resource == RESOURCES[0]:
                if "version" in names:
                    yield (
                        resource,
                        {"name": names["name"], "version": names["version"], parameter: body[field]},
                    )
            elif not path.startswith("/v1/datasets/{dataset_id}/examples"):
                yield resource, {parameter: body[field]}
    if isinstance(body.get("model"), str) and isinstance(body.get("version"), int):
        version = {"name": body["model"], "version": body["version"]}
        yield "/v1/models/{name}/versions/{version}", version
        yield "/v1/models/{name}", {"name": body["model"]}
        if isinstance(body.get("alias"), str):
            alias = {"name": body["model"], "alias": body["alias"]}
            yield "/v1/models/{name}/aliases/{alias}", alias
    if path.startswith(("/v1/models", "/v1/routers")) and isinstance(body.get("name"), str):
        kind = path.split("/")[2]
        yield f"/v1/{kind}/{{name}}", {"name": body["name"]}
