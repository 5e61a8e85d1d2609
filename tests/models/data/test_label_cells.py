"""Label cells: lists, tags, objects and quoted labels are read; half-written lists are refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.record import RecordError
from models.data.values.label_cells import split_labels


@pytest.mark.parametrize(
    "cell",
    [
        "a,b",
        " a , b ,",
        "['a', 'b']",
        "['a',\n 'b']",
        '["a", "b"]',
        "[a, b]",
        "['a' 'b']",
        "['a'\n 'b']",
        "('a', 'b')",
        "(a, b)",
        "{'a', 'b'}",
        "{a,b}",
        "[u'a', u'b']",
        "array(['a', 'b'], dtype='<U1')",
        "np.array(['a', 'b'], dtype=object)",
        "frozenset({'a', 'b'})",
        "Index(['a', 'b'], dtype='object')",
        '{"choices": ["a", "b"]}',
        "{'choices': ['a', 'b']}",
        '[{"choices": ["a"]}, {"choices": ["b"]}]',
        "[{'id': 28, 'name': 'a'}, {'id': 12, 'name': 'b'}]",
        '{"a": 1, "b": 1.0, "c": 0}',
        "{'a': True, 'b': True, 'c': False, 'd': None}",
        "<a><b>",
        "&lt;a&gt;&lt;b&gt;",
        "|a|b|",
        ";#a;#b;#",
        "'a', 'b'",
        '"a","b"',
    ],
)
def test_every_way_to_write_two_labels_is_read(cell: str) -> None:
    assert split_labels(cell, ",") == ["a", "b"]


@pytest.mark.parametrize("cell", ["", " ", "[]", "[ ]", "()", "{}", "set()", "array([], dtype=object)", '""'])
def test_an_empty_list_has_no_label(cell: str) -> None:
    assert split_labels(cell, ",") == []


@pytest.mark.parametrize(
    "label",
    [
        "[EXT] Sales",
        "Sales [EXT]",
        "[Gmail]/Sent",
        "[EXT] to [INT]",
        "<none>",
        "<no label>",
        "<b>urgent</b>",
        "a < b > c",
        "C#",
        "C++",
        "(other)",
        "(open",
        "Sales (EMEA)",
        '19" screens',
        '"Urgent" tickets',
        "Men's wear",
        "'n Sync",
        "dogs'",
        "{x} y",
        "R&D",
        "AT&T;",
        "a|b",
        "|",
        "set(a)",
    ],
)
def test_an_ordinary_label_with_marks_stays_as_it_is(label: str) -> None:
    assert split_labels(label, ",") == [label]
    assert split_labels(f"x, {label}", ",") == ["x", label]


@pytest.mark.parametrize(
    ("cell", "separator", "labels"),
    [
        ('Inbox,"Sales, EMEA",Billing', ",", ["Inbox", "Sales, EMEA", "Billing"]),
        ('"Sales, EMEA" ; Billing', ";", ["Sales, EMEA", "Billing"]),
        ('"a ""b""", c', ",", ['a "b"', "c"]),
        ('"a \\"b\\"", c', ",", ['a "b"', "c"]),
        ('"Junk mail" $label1', " ", ["Junk mail", "$label1"]),
        ('{billing,"Sales, EMEA"}', ",", ["billing", "Sales, EMEA"]),
        ('[EXT] Sales,"Sales, EMEA"', ",", ["[EXT] Sales", "Sales, EMEA"]),
        ("[EXT], [INT]", ",", ["[EXT]", "[INT]"]),
        ("['Sales, EMEA', 'b']", ";", ["Sales, EMEA", "b"]),
        ("[Sales, EMEA; b]", ";", ["Sales, EMEA", "b"]),
        ("|a|b|", "|", ["a", "b"]),
        ("<python>", ",", ["python"]),
        ("[1, 2]", ",", ["1", "2"]),
        ("[1 2]", ",", ["1", "2"]),
        ("[1.0, 007]", ",", ["1", "007"]),
        ("['it\\'s', \"don't\", 'caf\\xe9', '\\U0001F642']", ",", ["it's", "don't", "café", "🙂"]),
        ('["\\u00e9\\ud83d\\ude42"]', ",", ["é🙂"]),
        ("<a><b>", "><", ["<a", "b>"]),
    ],
)
def test_quotes_and_separators_inside_lists(cell: str, separator: str, labels: list[str]) -> None:
    assert split_labels(cell, separator) == labels


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("['a'", "a list that is not complete"),
        ("'b']", "a list that is not complete"),
        ("[a, b", "a list that is not complete"),
        ("a, b]", "a list that is not complete"),
        ("['a',, 'b']", "a list that is not complete"),
        ("['a'] x", "a list that is not complete"),
        ("['a'], ['b']", "a list that is not complete"),
        ("[a, 'b, c']", "a list that is not complete"),
        ("<a><b", "a list that is not complete"),
        ("{'a': 1, 'b'}", "a list that is not complete"),
        ('"Sales, EMEA', "a quote that is not closed"),
        ('"Sales, EMEA" x, b', "a quoted label that is followed by other text"),
        ("[a, [b]]", "a list inside a list"),
        ("[['a'], ['b']]", "not a list"),
        ("['a' 'b' ... 'z']", "a list that was cut"),
        ("['a', None]", "not a missing value"),
        ("[nan]", "not a missing value"),
        ("[True, False]", "not a boolean"),
        ("['a', 1.5]", "not 1.5"),
        ("[1, 0, 1]", "0 and 1 instead of names"),
        ("[0 1 0]", "0 and 1 instead of names"),
        ("0,1,1", "0 and 1 instead of names"),
        ('[{"start": 1, "end": 3, "labels": ["a"]}]', "only to a part of the document"),
        ('[{"label": "a", "score": 0.7}]', "may not apply"),
        ('{"a": 0.7}', "which is a score"),
        ('{"rating": 4}', "an object must map labels to 1 or 0"),
        ('{"a": 1, "a": 0}', "a key occurs twice"),
    ],
)
def test_what_cannot_be_read_as_labels_is_refused_with_the_reason(cell: str, reason: str) -> None:
    with pytest.raises(RecordError) as caught:
        split_labels(cell, ",", "topics")
    assert reason in caught.value.reason
    assert caught.value.field == "topics"


def test_the_refusal_of_a_half_list_says_what_to_do() -> None:
    with pytest.raises(RecordError, match="as a JSON list such as") as caught:
        split_labels("['a'", ",")
    assert "\"['a'\"" in caught.value.reason


@pytest.mark.parametrize(
    "piece", ["[", "{", "(", "['", '["', '"', "'", "<a>", "['a' ", '"a""', "{'a':", "\\", '\\"']
)
@pytest.mark.parametrize("end", ["", "]", "'", '"'])
def test_hostile_cells_take_linear_time(piece: str, end: str) -> None:
    cell = piece * 100_000 + end  # a quadratic reader would take hours for these cells together
    try:
        labels = split_labels(cell, ",")
    except RecordError:
        return
    assert all(label in cell for label in labels)


LABEL = st.text(st.characters(exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(LABEL, min_size=1, max_size=4))
def test_the_lists_that_python_prints_are_read_back(labels: list[str]) -> None:
    if set(labels) <= {"0", "1"}:
        return
    assert split_labels(str(labels), ",") == labels
    assert split_labels(str(tuple(labels)), ",") == labels


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("[](){}<>'\"\\,:| ab10#;&.")))
def test_any_cell_gives_labels_or_a_refusal(cell: str) -> None:
    try:
        labels = split_labels(cell, ",")
    except RecordError:
        return
    assert all(type(label) is str for label in labels)
