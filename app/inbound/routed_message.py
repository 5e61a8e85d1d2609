"""The decision of a router as the commands for mail servers use it."""

from __future__ import annotations

from typing import Self

import msgspec


class UnexpectedResponseError(ValueError):
    """A response is not a decision; the message says what is wrong."""


class RoutedDepartment(msgspec.Struct, frozen=True):
    """A department that is selected for a message; see ``app.routing.schemas.Department``."""

    label: str
    destination: str
    score: float


class RoutedMessage(msgspec.Struct, frozen=True):
    """The fields of a recorded decision that the commands use; see ``app.routing.schemas.Decision``.

    Attributes:
        content: the whole decision as JSON.
    """

    decision_id: str
    router: str
    model: str
    disposition: str
    departments: tuple[RoutedDepartment, ...]
    destinations: tuple[str, ...]
    version: int | None = None
    set_probability: float | None = None
    content: bytes = b""

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """Read the body of a response.

        Raises:
            UnexpectedResponseError: the body is not a decision.
        """
        try:
            return msgspec.structs.replace(msgspec.json.decode(content, type=cls), content=content)
        except ValueError as error:
            raise UnexpectedResponseError("the response is not a decision of Covey") from error
