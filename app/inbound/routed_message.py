"""The decision of a router as the commands for mail servers use it."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Self


class UnexpectedResponseError(ValueError):
    """A response is not a decision; the message says what is wrong."""


class RoutedDepartment(NamedTuple):
    """A department that is selected for a message; see ``app.routing.schemas.Department``."""

    label: str
    destination: str
    score: float


class RoutedMessage(NamedTuple):
    """The fields of a recorded decision that the commands use; see ``app.routing.schemas.Decision``.

    The standard library reads it: ``covey route`` starts for each message.

    Attributes:
        content: the whole decision as JSON.
    """

    decision_id: str
    router: str
    model: str
    disposition: str
    departments: tuple[RoutedDepartment, ...]
    destinations: tuple[str, ...]
    version: int | None
    set_probability: float | None
    content: bytes

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """Read the body of a response.

        Raises:
            UnexpectedResponseError: the body is not a decision.
        """
        try:
            decision = json.loads(content)
            departments = [
                RoutedDepartment(
                    _text(department["label"]), _text(department["destination"]), float(department["score"])
                )
                for department in decision["departments"]
            ]
            version, probability = decision.get("version"), decision.get("set_probability")
            return cls(
                _text(decision["decision_id"]),
                _text(decision["router"]),
                _text(decision["model"]),
                _text(decision["disposition"]),
                tuple(departments),
                tuple(map(_text, decision["destinations"])),
                None if version is None else int(version),
                None if probability is None else float(probability),
                content,
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UnexpectedResponseError("the response is not a decision of Covey") from error

    def with_review_to(self, destination: str | None) -> Self:
        """Return the decision with another destination if people must review the message first."""
        if destination is None or self.disposition != "review":
            return self
        return self._replace(destinations=(destination,))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
