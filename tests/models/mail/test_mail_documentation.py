"""The limits in docs/background/mail.md equal the limits in the code."""

from __future__ import annotations

import re
from pathlib import Path

from models.mail import limits

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "background" / "mail.md"


def test_every_limit_is_documented_with_its_value() -> None:
    rows = re.findall(r"^\| `(MAX_\w+)` \| (\d+) \|", DOCUMENTATION.read_text("utf-8"), re.MULTILINE)
    documented = {name: int(value) for name, value in rows}
    assert documented == {name: value for name, value in vars(limits).items() if name.startswith("MAX_")}
