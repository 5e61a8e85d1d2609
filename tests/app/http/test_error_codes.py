"""``docs/errors.md`` lists every code that the service can answer with, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import pytest

from app.http import errors
from app.http.errors import ApiError
from models.errors import CoveyError

Error = TypeVar("Error", bound=Exception)

ROOT = Path(__file__).parents[3]
ROWS: list[tuple[str, str]] = re.findall(
    r"^\| `(\w+)` \| (\d{3}|—) \| .+ \| .+ \|$", (ROOT / "docs/errors.md").read_text(), re.MULTILINE
)
DOCUMENTED = dict(ROWS)
CODE = re.compile(
    r'\bcode=\s*"(\w+)"'  # a code more telling than the class's own
    r'|\bcode(?::\s*str)? = "(\w+)"'  # a class's own
    r'|\bstatus, code = \d+, "(\w+)"'
    r'|problem\(\s*(?:\d+, )?"(\w+)"'
    r'|"code": "(\w+)"'
    r'|^    \d{3}: "(\w+)",$',  # by status, in app/http/problem_handlers.py
    re.MULTILINE,
)


def said() -> set[str]:
    sources = [path for folder in ("app", "workers") for path in (ROOT / folder).rglob("*.py")]
    sources += [ROOT / "models/errors.py"]
    return {code for path in sources for found in CODE.findall(path.read_text()) for code in found if code}


def subclasses(base: type[Error]) -> list[type[Error]]:
    return [found for child in base.__subclasses__() for found in (child, *subclasses(child))]


def test_every_code_is_documented_and_no_other() -> None:
    assert said() == set(DOCUMENTED)


@pytest.mark.parametrize(
    "error", [error for error in subclasses(ApiError) if error.__module__ == "app.http.errors"]
)
def test_the_status_is_the_documented_one(error: type[ApiError]) -> None:
    assert DOCUMENTED[error.code] == str(error.status)
    assert f"{error.__name__:<20}{error.status} {error.code}".replace(" ", "") in (
        errors.__doc__ or ""
    ).replace(" ", "")


@pytest.mark.parametrize("error", subclasses(CoveyError))
def test_errors_of_learning_are_documented(error: type[CoveyError]) -> None:
    assert error.code in DOCUMENTED


def test_a_code_stands_once() -> None:
    assert len(ROWS) == len(DOCUMENTED)
