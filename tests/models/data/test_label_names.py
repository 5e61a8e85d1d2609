"""Names of labels that are probably mistakes: spellings, separators, missing values and halves of lists."""

from __future__ import annotations

import pytest

from models.data.ingestion.label_names import group_spellings, label_name_warnings, spelling_key


def warnings_on(*labels: str, **parents: str) -> list[str]:
    return list(label_name_warnings(sorted(labels), parents))


@pytest.mark.parametrize(
    "labels",
    [
        ["1", "1.0", "+1", "1."],
        ["Help Desk", "help  desk ", "helpdesk", "HELP_DESK", "help-desk"],
        ["Straße", "STRASSE"],
        ["İş", "iş", "IŞ"],
        ["a", "a\u200b", "\ufeffa", "a\u00ad", "a\ufe0f"],
        ["R&D", "R&amp;D", "r & d"],
        ["café", "cafe\u0301", "ＣＡＦÉ"],
        ["EXT", "[EXT]", '"ext"', "Ext."],
    ],
)
def test_spellings_of_one_label_are_equal(labels: list[str]) -> None:
    assert len(set(map(spelling_key, labels))) == 1
    assert group_spellings([*labels, "x"]) == [labels]


@pytest.mark.parametrize(
    "labels",
    [
        ["C", "C#", "C++", "C-"],
        ["1", "-1", "01", "1.5", "11"],
        ["1-2", "12"],
        ["a/b", "a", "b", "ab"],
        ["!!", "!", "?", "-", "👍", "👎"],
    ],
)
def test_different_labels_are_not_spellings_of_one(labels: list[str]) -> None:
    assert group_spellings(labels) == []


def test_the_warning_about_spellings_names_them_and_the_option() -> None:
    assert warnings_on("Help Desk", "helpdesk", "STRASSE", "Straße", "x") == [
        (
            "labels that differ only in spelling, such as case or spaces: 'Help Desk' and 'helpdesk'; "
            "'STRASSE' and 'Straße'; to merge them, set merge_labels to similar"
        )
    ]
    groups = [name for i in range(7) for name in (f"x{i}", f"X{i}")]
    assert ", and 2 more; to merge" in warnings_on(*groups)[0]


def test_labels_that_look_like_missing_values_get_a_warning() -> None:
    assert warnings_on("nan", "None", "billing", "unknown", "other") == [
        ("labels that look like missing values: 'None', 'nan'; to remove them, list them in remove_labels")
    ]


@pytest.mark.parametrize(
    ("separator", "labels"),
    [
        ("|", ["a|b", "b|c", "a", "c"]),
        ("#", ["a#b", "b"]),
        (";", ["a; b", "b"]),
        ("/", ["a/b", "a", "b"]),
        (",", ["a, b", "a", "b"]),
        ("\t", ["a\tb", "b"]),
        (" ", ["a b", "b c", "a c", "a", "b", "c"]),
        ("|", ["x|y", "x|z", "y|z", "x|y|z"]),
    ],
)
def test_a_separator_that_was_not_set_gets_a_warning(separator: str, labels: list[str]) -> None:
    (warning,) = warnings_on(*labels)
    assert warning.startswith(f"labels that contain {separator!r} between names of other labels: ")
    assert warning.endswith(f"if {separator!r} separates labels, set label_separator to {separator!r}")


@pytest.mark.parametrize(
    "labels",
    [
        ["C#", "C", "F#"],
        ["billing/2024", "billing"],
        ["Sales, EMEA", "Sales"],
        ["issue #1", "issue #2"],
        ["Team A", "Team", "A"],
        ["a|b", "c|d"],
    ],
)
def test_a_mark_inside_a_label_is_no_separator(labels: list[str]) -> None:
    assert warnings_on(*labels) == []


def test_paths_of_the_label_tree_are_not_separated_labels() -> None:
    assert warnings_on("a", "b", "a/b", **{"a/b": "a"}) == []


def test_halves_of_a_cut_label_get_a_warning() -> None:
    assert warnings_on("Sales (EMEA", "APAC)", "x") == [
        (
            "labels with only one of a pair of brackets or quotes: 'APAC)', 'Sales (EMEA'; "
            "if the separator is a part of a label, write the label in quotes"
        )
    ]
    assert len(warnings_on('"Sales', 'EMEA"')) == 1
    assert warnings_on("a) first", "b) second", '19"', "Sales (EMEA)") == []
