"""JSON Lines: valid lines, and bad lines reported by line and field."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.data.examples import Examples, FeatureRows
from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.store import StoredExamples
from models.errors import BadDataError
from models.labels import LabelTree
from models.mail.email import Email

GOOD = b'{"text": "good", "labels": ["x"]}\n'


def read(content: bytes, folder: Path, **options: Any) -> tuple[DatasetReport, StoredExamples]:
    report = ingest(io.BytesIO(content), "jsonl", folder / "set.parquet", **options)
    return report, StoredExamples(folder / "set.parquet")


def lines(*examples: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(example).encode() + b"\n" for example in examples)


def test_text_examples_round_trip(tmp_path: Path) -> None:
    report, stored = read(
        lines(
            {"id": "a", "text": "eins", "labels": ["y", "x", "y"], "split": "train"},
            {"text": "zwei", "labels": [], "split": "test"},
            {"text": "drei", "labels": ["x"]},
        ),
        tmp_path,
    )
    (batch,) = stored.batches()
    assert documents_of(batch) == ["eins", "zwei", "drei"]
    assert list(batch.labels) == stored.label_sets() == [("x", "y"), (), ("x",)]
    assert list(batch.ids) == ["a", "2", "3"]
    assert stored.splits() == ["train", "test", None]
    assert stored.kind == report.kind == "text"
    assert report.label_counts == {"x": 2, "y": 1}
    assert (report.n_examples, report.n_labels, report.n_unlabelled) == (3, 2, 1)
    assert report.splits == {"train": 1, "validation": 0, "test": 1, "none": 1}
    assert report.label_cardinality == pytest.approx(1.0)
    assert report.label_density == pytest.approx(0.5)
    json.dumps(report.to_json(), allow_nan=False)


def test_features_are_sorted_by_name_and_sparse(tmp_path: Path) -> None:
    report, stored = read(
        lines(
            {"features": {"width": 2.5, "depth": 0}, "labels": ["x"]},
            {"features": {}, "labels": ["x"]},
            {"features": {"height": -1, "width": 3}, "labels": ["x"]},
        ),
        tmp_path,
    )
    (batch,) = stored.batches()
    assert isinstance(batch.documents, FeatureRows)
    assert list(batch.documents.names) == ["depth", "height", "width"]
    np.testing.assert_array_equal(batch.documents.matrix.toarray(), [[0, 0, 2.5], [0, 0, 0], [0, -1, 3]])
    assert batch.documents.matrix.nnz == 3
    assert batch.documents.matrix.has_sorted_indices
    assert report.n_features == 3


def test_raw_and_parsed_mail_are_the_same_kind(tmp_path: Path) -> None:
    raw = b"Subject: \xff\r\n\r\nbody"
    report, stored = read(
        lines(
            {"raw_email": base64.b64encode(raw).decode(), "labels": ["x"]},
            {"email": {"subject": "s", "from": "f", "to": "t", "text": "b", "html": "<p>"}, "labels": ["x"]},
        ),
        tmp_path,
    )
    (batch,) = stored.batches()
    assert report.kind == "email"
    assert documents_of(batch) == [Email(raw=raw), Email(None, "s", "f", "t", "b", "<p>")]


def test_an_email_has_a_mailing_list_and_attachments(tmp_path: Path) -> None:
    files = [{"name": "a.pdf", "content_type": "application/pdf"}, {"name": "b"}, {}]
    _, stored = read(
        lines(
            {"email": {"text": "b", "list_id": "<users.example>", "attachments": files}, "labels": ["x"]},
            {"email": {"text": "c", "attachments": None}, "labels": ["x"]},
        ),
        tmp_path,
    )
    (batch,) = stored.batches()
    attachments = (("a.pdf", "application/pdf"), ("b", ""), ("", ""))
    assert documents_of(batch) == [
        Email(text="b", list_id="<users.example>", attachments=attachments),
        Email(text="c"),
    ]


def test_a_stored_data_set_without_a_column_is_refused_with_its_name(tmp_path: Path) -> None:
    _, stored = read(lines({"email": {"subject": "s"}, "labels": ["x"]}), tmp_path)
    table = pq.read_table(stored.path).drop_columns(["list_id", "attachments"])
    header = (pq.read_metadata(stored.path).metadata or {})[b"covey"]
    pq.write_table(table.replace_schema_metadata({b"covey": header}), tmp_path / "old.parquet")
    with pytest.raises(BadDataError, match="lacks the columns attachments, list_id; upload"):
        StoredExamples(tmp_path / "old.parquet")


@pytest.mark.parametrize("name", ["a,b", 'say "hi"', "👩‍🚀 crew", "ÄÖ/ü", " padded ", "'", "a\\b"])
def test_label_names_are_not_changed(name: str, tmp_path: Path) -> None:
    report, stored = read(lines({"text": "t", "labels": [name]}), tmp_path)
    assert report.label_counts == {name: 1}
    assert stored.label_sets() == [(name,)]


def test_crlf_blank_lines_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    report, _ = read(b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n") + b"\r\n  \n" + GOOD.rstrip(), tmp_path)
    assert report.n_examples == 2


def documents_of(batch: Examples) -> list[Any]:
    return list(cast("list[Any]", batch.documents))


BAD_LINES = {
    "truncated": (b'{"text": "b", "labels": ["x"]', None, "column 29: not valid JSON"),
    "not an object": (b"[1]", None, "JSON object, not a list"),
    "label string": (b'{"text": "b", "labels": "x, y"}', "/labels", "set the option label_separator"),
    "label boolean": (b'{"text": "b", "labels": ["x", true]}', "/labels/1", "not a boolean"),
    "label null": (b'{"text": "b", "labels": [null]}', "/labels/0", "not a missing value"),
    "label empty": (b'{"text": "b", "labels": [""]}', "/labels/0", "must not be empty"),
    "label blank": (b'{"text": "b", "labels": [" "]}', "/labels/0", "must not be empty"),
    "label control": (b'{"text": "b", "labels": ["a\\u0000"]}', "/labels/0", "control characters"),
    "label long": (b'{"text": "b", "labels": ["' + b"x" * 513 + b'"]}', "/labels/0", "513 characters"),
    "labels missing": (b'{"text": "b"}', "/labels", "the field labels is missing"),
    "no document": (b'{"labels": []}', None, "none of them"),
    "two documents": (b'{"text": "", "email": {}, "labels": []}', None, "text and email"),
    "text number": (b'{"text": 3, "labels": []}', "/text", "not a number"),
    "unknown field": (b'{"text": "b", "lables": []}', "/lables", "unknown field"),
    "nan": (b'{"features": {"a": NaN}, "labels": []}', None, "column 20: not valid JSON"),
    "infinity": (b'{"features": {"a": -Infinity}, "labels": []}', None, "not valid JSON"),
    "overflow": (b'{"features": {"a": 1e999}, "labels": []}', "/features/a", "finite"),
    "large integer": (b'{"features": {"a": 1' + b"0" * 400 + b'}, "labels": []}', "/features/a", "finite"),
    "large integers": (
        b'{"features": {"a": 1' + b"0" * 400 + b', "b": -1' + b"0" * 400 + b'}, "labels": []}',
        "/features/a",
        "finite",
    ),
    "feature blank": (b'{"features": {"a": 1, " ": 1}, "labels": []}', "/features/ ", "must not be empty"),
    "feature long": (
        b'{"features": {"' + b"a" * 513 + b'": 1}, "labels": []}',
        "/features/" + "a" * 513,
        "513",
    ),
    "feature control": (b'{"features": {"a\\u0001": 1}, "labels": []}', "/features/a\x01", "control"),
    "boolean": (b'{"features": {"a~/b": true}, "labels": []}', "/features/a~0~1b", "not a boolean"),
    "feature list": (b'{"features": [1], "labels": []}', "/features", "not a list"),
    "feature unnamed": (b'{"features": {"": 1}, "labels": []}', "/features/", "must not be empty"),
    "repeated key": (b'{"text": "a", "text": "b", "labels": []}', "/text", "twice"),
    "repeated, spaced": (b'{"text" : "a", "te\\u0078t" \t: "b", "labels": []}', "/text", "twice"),
    "repeated feature": (b'{"features": {"a": 1, "a": 2}, "labels": []}', "/a", "twice"),
    "email string": (b'{"email": "b", "labels": []}', "/email", "not a string"),
    "email field": (b'{"email": {"cc": "b"}, "labels": []}', "/email/cc", "unknown field"),
    "email number": (b'{"email": {"to": 3}, "labels": []}', "/email/to", "not a number"),
    "attachments": (
        b'{"email": {"attachments": {}}, "labels": []}',
        "/email/attachments",
        "must be a list, not an object",
    ),
    "attachment": (
        b'{"email": {"attachments": ["a.pdf"]}, "labels": []}',
        "/email/attachments/0",
        "must be an object, not a string",
    ),
    "attachment field": (
        b'{"email": {"attachments": [{}, {"size": 1}]}, "labels": []}',
        "/email/attachments/1/size",
        "the fields of an attachment are name, content_type",
    ),
    "attachment name": (
        b'{"email": {"attachments": [{"name": 1}]}, "labels": []}',
        "/email/attachments/0/name",
        "not a number",
    ),
    "base64": (b'{"raw_email": "%%%%", "labels": []}', "/raw_email", "must be base64"),
    "base64 not ascii": ('{"raw_email": "é", "labels": []}'.encode(), "/raw_email", "must be base64"),
    "split": (b'{"text": "b", "labels": [], "split": "holdout"}', "/split", "'holdout'"),
    "split list": (b'{"text": "b", "labels": [], "split": []}', "/split", "not a list"),
    "id fraction": (b'{"text": "b", "labels": [], "id": 3.5}', "/id", "a whole number"),
    "surrogate": (b'{"text": "\\ud800", "labels": []}', None, "not valid JSON"),
    "not utf-8": ('{"text": "éé'.encode() + b'\xff", "labels": []}', None, "column 13: byte 0xff"),
    "nested": (b"[" * 100_000, None, "recursion"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_reported_by_line_field_and_reason(case: str, tmp_path: Path) -> None:
    line, field, reason = BAD_LINES[case]
    with pytest.raises(BadDataError, match=r"^1 record cannot be used: line 3") as caught:
        read(GOOD + b"\n" + line + b"\n" + GOOD, tmp_path)
    (record,) = caught.value.records
    assert record.line == 3
    assert record.field == field
    assert reason in record.reason
    assert list(tmp_path.iterdir()) == []


def test_colons_in_a_text_are_not_repeated_keys(tmp_path: Path) -> None:
    report, _ = read(lines({"text": 'he said "labels": and "text" : "x":', "labels": ["x"]}), tmp_path)
    assert report.n_examples == 1


def test_mixed_kinds_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match=r"line 2: the example is of kind features.*kind text"):
        read(GOOD + lines({"features": {}, "labels": []}), tmp_path)


def test_ids_must_differ_from_each_other_and_from_running_numbers(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="line 2, /id: an earlier example has the same id 'a'"):
        read(lines(*[{"id": "a", "text": "", "labels": ["x"]}] * 2), tmp_path)
    with pytest.raises(BadDataError, match="'1'"):
        read(GOOD + lines({"id": "1", "text": "", "labels": ["x"]}), tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n \r\n", b"\xef\xbb\xbf"])
def test_a_file_without_examples_is_rejected(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="contains no examples"):
        read(content, tmp_path)


def test_a_file_without_labels_is_read_with_a_warning(tmp_path: Path) -> None:
    report, examples = read(lines(*[{"text": f"t{i}", "labels": []} for i in range(3)]), tmp_path)
    assert (report.n_examples, report.n_labels, report.n_unlabelled) == (3, 0, 3)
    assert report.label_cardinality == report.label_density == 0
    assert report.warnings == ["no example has a label; the data set is only suitable for batch predictions"]
    assert examples.label_sets() == [()] * 3


def test_up_to_twenty_bad_records_are_reported(tmp_path: Path) -> None:
    with pytest.raises(BadDataError) as caught:
        read(GOOD + b"{}\n" * 7, tmp_path)
    assert [record.line for record in caught.value.records] == list(range(2, 9))
    with pytest.raises(BadDataError) as caught:
        read(b"{}\n" * 50, tmp_path)
    assert len(caught.value.records) == 20


def test_some_bad_records_can_be_allowed(tmp_path: Path) -> None:
    report, stored = read(GOOD + b"{}\n" * 30 + GOOD, tmp_path, max_bad_records=30)
    assert (report.n_examples, report.n_bad_records, len(report.bad_records)) == (2, 30, 20)
    assert stored.n_examples == 2
    with pytest.raises(BadDataError, match="at least 31 records cannot be used; the first: line 2"):
        read(GOOD + b"{}\n" * 31 + GOOD, tmp_path, max_bad_records=30)


def test_a_rejected_file_does_not_change_an_earlier_data_set(tmp_path: Path) -> None:
    read(GOOD, tmp_path)
    with pytest.raises(BadDataError):
        read(b"{}", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["set.parquet"]
    assert StoredExamples(tmp_path / "set.parquet").n_examples == 1


def test_an_exception_in_progress_stops_the_ingestion(tmp_path: Path) -> None:
    def stop(n_bytes: int) -> None:
        if n_bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(GOOD, tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_progress_receives_the_bytes_of_the_file(tmp_path: Path) -> None:
    counts: list[int] = []
    read(GOOD * 20_000, tmp_path, progress=counts.append)
    assert counts == sorted(counts)
    assert counts[-1] == len(GOOD) * 20_000
    assert len(counts) > 2


def test_label_sets_get_the_ancestors_in_the_tree(tmp_path: Path) -> None:
    tree = LabelTree({"C11": "C1", "C1": "C", "D1": "D"})
    report, stored = read(lines({"text": "t", "labels": ["C11"]}), tmp_path, tree=tree)
    assert stored.label_sets() == [("C", "C1", "C11")]
    assert report.label_counts == {"C": 1, "C1": 1, "C11": 1, "D": 0, "D1": 0}
    assert stored.labels == ["C", "C1", "C11", "D", "D1"]
    assert report.label_tree == stored.parents == {"C1": "C", "C11": "C1", "D1": "D"}


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (IngestLimits(examples=2), "more than 2 examples"),
        (IngestLimits(labels=2), "more than 2 labels"),
        (IngestLimits(features=2), "more than 2 features"),
        (IngestLimits(record_bytes=10), "longer than the limit of 10 bytes"),
    ],
)
def test_limits_are_enforced(limits: IngestLimits, reason: str, tmp_path: Path) -> None:
    content = lines(*({"features": {f"f{i}": 1}, "labels": [f"l{i}"]} for i in range(3)))
    read(content, tmp_path)
    with pytest.raises(BadDataError, match=reason):
        read(content, tmp_path, limits=limits)


def test_a_text_that_is_too_long_is_a_bad_record(tmp_path: Path) -> None:
    content = lines({"text": "x" * 11, "labels": ["a"]}, {"text": "x" * 10, "labels": ["a"]})
    report, _ = read(content, tmp_path, limits=IngestLimits(text_chars=10), max_bad_records=1)
    assert report.n_examples == 1
    assert report.bad_records[0].field == "/text"
    assert "11 characters; the limit is 10" in report.bad_records[0].reason


class EndlessLine(io.RawIOBase):
    """A stream of 1 GiB of the letter a, generated on the fly. Records the largest read."""

    def __init__(self) -> None:
        self.left = 2**30
        self.largest = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self.largest = max(self.largest, len(buffer))
        n = min(len(buffer), self.left)
        self.left -= n
        buffer[:n] = b"a" * n
        return n


def test_a_line_of_a_gibibyte_is_read_in_bounded_memory(tmp_path: Path) -> None:
    stream = EndlessLine()
    with pytest.raises(BadDataError, match="line 1: the line is longer than"):
        ingest(
            cast("BinaryIO", stream),
            "jsonl",
            tmp_path / "set.parquet",
            limits=IngestLimits(record_bytes=2**20),
        )
    assert stream.left == 0
    assert stream.largest <= 2**20


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_rejected_without_a_crash(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.raises(BadDataError):
        read(GOOD + b"{" + content, folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"labels": st.lists(st.sampled_from(["a", "b"]), max_size=2) | JSON},
            optional={"text": st.text() | JSON, "id": st.text() | JSON, "split": JSON, "features": JSON},
        ),
        max_size=4,
    )
)
def test_any_object_is_read_or_rejected(
    tmp_path_factory: pytest.TempPathFactory, examples: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    content = GOOD + lines(*examples)
    report, stored = read(content, folder, max_bad_records=10)
    assert report.n_examples + report.n_bad_records == 1 + len(examples)
    assert sum(batch.n_examples for batch in stored.batches()) == report.n_examples
