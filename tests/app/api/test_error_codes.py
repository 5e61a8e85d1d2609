"""``docs/errors.md`` lists exactly the error codes that the service can return."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import pytest

from app import errors
from app.api.errors import RESPONSES
from app.errors import Conflict, ServiceError
from models.errors import CoveyError

Error = TypeVar("Error", bound=Exception)

ROOT = Path(__file__).parents[3]
ROWS: list[tuple[str, str]] = re.findall(
    r"^\| `(\w+)` \| (\d{3}|—) \| .+ \| .+ \|$", (ROOT / "docs/errors.md").read_text(), re.MULTILINE
)
DOCUMENTED = dict(ROWS)
CODE = re.compile(
    r'\bcode=\s*"(\w+)"'  # a more specific code
    r'|\b(?:default_)?code(?::\s*str)? = "(\w+)"'  # default of a class
    r'|(?:problem|failure)\(\s*(?:\d+, )?"(\w+)"'
    r'|"code": "(\w+)"',
    re.MULTILINE,
)


def codes_in_source() -> set[str]:
    sources = [path for folder in ("app", "workers") for path in (ROOT / folder).rglob("*.py")]
    sources += [ROOT / "models/errors.py"]
    return {code for path in sources for match in CODE.findall(path.read_text()) for code in match if code}


def subclasses(base: type[Error]) -> list[type[Error]]:
    return [error for child in base.__subclasses__() for error in (child, *subclasses(child))]


def test_the_documented_codes_are_those_of_the_source() -> None:
    assert codes_in_source() == set(DOCUMENTED)


@pytest.mark.parametrize("error", subclasses(ServiceError))
def test_the_status_of_each_error_is_documented(error: type[ServiceError]) -> None:
    (response,) = (response for response in RESPONSES if issubclass(error, response.error))
    if error is Conflict:  # each conflict has a code of its own
        return
    assert DOCUMENTED[error.default_code] == str(response.status)
    if error.__module__ == "app.errors":
        assert error.__name__ + error.default_code in (errors.__doc__ or "").replace(" ", "")


@pytest.mark.parametrize("error", subclasses(CoveyError))
def test_errors_of_learning_are_documented(error: type[CoveyError]) -> None:
    assert error.code in DOCUMENTED


def test_each_code_is_documented_once() -> None:
    assert len(ROWS) == len(DOCUMENTED)
