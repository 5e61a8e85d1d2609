"""Label trees from files of ``child,parent`` lines."""

from __future__ import annotations

import io

import pytest

from models.data.readers.label_tree import read_label_tree
from models.errors import BadDataError, ParameterError


def test_pairs_are_separated_by_comma_or_tab() -> None:
    content = b'\xef\xbb\xbf# codes\r\nC11,CCAT\r\n\r\nE1\tE\n"a, b", C11\nC11,CCAT\n'
    assert read_label_tree(io.BytesIO(content)).parents == {"C11": "CCAT", "E1": "E", "a, b": "C11"}


def test_roots_can_be_listed() -> None:
    tree = read_label_tree(io.BytesIO(b"CCAT\nE,\nC11,CCAT\nC111,C11\nE1,E\n"))
    assert tree.roots == ["CCAT", "E"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a,r\nb,r\na,s\n", "line 3: the label 'a' has the parent 'r' in line 1 and the parent 's' here"),
        (b"a\na,s\n", "line 2: the label 'a' has no parent in line 1 and the parent 's' here"),
        (b"r\na,r\nb,q\n", "line 3: the parent 'q' is neither a root nor a child"),
        (b"a,b,c\n", "line 1: a line must contain a child and its parent, not 3 names"),
        (b",a\n", "line 1: a label must not be empty"),
        (b'"a"b,c\n', "line 1: invalid quotes"),
        (b"a,\xff\n", "line 1: column 3: byte 0xff"),
        (b"a" * 2**17, "line 1: the line is longer"),
    ],
)
def test_invalid_files_are_rejected(content: bytes, reason: str) -> None:
    with pytest.raises(BadDataError, match=reason):
        read_label_tree(io.BytesIO(content))


def test_cycles_are_rejected() -> None:
    with pytest.raises(ParameterError, match="cycle: a -> b -> a"):
        read_label_tree(io.BytesIO(b"a,b\nb,a\n"))
