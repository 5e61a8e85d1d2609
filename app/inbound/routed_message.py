"""The decision of a router as the commands for mail servers use it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Self


class UnexpectedResponseError(ValueError):
    """A response is not a decision; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class RoutedDepartment:
    """A department that is selected for a message.

    Attributes:
        label: the label.
        destination: its destination.
        score: its score.
    """

    label: str
    destination: str
    score: float


@dataclass(frozen=True, slots=True)
class RoutedMessage:
    """A recorded decision.

    Attributes:
        decision_id: id of the decision.
        router: name of the router.
        model: name of the model that decided.
        version: number of the version that decided; None if no version could decide.
        disposition: ``routed``, ``review`` or ``fallback``.
        departments: the selected departments, best first.
        destinations: the distinct destinations; the fallback if there is no department.
        set_probability: the probability that exactly these departments are right; None if unknown.
        content: the whole decision as JSON.
    """

    decision_id: str
    router: str
    model: str
    version: int | None
    disposition: str
    departments: tuple[RoutedDepartment, ...]
    destinations: tuple[str, ...]
    set_probability: float | None
    content: bytes

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """Read the body of a response.

        Raises:
            UnexpectedResponseError: the body is not a decision.
        """
        try:
            fields: dict[str, Any] = json.loads(content)
            version, probability = fields.get("version"), fields.get("set_probability")
            return cls(
                str(fields["decision_id"]),
                str(fields["router"]),
                str(fields["model"]),
                None if version is None else int(version),
                str(fields["disposition"]),
                tuple(
                    RoutedDepartment(str(item["label"]), str(item["destination"]), float(item["score"]))
                    for item in fields["departments"]
                ),
                tuple(map(str, fields["destinations"])),
                None if probability is None else float(probability),
                content,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnexpectedResponseError("the response is not a decision of Covey") from error
