"""Pages of data sets, trainings and experiments: what they show, and what a visitor's scopes permit."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import in_process
import pytest
from httpx import Response
from in_process_api import InProcessApi
from stack import departments

from app.api.errors import make_problem
from app.console.sessions import COOKIE
from app.db import tables
from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate
from app.training import service as trainings

MARKUP = """<script>alert('1')</script> & "x" """


def page(api: InProcessApi, path: str, status: int = 200) -> str:
    """Return the text of a page for an administrator, without its tags."""
    return text_of(get(api, path, status))


def get(api: InProcessApi, path: str, status: int = 200) -> str:
    response = api.send("GET", path)
    assert response.status_code == status, response.text[:3000]
    assert response.headers["content-type"].startswith("text/html")
    assert "<script>" not in response.text, "a text of a user is escaped"
    return response.text


def text_of(html: str) -> str:
    """Return what a reader sees, with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL))


def uploaded(api: InProcessApi, content: bytes, **fields: Any) -> str:
    """Upload a data set, and return its id after a worker has read it."""
    created: str = api.call("POST", "/v1/datasets", 201, json={"name": "uploaded", **fields})["id"]
    path, headers = f"/v1/datasets/{created}/content", {"Content-Type": "application/octet-stream"}
    api.call("PUT", path, 202, content=content, headers=headers)
    in_process.work(api.ctx)
    return created


@pytest.fixture(scope="module")
def dataset(api: InProcessApi) -> str:
    """A data set of texts with a duplicate, a conflict, and a name with markup."""
    texts = [{key: item[key] for key in ("text", "labels")} for item in departments(40)]
    texts += [{"text": "équal words", "labels": [MARKUP]}, {"text": "équal words", "labels": ["billing"]}]
    created: str = api.call("POST", "/v1/datasets", 201, json={"name": MARKUP, "examples": texts})["id"]
    in_process.work(api.ctx)
    return created


@pytest.fixture(scope="module")
def trained(api: InProcessApi, dataset: str) -> dict[str, Any]:
    """A training with a learning curve that has succeeded."""
    learner = {"algorithm": "mp_boost", "rounds": 30}
    job = api.train(dataset, "helpdesk", learner=learner, split={"kind": "random", "test_fraction": 0.25})
    done: dict[str, Any] = api.call("GET", f"/v1/training-jobs/{job['id']}", 200)
    assert done["state"] == "succeeded"
    return done


def test_the_report_shows_sizes_labels_duplicates_conflicts_and_warnings(
    api: InProcessApi, dataset: str
) -> None:
    assert "alert('1')" not in get(api, "/console/datasets")
    html = get(api, f"/console/datasets/{dataset}")
    text = text_of(html)
    for fact in ("Examples 42 texts", "Duplicates 1 ", "Conflicts 1 ", "Labels per example 1."):
        assert fact in text
    assert "⚠ Equal documents with different labels: 1 (lines 41 and 42)." in text
    assert f"/console/datasets/{dataset}/examples?label=billing" in html
    assert "few" in text[text.index("Share") :]
    assert 'role="img" aria-label="Number of examples of the most frequent labels"' in html
    assert f"/console/training/new?dataset={dataset}" in html


def test_labels_are_paged_from_the_most_frequent_to_the_rarest(api: InProcessApi, dataset: str) -> None:
    shown: list[str] = []
    path = f"/console/datasets/{dataset}?limit=2"
    while path:
        html = get(api, path)
        shown += re.findall(r"examples\?label=([^\"]+)", html)
        found = re.search(r'href="([^"]+)" rel="next"', html)
        path = f"{found[1]}&limit=2" if found else ""
    counts = {
        item["label"]: item["count"]
        for item in api.call("GET", f"/v1/datasets/{dataset}/labels", 200)["items"]
    }
    assert len(shown) == len(set(shown)) == len(counts) > 4
    assert shown[:2] == sorted(counts, key=lambda label: (-counts[label], label))[:2]


def test_a_search_finds_examples_by_text_and_label(api: InProcessApi, dataset: str) -> None:
    examples = f"/console/datasets/{dataset}/examples"
    both = page(api, f"{examples}?words=%C3%89QUAL%20Words")
    assert "2 examples on this page; searched 42 of 42" in both
    only = page(api, f"{examples}?words=%C3%89QUAL&label=billing")
    assert "1 example on this page" in only
    assert "No further example has this text and label." in page(api, f"{examples}?words=nowhere")
    assert "Example 1 id 1" in page(api, examples)


def test_a_search_continues_on_the_next_page_where_the_limit_ended_it(
    api: InProcessApi, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.datasets.examples.MAX_SCANNED", 15)
    path: str | None = f"/console/datasets/{dataset}/examples?words=%C3%A9qual"
    pages = []
    while path:
        html = get(api, path)
        pages.append(text_of(html))
        found = re.search(r'href="([^"]+)" rel="next"', html)
        path = found[1].replace("&amp;", "&") if found else None
    assert [re.findall("searched (\\d+) of 42", text) for text in pages] == [["15"], ["30"], ["42"]]
    assert "The search goes on with the next page." in pages[0]
    assert "2 examples on this page" in pages[2]


def test_messages_are_shown_as_a_person_reads_them(api: InProcessApi) -> None:
    raw = (
        b"From: Ann <ann@example.org>\r\nSubject: =?utf-8?q?Die_Rechnung_=C3=BC?=\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        + base64.b64encode("Bitte prüfen Sie die Rechnung über 20 Euro.\n\n> Ihre alte Frage\n".encode())
    )
    lines = [
        {"id": "raw", "raw_email": base64.b64encode(raw).decode(), "labels": ["billing"]},
        {
            "id": "parts",
            "email": {"subject": "Parcel", "text": "It is late", "attachments": [{"name": "a.pdf"}]},
            "labels": [],
        },
    ]
    created = uploaded(api, "\n".join(map(json.dumps, lines)).encode())
    text = page(api, f"/console/datasets/{created}/examples")
    for part in (
        "Die Rechnung ü",
        "From Ann",
        "Bitte prüfen Sie",
        "Quoted text",
        "Parcel",
        "Attachments: a.pdf",
        "no labels",
    ):
        assert part in text
    found = page(api, f"/console/datasets/{created}/examples?words=PR%C3%9CFEN")
    assert "1 example on this page; searched 2 of 2" in found


def test_features_are_shown_with_the_largest_first(api: InProcessApi) -> None:
    lines = [{"features": {"small": 0.5, "large": -7, "MiddleName": 2}, "labels": ["a"]}] * 2
    created = uploaded(api, "\n".join(map(json.dumps, lines)).encode())
    text = page(api, f"/console/datasets/{created}/examples?words=middlename")
    assert "large -7.0000 MiddleName 2.0000 small 0.5000" in text


def test_a_failed_data_set_names_the_lines_and_takes_a_corrected_file(api: InProcessApi) -> None:
    created = uploaded(api, b'{"text": "a", "labels": ["x"]}\n{"text": "b"}\n', format="jsonl")
    html = get(api, f"/console/datasets/{created}")
    text = text_of(html)
    assert "We could not read this file." in text
    assert re.search("Line or record Field What is wrong 2 ", text)
    assert f'data-upload data-dataset="{created}"' in html


def test_a_data_set_that_is_being_read_updates_itself(api: InProcessApi) -> None:
    body = {"name": "x", "examples": [{"text": "a", "labels": ["x"]}]}
    created = api.call("POST", "/v1/datasets", 201, json=body)["id"]
    path = f"/console/datasets/{created}"
    assert 'data-live="1.5"' in get(api, path)
    in_process.work(api.ctx)
    assert "data-live" not in get(api, path)


def test_the_form_of_a_training_fits_its_data_set(api: InProcessApi, dataset: str) -> None:
    html = get(api, f"/console/training/new?dataset={dataset}&model=helpdesk")
    for part in (
        'name="model" type="text" value="helpdesk"',
        'data-variant="svm" selected',
        "Number of rounds; each round adds one weak hypothesis. Default: 200.",
        'name="split/test_fraction" type="number" value="0.25"',
        f'name="dataset_id" value="{dataset}"',
    ):
        assert part in html
    features = html.partition('name="features/kind"')[2].partition("</select>")[0]
    assert 'data-variant="default" selected' in features, "what suits the learner"
    assert 'data-variant="numeric"' not in html, "the features of texts"
    assert 'data-variant="given"' not in html, "the data set has no split"


def test_the_form_repeats_a_job_and_trains_a_configuration_of_an_experiment(
    api: InProcessApi, trained: dict[str, Any], experiment: str
) -> None:
    html = get(api, f"/console/training/new?job={trained['id']}")
    assert 'name="learner/rounds" type="number" value="30"' in html
    assert re.search(r'data-variant="sign" selected', html)
    assert not re.search(r'value="unit"[^>]* selected', html), "the job had the default features"
    html = get(api, f"/console/training/new?experiment={experiment}&configuration=1")
    assert re.search(r'value="mp_boost" data-variant="mp_boost" selected', html)
    assert 'name="learner/rounds" type="number" value="7"' in html
    missing = page(api, f"/console/training/new?experiment={experiment}&configuration=9", 404)
    assert "has no configuration 9" in missing


def test_a_training_shows_its_curve_its_measures_and_its_version(
    api: InProcessApi, trained: dict[str, Any]
) -> None:
    assert "helpdesk" in page(api, "/console/training")
    html = get(api, f"/console/training/{trained['id']}")
    assert "/console/models/helpdesk/versions/" in html
    assert 'role="img" aria-label="Loss bound by rounds"' in html
    assert "data-live" not in html
    text = text_of(html)
    assert "Values rounds Loss bound 1 " in text
    assert "held-out examples" in text


def test_a_training_that_runs_updates_itself_and_can_be_cancelled(api: InProcessApi, dataset: str) -> None:
    body = {"model": "cancelled", "dataset_id": dataset, "learner": {"algorithm": "svm"}}
    job = api.call("POST", "/v1/training-jobs", 202, json=body)["id"]
    html = get(api, f"/console/training/{job}")
    assert f'data-events="/console/training/{job}/events"' in html
    assert f'data-api="POST /v1/training-jobs/{job}/cancel"' in html
    trainings.cancel(api.ctx.db, job)
    html = get(api, f"/console/training/{job}")
    assert "data-live" not in html
    assert "The training was cancelled." in html


def test_a_training_that_failed_shows_why(api: InProcessApi, dataset: str) -> None:
    body = {"model": "failing", "dataset_id": dataset, "learner": {"algorithm": "svm"}}
    job = api.call("POST", "/v1/training-jobs", 202, json=body)["id"]
    problem = make_problem(
        422, "invalid_parameters", "no label is left", errors=[("/learner/C", "too small")]
    )
    with api.ctx.db.write() as tx:
        row = tx.session.get(tables.Job, job)
        assert row is not None
        row.state, row.error = "failed", {**problem.model_dump(exclude_none=True), "log": ["killed & gone"]}
    text = page(api, f"/console/training/{job}")
    for part in ("The training failed. No label is left.", "/learner/C : too small", "killed &amp; gone"):
        assert part in text


@pytest.fixture(scope="module")
def experiment(api: InProcessApi, dataset: str) -> str:
    """An experiment that has ended."""
    body = {
        "name": MARKUP,
        "dataset_id": dataset,
        "split": {"kind": "folds", "folds": 2},
        "configurations": [
            {"learner": {"algorithm": "naive_bayes"}, "decision": {"kind": "sign"}},
            {"learner": {"algorithm": "mp_boost", "rounds": 7}, "decision": {"kind": "sign"}},
        ],
        "measures": ["f1_micro", "hamming_loss"],
    }
    created: str = api.call("POST", "/v1/experiments", 202, json=body)["id"]
    running = get(api, f"/console/experiments/{created}")
    assert 'data-live="3"' in running
    assert "0 of 4 runs finished" in running
    in_process.work(api.ctx)
    return created


def test_the_report_of_an_experiment_names_the_winner(api: InProcessApi, experiment: str) -> None:
    assert "4 of 4" in page(api, "/console/experiments")
    html = get(api, f"/console/experiments/{experiment}")
    text = text_of(html)
    assert "Best by Overall quality (F1)" in text
    assert "data-live" not in html
    report = api.call("GET", f"/v1/experiments/{experiment}/report", 200)
    (best, *_) = [row for row in report["rows"] if row["test"]["f1_micro"]["best"]]
    link = f"experiment={experiment}&amp;configuration={best['configuration']}"
    assert re.search(f'class="button main" href="[^"]*{link}"', html)
    assert 'aria-label="Overall quality (F1) of each configuration"' in html
    assert 'aria-label="Hamming loss by rounds"' in html


def test_the_form_of_an_experiment_proposes_learners_and_measures(api: InProcessApi, dataset: str) -> None:
    html = get(api, f"/console/experiments/new?dataset={dataset}")
    learner = "{&#34;learner&#34;: {&#34;algorithm&#34;: &#34;svm&#34;}}"
    assert f'data-type="json" value="{learner}" checked' in html
    assert 'data-type="list" value="f1_micro" checked' in html
    assert 'data-variant="assigned"' not in html, "the data set has no folds"


@pytest.mark.parametrize(
    "path", ["datasets/ds_none", "training/job_none", "experiments/exp_none", "datasets/ds_none/examples"]
)
def test_what_does_not_exist_is_a_readable_page(api: InProcessApi, path: str) -> None:
    assert "There is no " in page(api, f"/console/{path}", 404)


def test_scopes_decide_what_is_shown(
    api: InProcessApi, dataset: str, trained: dict[str, Any], experiment: str
) -> None:
    def as_person(*scopes: Any) -> Callable[[str], Response]:
        key = keys.create(api.ctx.db, ApiKeyCreate(name="person", scopes=list(scopes)))
        signed_in = api.send(
            "POST", "/console/sign-in", headers={"Authorization": ""}, data={"key": key.secret}
        )
        token = signed_in.cookies[COOKIE]
        api.forget_cookies()
        headers = {"Authorization": "", "Cookie": f"{COOKIE}={token}"}
        return lambda path: api.send("GET", f"/console/{path}", headers=headers)

    paths = [
        "datasets", f"datasets/{dataset}", "training", f"training/{trained['id']}", "experiments",
        f"experiments/{experiment}",
    ]  # fmt: skip
    reader, trainer, predicting = as_person("read"), as_person("read", "train"), as_person("predict")
    for path in paths:
        assert not re.search(r'data-api="(DELETE|POST)|/new|data-upload', reader(path).text), path
        assert re.search(r'data-api="(DELETE|POST)|/new|data-upload', trainer(path).text), path
        assert predicting(path).status_code == 403
    for path in ("datasets/new", "training/new", "experiments/new"):
        assert reader(path).status_code == 403
        assert trainer(path).status_code == 200


def test_a_page_offers_what_warnings_and_errors_suggest(api: InProcessApi) -> None:
    content = "text,labels\nGrüße,it's\nhello,nan\n".encode("cp1252")
    failed = uploaded(api, content, name=MARKUP, label_tree={"nan": "it's"})
    html = get(api, f"/console/datasets/{failed}")
    (body,) = re.findall(r"data-body='([^']*)'>Read it again as Windows-1252<", html)
    request = json.loads(unescape(body))
    assert request["from_upload"] == failed
    assert request["options"] == {"format": "csv", "encoding": "cp1252"}
    assert f'data-replaces="{failed}"' in html
    again = api.call("POST", "/v1/datasets", 201, json=request)["id"]
    in_process.work(api.ctx)
    html = get(api, f"/console/datasets/{again}")
    assert "Read it again without the label “nan”" in html
    assert "set label" not in text_of(html), "a button takes the place of the name of a field"
    assert "data-replaces" not in html, "a data set that is ready stays"


def test_a_file_that_is_not_kept_is_not_offered(api: InProcessApi, dataset: str) -> None:
    derived: str = api.call(
        "POST", "/v1/datasets", 201, json={"name": "d", "derive": {"datasets": [dataset]}}
    )["id"]
    in_process.work(api.ctx)
    assert "Read the file again" not in page(api, f"/console/datasets/{derived}")
    assert "not kept any more" in page(api, f"/console/datasets/{derived}/read-again", 404)
