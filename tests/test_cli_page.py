"""``docs/cli.md`` describes the commands and their options."""

from __future__ import annotations

import cli_page


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    written = cli_page.PAGE.read_text(encoding="utf-8")
    assert written == cli_page.page(), "run: .venv/bin/python tests/support/cli_page.py"
