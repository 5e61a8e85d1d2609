"""One service without keys for everything that pages tell their readers to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from page_snippets import ReaderService
from stack import Stack


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReaderService]:
    folder = tmp_path_factory.mktemp("pages")
    stack = Stack(folder / "data").start()
    yield ReaderService(stack, folder)
    stack.stop()
