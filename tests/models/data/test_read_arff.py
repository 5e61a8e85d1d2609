"""ARFF: Mulan files, alone or in a zip with their XML, and hierarchical files."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.arff import ARFFOptions
from models.data.store import StoredExamples
from models.data.syntax.mulan_xml import read_mulan_xml
from models.errors import BadDataError
from models.labels import LabelTree

HEADER = """% a comment
@RELATION 'a name: -C 2'
@attribute height numeric
@attribute  'is, it' {0,1}
@attribute\tcolour {red,'dark green',"it's"}
@attribute flag {YES,NO}
@attribute l1 {0,1}
@attribute "l, 2" {0,1}
@data
"""
XML = b"""<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels"><label name="l1"></label><label name="l, 2"/></labels>"""


def read(content: str | bytes, folder: Path, **options: Any) -> tuple[DatasetReport, Examples]:
    arguments = {name: options.pop(name) for name in ("tree", "limits", "max_bad_records") if name in options}
    report = ingest(
        io.BytesIO(content.encode() if isinstance(content, str) else content),
        "arff",
        folder / "set.parquet",
        options=ARFFOptions.model_validate({"format": "arff", **options}),
        **arguments,
    )
    return report, Examples.concatenate(list(StoredExamples(folder / "set.parquet").batches()))


def make_zip(*more: tuple[str, bytes | str], **members: bytes | str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in [*more, *members.items()]:
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def values(examples: Examples, row: int) -> dict[str, float]:
    assert isinstance(examples.documents, FeatureRows)
    cells = zip(examples.documents.names, examples.documents.matrix[[row]].toarray()[0], strict=True)
    return {name: value for name, value in cells if value}


LABELS = ["l1", "l, 2"]


def test_dense_and_sparse_rows_give_the_same_examples(tmp_path: Path) -> None:
    dense = HEADER + "1.5, 0, 'dark green', NO, 1, 0\n0,1,red,YES,0,1\r\n% end\n\n"
    sparse = HEADER + "{0 1.5,2 'dark green', 3 NO, 4 1}\n{ 1 1, 5 1 }\n"
    for content in (dense, sparse):
        report, examples = read(content, tmp_path, labels=LABELS)
        assert values(examples, 0) == {"height": 1.5, "colour=dark green": 1}
        assert values(examples, 1) == {"is, it": 1, "colour=red": 1, "flag": 1}
        assert list(examples.labels) == [("l1",), ("l, 2",)]
        assert report.n_features == 6
        assert report.label_counts == {"l, 2": 1, "l1": 1}


def test_missing_values_are_counted(tmp_path: Path) -> None:
    report, examples = read(HEADER + "?,?,?,NO,1,0\n", tmp_path, labels=LABELS)
    assert values(examples, 0) == {}
    assert report.warnings[:1] == ["missing values (?): 3; they were read as 0"]


def test_a_zip_with_an_xml_file(tmp_path: Path) -> None:
    for content in (
        make_zip(a__arff=HEADER + "{4 1}\n", a__xml=XML),
        make_zip(a__xml=XML, a__arff=HEADER + "{4 1}\n", readme__txt="hello"),
    ):
        report, examples = read(content, tmp_path)
        assert report.label_counts == {"l, 2": 0, "l1": 1}
        assert examples.splits() == [None]


def test_a_zip_with_a_training_and_a_test_file(tmp_path: Path) -> None:
    whole = HEADER + "{4 1}\n{5 1}\n"
    content = make_zip(
        ("x-test.arff", HEADER + "{5 1}\n"), ("x-train.arff", HEADER + "{4 1}\n"), x__arff=whole, x__xml=XML
    )
    report, examples = read(content, tmp_path)
    assert examples.splits() == ["train", "test"]
    assert list(examples.labels) == [("l1",), ("l, 2",)]
    assert report.n_examples == 2
    bad = make_zip(
        ("x-test.arff", HEADER + "{4 1}\n{9 1}\n"), ("x-train.arff", HEADER + "{4 1}\n"), x__xml=XML
    )
    with pytest.raises(BadDataError, match=r"line 11: x-test\.arff: index 9 is greater than the last"):
        read(bad, tmp_path)


def test_nested_labels_in_the_xml_are_a_label_tree(tmp_path: Path) -> None:
    xml = b'<labels><label name="l1"><label name="l, 2"/></label></labels>'
    report, examples = read(make_zip(a__arff=HEADER + "{5 1}\n", a__xml=xml), tmp_path)
    assert list(examples.labels) == [("l, 2", "l1")]
    assert report.label_tree == {"l, 2": "l1"}


def test_texts_and_ids(tmp_path: Path) -> None:
    content = "@relation r\n@attribute key string\n@attribute words string\n@attribute l {0,1}\n@data\n"
    content += "k1, 'it\\'s, well', 1\nk2, ?, 0\n"
    _, examples = read(content, tmp_path, labels=["l"], id="key")
    assert examples.kind == "text"
    assert list(examples.documents) == ["it's, well", ""]  # type: ignore[arg-type]
    assert list(examples.ids) == ["k1", "k2"]
    with pytest.raises(
        BadDataError,
        match=r"'key' is a string, but .*; name it in the option id or ignore",
    ):
        read(content, tmp_path, labels=["l"])
    _, examples = read(content, tmp_path, labels=["l"], ignore=["key"])
    assert list(examples.ids) == ["1", "2"]


def test_strings_have_the_escapes_of_weka(tmp_path: Path) -> None:
    head = "@relation r\n@attribute words string\n@attribute l {0,1}\n@data\n"
    cell = r"'one\n\ttwo \\ \'x\' \"y\" 50\% \u00fc\u001e \ud83d\ude00 \101 \q'"
    _, examples = read(head + cell + ",1\nC:\\new,0\n", tmp_path, labels=["l"])
    text = "one\n\ttwo \\ 'x' \"y\" 50% ü\x1e 😀 A q"
    assert list(examples.documents) == [text, "C:\\new"]  # type: ignore[arg-type]


def test_the_space_before_nominal_values_may_be_missing(tmp_path: Path) -> None:
    head = (
        "@relation r\n@attribute c1{0,1}\n@attribute 'c 2'{ a, string b }\n@attribute c3{0, 1,} % comment\n"
        "@attribute c4 { 0,1 } {2.5}\n@ATTRIBUTE x{y} REAL\n@attribute i Integer\n@data\n"
    )
    _, examples = read(head + "1,'string b',0,0,2,3\n", tmp_path, labels=["c1"])
    assert list(examples.labels) == [("c1",)]
    assert values(examples, 0) == {"c 2=string b": 1, "x{y}": 2, "i": 3}


def test_dates_and_relational_attributes_can_be_ignored(tmp_path: Path) -> None:
    content = (
        "@relation r\n@attribute l {0,1}\n@attribute bag relational\n  @attribute x numeric\n"
        "  @attribute inner relational\n    @attribute y numeric\n  @end inner\n@end bag\n"
        "@attribute sent date 'yyyy-MM-dd HH:mm'\n@attribute f numeric\n@data\n"
        "1,'1,\\'2\\n3\\'\\n4,?',\"2026-01-01 00:00\",3\n0,'4','2026-01-02 00:00',5\n"
    )
    _, examples = read(content, tmp_path, labels=["l"], ignore=["bag", "sent"])
    assert [values(examples, row) for row in (0, 1)] == [{"f": 3}, {"f": 5}]
    assert list(examples.labels) == [("l",), ()]
    with pytest.raises(BadDataError, match=r"'bag' has the type relational, .* name it in the option ignore"):
        read(content, tmp_path, labels=["l"], ignore=["sent"])


@pytest.mark.parametrize(
    ("relation", "labels"),
    [
        ("'toy: -C -2'", [("c",), ("d",)]),
        ("'a: b:-V -C 2 -split-percentage 66'", [("a",), ("a", "b")]),
        ('"toy: -x -C +1"', [("a",), ("a",)]),
    ],
)
def test_the_name_of_the_relation_states_the_labels_in_files_of_meka(
    relation: str, labels: list[tuple[str, ...]], tmp_path: Path
) -> None:
    names = "".join(f"@attribute {name} {{0,1}}\n" for name in "abcd")
    content = f"@relation {relation}\n{names}@data\n1,0,1,0\n1,1,0,1\n"
    _, examples = read(content, tmp_path)
    assert list(examples.labels) == labels
    _, examples = read(content, tmp_path, labels=["d"])
    assert list(examples.labels) == [(), ("d",)]


def test_the_values_of_a_class_attribute_are_labels(tmp_path: Path) -> None:
    head = "@relation r\n@attribute words string\n@attribute class {sport,'world news'}\n"
    rows = "@data\n'a goal',sport\n'war, again','world news'\nnone,?\n"
    report, examples = read(head + rows, tmp_path, labels=["class"])
    assert list(examples.labels) == [("sport",), ("world news",), ()]
    assert list(examples.unknown) == [(), (), ("sport", "world news")]
    assert report.label_counts == {"sport": 1, "world news": 1}
    with pytest.raises(BadDataError, match="line 5, class: 'opera' is not a value that the header declares"):
        read(head + "@data\na,opera\n", tmp_path, labels=["class"])
    two = head + "@attribute urgent {0,1}\n@attribute tone {kind,rude}\n@data\na,sport,1,rude\n"
    _, examples = read(two, tmp_path, labels=["class", "urgent", "tone"])
    assert list(examples.labels) == [("class=sport", "tone=rude", "urgent")]


def test_a_string_attribute_can_list_the_labels(tmp_path: Path) -> None:
    head = "@relation r\n@attribute words string\n@attribute tags string\n@data\n"
    _, examples = read(head + "a,'x, y'\nb,\"['x']\"\nc,?\n", tmp_path, labels=["tags"])
    assert list(examples.labels) == [("x", "y"), ("x",), ()]


def test_a_missing_label_is_unknown(tmp_path: Path) -> None:
    _, examples = read(HEADER + "1,0,red,NO,?,1\n{0 2, 5 ?}\n", tmp_path, labels=LABELS)
    assert list(examples.labels) == [("l, 2",), ()]
    assert list(examples.unknown) == [("l1",), ("l, 2",)]


def test_rows_may_have_what_weka_accepts(tmp_path: Path) -> None:
    content = HEADER.replace("colour {", "colour{")
    rows = [
        "1.5,0,'dark green',NO,1,0,",
        "1.5,0,'dark green',NO,1,0, {2.5}",
        "1.5,0,'dark green',NO,1,0 % a comment, with 'quotes",
        "1.5,0,'dark green',NO,1,0,{2} % a comment",
        "{0 1.5, 2 'dark green', 3 NO, 4 1,}",
        "{0 1.5, 2 'dark green', 3 NO, 4 1}, {0.5}",
        "{0 1.5, 2 'dark green', 3 NO, 4 1} % a comment",
    ]
    report, examples = read(content + "\n".join(rows) + "\n1.5 0 red\tNO  1 0\n", tmp_path, labels=LABELS)
    for row in range(len(rows)):
        assert values(examples, row) == {"height": 1.5, "colour=dark green": 1}, rows[row]
    assert values(examples, len(rows)) == {"height": 1.5, "colour=red": 1}
    assert set(examples.labels) == {("l1",)}
    assert "rows with a weight: 3; the weights were ignored; every row counts once" in report.warnings


def test_a_percent_sign_in_a_text_is_no_comment(tmp_path: Path) -> None:
    head = "@relation r\n@attribute l {0,1}\n@attribute words string\n@data\n"
    _, examples = read(head + "1,50 % off\n0,'a % b' % comment\n", tmp_path, labels=["l"])
    assert list(examples.documents) == ["50 % off", "a % b"]  # type: ignore[arg-type]


HIERARCHICAL = """@RELATION r
@ATTRIBUTE a NUMERIC
@ATTRIBUTE class hierarchical 2,2/1/3,4/6
@DATA
"""


def test_ancestor_classes_count_towards_the_label_limit(tmp_path: Path) -> None:
    head = "@relation r\n@attribute x numeric\n@attribute class hierarchical a/b/c/d,b\n@data\n1,b\n"
    assert read(head, tmp_path, limits=IngestLimits(labels=5))[0].n_labels == 5
    with pytest.raises(BadDataError, match="more than 4 labels"):
        read(head, tmp_path, limits=IngestLimits(labels=4))


def test_hierarchical_files_define_a_label_tree(tmp_path: Path) -> None:
    report, examples = read(HIERARCHICAL + "1,2@4/6\n2,2/1/3\n", tmp_path)
    assert list(examples.labels) == [("2", "4", "4/6"), ("2", "2/1", "2/1/3")]
    assert report.label_tree == {"2/1": "2", "2/1/3": "2/1", "4/6": "4"}
    assert report.label_counts == {"2": 2, "2/1": 1, "2/1/3": 1, "4": 1, "4/6": 1}
    with pytest.raises(BadDataError, match="contains a label tree; omit label_tree"):
        read(HIERARCHICAL + "1,2\n", tmp_path, tree=LabelTree({"a": "b"}))
    with pytest.raises(BadDataError, match="line 5: the header does not declare the class '3'"):
        read(HIERARCHICAL + "1,2@3\n", tmp_path)
    with pytest.raises(BadDataError, match="omit the list of labels"):
        read(HIERARCHICAL + "1,2\n", tmp_path, labels=["a"])


BAD_ROWS = {
    "too few": ("1,0,red", None, "the row has 3 values, but the header declares 6 attributes"),
    "too many": ("1,0,red,NO,0,0,0", None, "the row has 7 values"),
    "not a number": ("x,0,red,NO,0,0", "height", "'x' is not a finite number"),
    "nan": ("NaN,0,red,NO,0,0", "height", "not a finite number"),
    "overflow": ("1e999,0,red,NO,0,0", "height", "not a finite number"),
    "not a value": ("1,0,blue,NO,0,0", "colour", "'blue' is not a value that the header declares"),
    "label": ("1,0,red,NO,2,0", "l1", "a label must be 0 or 1, not '2'"),
    "open quote": ("1,0,'red,NO,0,0", None, "invalid quotes"),
    "open brace": ("{0 1", None, "no closing brace"),
    "no value": ("{0}", None, "'0' is not an index and a value"),
    "no index": ("{x 1}", None, "'x 1' is not an index and a value"),
    "negative": ("{-1 1}", None, "'-1 1' is not an index and a value"),
    "huge": ("{99999999999999999999 1}", None, "is not an index and a value"),
    "out of range": ("{6 1}", None, "index 6 is greater than the last index, 5"),
    "repeated": ("{0 1, 0 2}", "height", "index 0 occurs twice"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_reported_by_line_attribute_and_reason(case: str, tmp_path: Path) -> None:
    row, field, reason = BAD_ROWS[case]
    with pytest.raises(BadDataError) as caught:
        read(HEADER + "{4 1}\n" + row + "\n{5 1}\n", tmp_path, labels=LABELS)
    (record,) = caught.value.records
    assert (record.line, record.field) == (11, field)
    assert reason in record.reason


def test_a_row_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="line 10: column 1: byte 0xff is not valid UTF-8"):
        read(HEADER.encode() + b"\xff,0,red,NO,0,0\n", tmp_path, labels=LABELS)


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ("", {}, "has no line @data"),
        ("@relation r\nattribute x numeric\n", {}, "line 2: unknown keyword 'attribute'"),
        ("@attribute x\n", {}, "line 1: an attribute needs a name and a type"),
        ("@attribute x {a,b\n", {}, "line 1: attribute 'x': the list of values has no closing brace"),
        ("@attribute x {a,'b}\n", {}, "line 1: invalid quotes"),
        ("@attribute d dat yyyy\n@data\n", {}, "'d': the type 'dat' is not supported"),
        (
            "@attribute d DATE yyyy\n@attribute l {0,1}\n@data\n",
            {"labels": ["l"]},
            "'d' has the type date, which cannot be a feature; name it in the option ignore",
        ),
        ("@attribute d date\n@data\n", {"labels": ["d"]}, "'d' has the type date and cannot be a label"),
        (b"@attribute \xff numeric\n@data\n", {}, "line 1: column 12: byte 0xff"),
        (
            "@attribute a numeric\n@attribute a numeric\n@data\n",
            {"labels": ["a"]},
            "two attributes have the name 'a'",
        ),
        (HEADER.replace("-C 2", "x"), {}, "the labels are unknown"),
        (HEADER.replace("-C 2", "-C 6"), {}, r"states 6 labels \(-C 6\), but the file has 6 attributes"),
        (HEADER, {"labels": ["l1", "l3"]}, "the list of labels names the attribute 'l3'"),
        (HEADER, {"labels": LABELS, "id": "key"}, "the option id names the attribute 'key'"),
        (HEADER, {"labels": LABELS}, "contains no examples"),
        ("@attribute c hierarchical a//b\n@data\n", {}, "'a//b' is not a class path"),
        (make_zip(a__arff=HEADER, a__xml=XML), {"labels": LABELS}, "omit the option labels"),
        (make_zip(a__arff=HEADER, b__arff=HEADER, a__xml=XML), {}, "a zip archive with 2 files of data"),
        (make_zip(a__arff=HEADER, a__xml=XML, b__xml=XML), {}, "the zip contains 2 XML files"),
        (make_zip(a__arff=HEADER, a__xml=b"<labels>"), {}, "the XML file of labels cannot be read"),
        (make_zip(a__xml=XML), {}, "a zip archive without a file that ends in .arff"),
    ],
)
def test_unusable_files_are_rejected(
    content: str | bytes, options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(BadDataError, match=reason):
        read(content, tmp_path, **options)


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (b'<!DOCTYPE l [<!ENTITY a "b">]><labels><label name="&a;"/></labels>', "declares entities"),
        (b'<labels><label name="a"/><label name="a"/></labels>', "lists the label 'a' twice"),
        (b"<labels><label/></labels>", "a label without the attribute name"),
        (b"<labels/>", "lists no label"),
        (b'<?xml version="1.0" encoding="none"?><labels/>', "cannot be read"),
    ],
)
def test_invalid_xml_is_rejected(xml: bytes, reason: str) -> None:
    with pytest.raises(BadDataError, match=reason):
        read_mulan_xml(io.BytesIO(xml))


def test_unusable_zips_are_rejected(tmp_path: Path) -> None:
    whole = make_zip(a__arff=HEADER + "{4 1}\n", a__xml=XML)
    with pytest.raises(BadDataError, match="the zip is truncated"):
        read(whole[:-30], tmp_path)
    with pytest.raises(BadDataError, match="zip has more members than the limit of 1"):
        read(whole, tmp_path, limits=IngestLimits(zip_members=1))
    damaged = bytearray(whole)
    start = whole.index(b"a.arff") + len("a.arff") + 20
    damaged[start : start + 10] = bytes(10)
    with pytest.raises(BadDataError, match=r"member 'a\.arff' of the zip is damaged"):
        read(bytes(damaged), tmp_path)
    encrypted = bytearray(whole)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = whole.index(magic)
        encrypted[place + offset] |= 1
    with pytest.raises(BadDataError, match=r"member 'a\.arff' of the zip is encrypted"):
        read(bytes(encrypted), tmp_path)
    bomb = make_zip(a__xml=XML, a__arff=HEADER.encode() + b"%" * 2**25)
    with pytest.raises(BadDataError, match="expands to more than 200 times"):
        read(bomb, tmp_path, limits=IngestLimits(record_bytes=2**20))


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=100) | st.text(alphabet="{}0123,'\" ?ab\n\\", max_size=60).map(str.encode))
def test_any_rows_are_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    whole = HEADER.encode() + b"{4 1}\n" + content
    report, examples = read(whole, folder, labels=LABELS, max_bad_records=100)
    assert report.n_examples == examples.n_examples >= 1


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="@atribue {}'\",rl1\n% ", max_size=60))
def test_any_header_is_rejected_without_a_crash(
    tmp_path_factory: pytest.TempPathFactory, header: str
) -> None:
    with pytest.raises(BadDataError):
        read(header + "\n@data\n", tmp_path_factory.mktemp("fuzz"), labels=["l1"])


def test_unclosed_quotes_take_linear_time(tmp_path: Path) -> None:
    row = "a" * 200_000 + "'" + "b\\" * 200_000
    with pytest.raises(BadDataError, match="invalid quotes"):
        read(HEADER + row + "\n", tmp_path, labels=LABELS)


def test_sparse_rows_stay_sparse(tmp_path: Path) -> None:
    n = 20_000
    head = "@relation r\n" + "".join(f"@attribute a{j} {{0,1}}\n" for j in range(n)) + "@data\n"
    _, examples = read(head + f"{{0 1,{n - 1} 1}}\n" * 100, tmp_path, labels=["a0"])
    assert isinstance(examples.documents, FeatureRows)
    assert examples.documents.matrix.shape == (100, n - 1)
    assert examples.documents.matrix.nnz == 100
    assert np.all(examples.documents.matrix.data == 1)
