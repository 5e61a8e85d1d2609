"""A setting switches the protocols of other projects off."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from app.protocols import table
from app.settings import PROTOCOLS, Settings


@pytest.mark.parametrize(
    ("value", "served"), [("", []), ("label_studio", ["label_studio"]), (Settings().protocols, [*PROTOCOLS])]
)
def test_the_api_serves_the_protocols_that_are_switched_on(value: str, served: list[str]) -> None:
    routers = table.served(Settings(protocols=value))
    assert [name for name, router in table.ROUTERS.items() if router in routers] == served


def test_an_unknown_protocol_is_an_error() -> None:
    with pytest.raises(ValidationError, match="soap is not one of open_inference, label_studio"):
        Settings(protocols="open_inference, soap")
