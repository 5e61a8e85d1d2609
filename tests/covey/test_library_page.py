"""Runs the examples of docs/library.md in their order, in one session."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_examples_of_the_page_print_what_it_states() -> None:
    examples = "\n".join(
        re.findall(r"^```pycon\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
    test = doctest.DocTestParser().get_doctest(examples, {}, "library.md", str(PAGE), 0)
    assert len(test.examples) > 30
    output: list[str] = []
    doctest.DocTestRunner().run(test, out=output.append)
    assert not output, "".join(output)
