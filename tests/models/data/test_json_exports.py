"""JSON as tools and people write it: other fields, arrays, objects over several lines, annotation tools."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, cast

import pytest

from models.data.ingestion.ingest import ingest
from models.data.ingestion.report import DatasetReport
from models.data.limits import IngestLimits
from models.data.readers.jsonl import JSONLOptions
from models.data.store import StoredExamples
from models.data.syntax.json_stream import find_layout, numbered_values
from models.errors import BadDataError, BadRecord


class Read:
    """A stored data set in short form."""

    def __init__(self, content: bytes, folder: Path, limits: IngestLimits | None = None, **options: Any):
        parsed = JSONLOptions(format="jsonl", **options) if options else None
        target = folder / "set.parquet"
        self.report: DatasetReport = ingest(io.BytesIO(content), None, target, options=parsed, limits=limits)
        self.stored = StoredExamples(target)
        batches = list(self.stored.batches())
        self.documents: list[Any] = [
            document
            for batch in batches
            if self.stored.kind != "features"
            for document in cast("list[Any]", batch.documents)
        ]
        self.ids = [id_ for batch in batches for id_ in batch.ids]
        self.labels = self.stored.label_sets()
        self.unknown = [unknown for batch in batches for unknown in batch.unknown]


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


# --- fields and options ---


def test_doccano_lines_are_read_without_options(tmp_path: Path) -> None:
    read = Read(
        lines(
            {"id": 1, "text": "one", "label": ["a", "b"], "Comments": []},
            {"id": 2, "text": "two", "label": [], "Comments": []},
            {"id": 3, "data": "three", "label": "b"},
        ),
        tmp_path,
    )
    assert read.documents == ["one", "two", "three"]
    assert read.labels == [("a", "b"), (), ("b",)]
    assert read.ids == ["1", "2", "3"]
    assert "unused fields: 'Comments'" in read.report.warnings


def test_null_is_no_value_and_null_text_is_an_empty_document(tmp_path: Path) -> None:
    read = Read(
        lines(
            {
                "id": None,
                "text": "one",
                "labels": ["a"],
                "split": None,
                "email": None,
                "unknown_labels": None,
            },
            {"text": None, "labels": None},
        ),
        tmp_path,
    )
    assert read.documents == ["one", ""]
    assert read.ids == ["1", "2"]
    assert read.labels == [("a",), ()]
    assert read.report.n_empty == 1


def test_null_features_are_zero_and_counted(tmp_path: Path) -> None:
    read = Read(lines({"features": {"x": None, "y": 2}, "labels": ["a"]}), tmp_path)
    assert "features without a value: 1; they were read as 0" in read.report.warnings


def test_options_name_fields_and_other_fields_are_unused(tmp_path: Path) -> None:
    read = Read(
        lines(
            {
                "Ticket": 7,
                "mail": {"subject": "S", "body": "B"},
                "Team": "x|y",
                "part": "Lernen",
                "note": 1,
                "by": "me",
            },
            {"Ticket": 8, "mail": {"subject": "", "body": "C"}, "Team": None, "part": "dev", "by": "me"},
        ),
        tmp_path,
        text=["/mail/subject", "/mail/body"],
        labels="Team",
        label_separator="|",
        id="Ticket",
        split="part",
        split_words={"train": ["Lernen"]},
        ignore=["by"],
    )
    assert read.documents == ["S\n\nB", "C"]
    assert read.labels == [("x", "y"), ()]
    assert read.ids == ["7", "8"]
    assert read.stored.splits() == ["train", "validation"]
    assert "unused fields: 'note'" in read.report.warnings


@pytest.mark.parametrize("option", ["label_columns", "labels"])
def test_label_fields_features_and_mail_can_be_named(tmp_path: Path, option: str) -> None:
    label_columns: dict[str, Any] = {option: ["toxic", "obscene", "threat"]}
    flags = Read(
        lines(
            {"comment": "x", "toxic": 1, "obscene": False, "threat": -1},
            {"comment": "y", "toxic": 0.0, "obscene": True, "threat": None},
        ),
        tmp_path,
        text="comment",
        **label_columns,
    )
    assert flags.labels == [("toxic",), ("obscene",)]
    assert flags.unknown == [("threat",), ()]
    assert any(w.startswith("label fields without a value: 1;") for w in flags.report.warnings)
    features = Read(
        lines({"w": 1.5, "ok": True, "k": 1}, {"w": None, "ok": False, "k": 2}),
        tmp_path,
        features=["w", "ok"],
        labels="k",
        label_names=["one", "two"],
        first_label=1,
    )
    assert features.report.label_counts == {"one": 1, "two": 1}
    assert features.report.n_features == 2
    mail = Read(lines({"s": "Hi", "b": None, "labels": ["a"]}), tmp_path, email={"subject": "s", "text": "b"})
    assert (mail.documents[0].subject, mail.documents[0].text) == ("Hi", "")


def test_numbers_of_classes_are_labels(tmp_path: Path) -> None:
    assert Read(lines({"text": "a", "label": 3}), tmp_path).labels == [("3",)]
    named = Read(lines({"text": "a", "label": 1}), tmp_path, label_names=["neg", "pos"])
    assert named.report.label_counts == {"neg": 0, "pos": 1}


@pytest.mark.parametrize(
    ("value", "options", "reason"),
    [
        ({"text": "a", "topic": "b"}, {}, "in options such as text and labels"),
        ({"text": "a", "labels": ["a"], "label": ["b"]}, {}, "in the fields labels and label"),
        ({"text": "a", "label": "Sales, EMEA"}, {}, "set the option label_separator"),
        ({"text": "a", "cats": {"b": 0.7}}, {}, "which is a score"),
        ({"text": "a", "label": [[0, 1, "PER"]]}, {}, "not a list"),
        ({"text": "a", "labels": []}, {"labels": "Team"}, "names the field 'Team', which no example has"),
        ({"text": "a", "labels": []}, {"text": "Body"}, "names the field 'Body', which no example has"),
        ({"text": "a", "labels": []}, {"id": "Ticket"}, "names the field 'Ticket', which no example has"),
        ({"text": "a", "labels": []}, {"text": "text", "features": ["x"]}, "set only one of them"),
        ({"text": "a", "labels": [], "note": 1}, {"ignore": ["typo"]}, "unknown field"),
    ],
)
def test_doubtful_fields_are_rejected_with_what_to_do(
    value: dict[str, Any], options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(BadDataError) as caught:
        Read(lines(value), tmp_path, **options)
    assert reason in str(caught.value)


def test_a_named_field_can_be_missing_in_no_record(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="line 2, /Team: the field 'Team' is missing"):
        Read(lines({"text": "a", "Team": ["x"]}, {"text": "b"}), tmp_path, labels="Team")
    with pytest.raises(BadDataError, match="line 2, /in/Body: the field '/in/Body' is missing"):
        Read(lines({"in": {"Body": "b"}, "labels": []}, {"labels": []}), tmp_path, text="/in/Body")


# --- arrays and objects over several lines ---


EXAMPLES = [{"text": 'a "quoted" [{', "labels": ["x"]}, {"text": "b\\", "labels": []}]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("is_array", [True, False])
def test_an_array_and_objects_over_several_lines_are_read(
    indent: int | None, is_array: bool, tmp_path: Path
) -> None:
    values = [EXAMPLES] if is_array else EXAMPLES
    content = "\n".join(json.dumps(value, indent=indent) for value in values).encode()
    read = Read(b"\xef\xbb\xbf" + content, tmp_path)
    assert read.documents == ['a "quoted" [{', "b\\"]
    assert read.labels == [("x",), ()]


def test_errors_in_an_array_name_the_line(tmp_path: Path) -> None:
    content = b'[\n {"text": "a", "labels": ["x"]},\n {\n  "text": NaN,\n  "labels": []\n }\n]'
    with pytest.raises(
        BadDataError, match=r"1 record .* line 3: line 4, column 11: not valid JSON: NaN is not"
    ):
        Read(content, tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'[{"text": "a", "labels": []},\n]', "line 1: a comma after the last example"),
        (b'[{"text": "a", "labels": []}\n{"text": "b", "labels": []}]', "line 2: a comma is missing"),
        (b'[{"text": "a", "labels": []}', "line 1: the file ends before the end of the array"),
        (b'[{"text": "a", "labels": []}]\nx', "line 2: text after the end of the array"),
        (b'[\n{"text": "a\n", "labels": []}]', "line 2: a text has no closing quote"),
        (b'{\n"text": "a",\n"labels": [', "the example that begins in line 1 has no end"),
        (b'{\n"text": "a",\n"labels": []\n},\n{}', "line 4: a comma between examples"),
        (b'{"rows": [{"text": "a", "labels": []}]}', "the examples are in its list 'rows'"),
        (b'{"text": "a", "labels": []}{"text": "b", "labels": []}', "another object begins here"),
        (b"{'text': 'a', 'labels': []}", "this is Python, not JSON"),
        (b'{"text": None, "labels": []}', "this is Python, not JSON"),
        (b'{"text": "a", "labels": []},', "a comma after the example"),
    ],
)
def test_one_error_names_the_cause(content: bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadDataError) as caught:
        Read(content, tmp_path)
    assert reason in str(caught.value)
    assert len(caught.value.records) <= 1


class SmallReads(io.BytesIO):
    """Returns at most a few bytes for each read, so that values are cut at every place."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size or 0, self._size))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_values_are_found_wherever_the_stream_is_cut(size: int) -> None:
    content = b'[ {"a": "\\"]}{[\\\\", "b": [1, {"c": []}]} ,\n"x,]", 12 ,\n[["y"]]\n]\n'
    values = list(numbered_values(SmallReads(content, size), "array", 1000))
    assert values == [
        (1, b'{"a": "\\"]}{[\\\\", "b": [1, {"c": []}]}'),
        (2, b'"x,]"'),
        (2, b"12"),
        (3, b'[["y"]]'),
    ]
    assert not any(isinstance(value, BadRecord) for value in values)


def test_a_large_value_in_an_array_is_rejected_in_bounded_memory() -> None:
    class Endless(io.BytesIO):
        n_read = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.n_read += size or 0
            return b'["' if self.n_read == size else b"a" * (size or 0)

    stream = Endless()
    with pytest.raises(
        BadDataError, match=r"line 1: the example is longer than the limit of 1,048,576 bytes"
    ):
        list(numbered_values(stream, "array", 2**20))
    assert stream.n_read < 4 * 2**20


def test_the_layout_is_found_from_the_first_line() -> None:
    assert find_layout(b'["a", {"cats": {}}]\n["b", {"cats": {}}]') == "lines"
    assert find_layout(b'[["a", {"cats": {}}]]') == "array"
    assert find_layout(b'{"text": "a [",') == "lines"


# --- annotation tools ---


def task(number: int, text: str, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {
        "id": number,
        "annotations": list(annotations),
        "data": {"text": text, **data},
        "drafts": [],
        "meta": {},
    }


def annotation(*labels: str, control: str = "topic", **fields: Any) -> dict[str, Any]:
    value = {"value": {"choices": list(labels)}, "from_name": control, "to_name": "t", "type": "choices"}
    return {"id": 1, "result": [value] if labels else [], "was_cancelled": False, **fields}


def test_tasks_of_label_studio_are_read(tmp_path: Path) -> None:
    tasks = [
        task(11, "one", annotation("a", "b")),
        task(12, "two", annotation("a"), annotation("b", was_cancelled=True)),
        task(13, "skipped", annotation("a", was_cancelled=True)),
        task(14, "three", annotation("a", "b"), annotation("b")),
        task(15, "four", annotation("a"), annotation("b", ground_truth=True)),
        task(16, "five", annotation(), source="web"),
    ]
    read = Read(json.dumps(tasks, indent=2).encode(), tmp_path)
    assert read.documents == ["one", "two", "three", "four", "five"]
    assert read.ids == ["11", "12", "14", "15", "16"]
    assert read.labels == [("a", "b"), ("a",), ("b",), ("b",), ()]
    assert read.unknown == [(), (), ("a",), (), ()]
    warnings = " | ".join(read.report.warnings)
    assert "tasks without an annotation: 1;" in warnings
    assert "tasks with different labels from several annotators: 1;" in warnings


def test_the_option_labels_chooses_controls_of_label_studio(tmp_path: Path) -> None:
    both = annotation("a")
    both["result"] += annotation("urgent", control="urgency")["result"]
    content = json.dumps([task(1, "x", both, body="y")]).encode()
    with pytest.raises(BadDataError, match="several controls: 'topic', 'urgency'; set the option labels"):
        Read(content, tmp_path)
    read = Read(content, tmp_path, labels="urgency", text="body")
    assert (read.labels, read.documents) == ([("urgent",)], ["y"])
    assert Read(content, tmp_path, labels=["topic", "urgency"]).labels == [("a", "urgent")]
    with pytest.raises(BadDataError, match="'mood', which no annotation has"):
        Read(content, tmp_path, labels="mood")


def test_taxonomies_of_label_studio_are_paths(tmp_path: Path) -> None:
    result = {"value": {"taxonomy": [["A", "B"], ["C"]]}, "from_name": "t", "type": "taxonomy"}
    content = json.dumps([task(1, "x", {"result": [result]})]).encode()
    assert Read(content, tmp_path).labels == [("A/B", "C")]


def test_label_studio_without_choices_for_the_document_is_rejected(tmp_path: Path) -> None:
    span = {"value": {"start": 0, "end": 1, "labels": ["PER"]}, "from_name": "n", "type": "labels"}
    with pytest.raises(BadDataError, match="no annotation of Label Studio has choices"):
        Read(json.dumps([task(1, "x", {"result": [span]})]).encode(), tmp_path)
    region = {"value": {"start": 0, "end": 1, "choices": ["a"]}, "from_name": "n", "type": "choices"}
    with pytest.raises(BadDataError, match="only to a part of the document"):
        Read(json.dumps([task(1, "x", {"result": [region]})]).encode(), tmp_path)


def test_json_min_of_label_studio_is_read_with_options(tmp_path: Path) -> None:
    content = json.dumps(
        [
            {"text": "one", "id": 1, "topic": {"choices": ["a", "b"]}, "annotator": 1, "lead_time": 2.5},
            {"text": "two", "id": 2, "topic": "Sales, EMEA", "annotator": 1, "lead_time": 1},
        ]
    ).encode()
    with pytest.raises(BadDataError, match=r"line 1, /topic: unknown field"):
        Read(content, tmp_path)
    read = Read(content, tmp_path, labels="topic", label_separator=";")
    assert read.labels == [("a", "b"), ("Sales, EMEA",)]


def test_choices_of_prodigy_are_read(tmp_path: Path) -> None:
    options = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]
    common = {"options": options, "_task_hash": 1, "_view_id": "choice"}
    content = lines(
        {"text": "one", "accept": ["a", "b"], "answer": "accept", **common},
        {"text": "two", "accept": [], "answer": "accept", **common},
        {"text": "three", "accept": ["a"], "answer": "ignore", **common},
    )
    read = Read(content, tmp_path)
    assert read.documents == ["one", "two"]
    assert read.labels == [("a", "b"), ()]
    assert any(w.startswith("tasks with the answer reject or ignore: 1;") for w in read.report.warnings)
    with pytest.raises(BadDataError, match="about one label"):
        Read(lines({"text": "one", "label": "a", "answer": "accept", "_task_hash": 1}), tmp_path)


def test_categories_of_spacy_are_read(tmp_path: Path) -> None:
    cats = {"A": 1.0, "B": 0.0, "C": None}
    pairs = Read(lines(["one", {"cats": cats}], ["two", {"cats": {"A": False}}]), tmp_path)
    assert (pairs.documents, pairs.labels) == (["one", "two"], [("A",), ()])
    assert pairs.unknown == [("C",), ()]
    array = Read(json.dumps([["one", {"cats": cats, "entities": []}]]).encode(), tmp_path)
    assert array.labels == [("A",)]
    documents = Read(
        lines({"text": "one", "ents": [], "sents": [], "cats": {"A": 1}, "tokens": []}), tmp_path
    )
    assert documents.labels == [("A",)]
    version_2 = [{"id": 0, "paragraphs": [{"raw": "one", "cats": [{"label": "A", "value": 1.0}]}]}]
    assert Read(json.dumps(version_2).encode(), tmp_path).labels == [("A",)]
