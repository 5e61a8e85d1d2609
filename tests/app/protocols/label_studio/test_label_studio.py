"""The machine learning backend of Label Studio: setup, predictions, feedback from annotations, errors."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import in_process
import pytest
from in_process_api import InProcessApi, api

from app.protocols.label_studio import service as label_studio
from app.protocols.label_studio.label_config import read_label_config

MODEL, ROUTER = "/label-studio/models/m", "/label-studio/routers/desk"
SEVERAL = """
<View>
  <Header value="$subject"/>
  <Text name="message" value="$text"/>
  <Choices name="irrelevant" toName="message"><Choice value="yes"/></Choices>
  <Choices name="department" toName="message" choice="multiple">
    <Choice value="Billing" alias="billing"/><Choice value="printer"/><Choice value="sales"/>
  </Choices>
</View>
"""
ONE = SEVERAL.replace('choice="multiple"', 'choice="single"')


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    folder = tmp_path_factory.mktemp("label-studio")
    options = {"max_instances": 50, "max_body_bytes": 300_000}
    with pytest.MonkeyPatch.context() as patch, api(folder, migrated_sqlite, patch, **options) as service:
        examples = [
            {"text": f"{words} {i}", "labels": labels, "id": f"{words} {i}"}
            for i in range(12)
            for words, labels in {
                "wrong invoice": ["billing"],
                "paper jam": ["printer"],
                "invoice of a new printer with paper jam": ["billing", "printer"],
            }.items()
        ]
        dataset = service.dataset(examples)
        learner: dict[str, Any] = {"learner": {"algorithm": "mp_boost", "rounds": 10}}
        service.train(dataset, **learner)
        service.train(dataset, model="calibrated", decision={"kind": "auto"}, **learner)
        numbers = [{"features": {"a": float(i)}, "labels": ["b"][: i % 2], "id": str(i)} for i in range(4)]
        service.train(service.dataset(numbers), model="numbers", features={"kind": "numeric"})
        router = {"model": "m", "fallback": "front", "keep_messages": "all"}
        service.call("PUT", "/v1/routers/desk", 200, json=router)
        yield service


ids = count(1)


def task(text: str = "the invoice is wrong", **data: Any) -> dict[str, Any]:
    """Return a task as Label Studio sends it, with fields that no backend needs."""
    number = next(ids)
    return {
        "id": number,
        "data": {"text": text, **data},
        "meta": {},
        "created_at": "2026-11-29T12:00:00Z",
        "overlap": 1,
        "inner_id": number,
        "project": 1,
        "file_upload": None,
        "comment_authors": [],
    }


def predict(service: InProcessApi, path: str, *tasks: Any, config: str = SEVERAL) -> dict[str, Any]:
    body = {
        "tasks": tasks,
        "project": "1.1764415263",
        "label_config": config,
        "params": {"login": None, "password": None, "context": None},
    }
    response: dict[str, Any] = service.call("POST", f"{path}/predict", 200, json=body)
    return response


def choices(prediction: dict[str, Any]) -> list[str]:
    (region,) = prediction["result"]
    assert (region["from_name"], region["to_name"], region["type"]) == ("department", "message", "choices")
    selected: list[str] = region["value"]["choices"]
    return selected


def event(task: dict[str, Any], *selected: str, action: str = "ANNOTATION_CREATED", **fields: Any) -> Any:
    region = {
        "id": "r",
        "from_name": "department",
        "to_name": "message",
        "type": "choices",
        "origin": "manual",
        "value": {"choices": [*selected]},
    }
    note = {**region, "id": "n", "from_name": "note", "type": "textarea", "value": {"text": ["a note"]}}
    annotation = {"id": 7, "task": task["id"], "result": [region, note], "was_cancelled": False, **fields}
    project = {"id": 1, "title": "mail", "label_config": SEVERAL, "expert_instruction": "read\x0c"}
    return {"action": action, "annotation": annotation, "task": task, "project": project}


def notify(service: InProcessApi, body: Any, path: str = ROUTER, status: int = 200) -> Any:
    return service.call("POST", f"{path}/webhook", status, json=body)


def error(service: InProcessApi, status: int, path: str, **options: Any) -> str:
    response = service.send("POST", path, **options)
    assert response.status_code == status, response.text
    assert response.json().keys() == {"error"}
    message: str = response.json()["error"]
    return message


@pytest.mark.parametrize("path", [MODEL, ROUTER])
def test_a_backend_is_connected_with_health_setup_and_versions(service: InProcessApi, path: str) -> None:
    assert service.call("GET", f"{path}/health", 200) == {"status": "UP", "model_class": "Covey"}
    setup = {
        "project": "1.1764415263",
        "schema": SEVERAL,
        "hostname": "http://localhost:8080",
        "access_token": "x",
        "extra_params": None,
    }
    assert service.call("POST", f"{path}/setup", 200, json=setup) == {"model_version": "m 1"}
    assert service.call("GET", f"{path}/versions", 200) == {"versions": ["m 1"]}


def test_a_model_predicts_choices(service: InProcessApi) -> None:
    tasks = [task(), task("paper jam"), task("invoice of a new printer with paper jam"), task("weather")]
    response = predict(service, MODEL, *tasks)
    assert response["model_version"] == "m 1"
    instances = [{"text": item["data"]["text"]} for item in tasks]
    own = service.call("POST", "/v1/models/m/predict", 200, json={"instances": instances})["predictions"]
    assert [sorted(choices(item)) if item["result"] else [] for item in response["results"]] == [
        item["labels"] for item in own
    ]
    assert own[2]["labels"] == ["billing", "printer"]
    assert all("score" not in item for item in response["results"])


def test_one_choice_is_the_best_label(service: InProcessApi) -> None:
    jam = "invoice of a new printer with paper jam"
    for path in (MODEL, ROUTER):
        (prediction,) = predict(service, path, task(jam), config=ONE)["results"]
        own = service.call("POST", "/v1/models/m/predict", 200, json={"instances": [{"text": jam}]})
        assert choices(prediction) == [own["predictions"][0]["ranking"][0]["label"]]


def test_a_label_that_is_no_choice_is_left_out(service: InProcessApi) -> None:
    config = SEVERAL.replace('<Choice value="printer"/>', "")
    for path in (MODEL, ROUTER):
        results = predict(service, path, task("paper jam"), config=config)["results"]
        assert [item["result"] for item in results] == [[]]


def test_a_calibrated_version_has_scores(service: InProcessApi) -> None:
    (prediction,) = predict(service, "/label-studio/models/calibrated", task())["results"]
    body = {"instances": [{"text": task()["data"]["text"]}]}
    own = service.call("POST", "/v1/models/calibrated/predict", 200, json=body)["predictions"][0]
    assert prediction["score"] == own["set_probability"]


def test_a_router_records_a_decision_for_each_task(service: InProcessApi) -> None:
    tasks = [task(f"invoice {i} of a new printer", subject=f"subject {i}") for i in range(40)]
    response = predict(service, ROUTER, *tasks)
    assert len(response["results"]) == 40
    page = service.call("GET", "/v1/routers/desk/decisions?limit=40", 200)["items"]
    assert {item["message"]["subject"] for item in page} == {f"subject {i}" for i in range(40)}
    first = next(item for item in page if item["message"]["subject"] == "subject 0")
    assert choices(response["results"][0]) == [item["label"] for item in first["departments"]]
    assert response["results"][0]["model_version"] == "m 1"
    assert predict(service, ROUTER, *tasks) == response
    assert service.call("GET", "/v1/routers/desk/decisions?limit=40", 200)["items"] == page


def test_the_fields_of_an_email_belong_to_the_message(service: InProcessApi) -> None:
    parts = {"subject": "A subject", "from": "ann@example.com", "to": 5, "list_id": ""}
    ids = notify(service, event(task("no words of anything", **parts), "billing"))["decision_ids"]
    message = service.call("GET", f"/v1/decisions/{ids[0]}", 200)["message"]
    assert message["subject"] == "A subject"
    kept = service.send("GET", f"/v1/decisions/{ids[0]}/message").json()
    assert kept == {
        "email": {"subject": "A subject", "from": "ann@example.com", "text": "no words of anything"}
    }
    raw = b"Message-ID: <ls@example.com>\r\nSubject: Raw\r\n\r\nwrong invoice\r\n"
    encoded = task("ignored", raw_email=base64.b64encode(raw).decode())
    ids = notify(service, event(encoded, "billing"))["decision_ids"]
    mail = {"Content-Type": "message/rfc822"}
    same = service.call("POST", "/v1/routers/desk/messages", 200, content=raw, headers=mail)
    assert same["decision_id"] == ids[0]


def test_html_of_a_task_is_read_as_html(service: InProcessApi) -> None:
    config = SEVERAL.replace("<Text ", "<HyperText ")
    html = task("<p title='paper jam'>wrong <b>invoice</b></p>")
    for path in (MODEL, ROUTER):
        assert choices(predict(service, path, html, config=config)["results"][0]) == ["billing"]


def test_lines_of_text_have_a_field_of_their_own(service: InProcessApi) -> None:
    line = {"id": 1, "data": {"$undefined$": "paper jam"}}
    for path in (MODEL, ROUTER):
        assert choices(predict(service, path, line)["results"][0]) == ["printer"]


def test_an_annotation_is_feedback_on_the_decision_of_its_task(service: InProcessApi) -> None:
    message = task("an invoice about paper")
    predict(service, ROUTER, message)
    receipt = notify(service, event(message, "printer", "sales"))
    assert receipt["status"] == "recorded"
    (decision_id,) = receipt["decision_ids"]
    decision = service.call("GET", f"/v1/decisions/{decision_id}", 200)
    assert decision["feedback"] == ["printer", "sales"], "sales is a choice that no version has learned"
    same = notify(service, event(message, "billing", action="ANNOTATION_UPDATED"))
    assert same["decision_ids"] == [decision_id]
    assert service.call("GET", f"/v1/decisions/{decision_id}", 200)["feedback"] == ["billing"]
    cleared = notify(service, event(message, action="ANNOTATION_UPDATED"))
    assert cleared["decision_ids"] == [decision_id]
    assert service.call("GET", f"/v1/decisions/{decision_id}", 200)["feedback"] == []


@pytest.mark.parametrize("choice", ["", " ", "bill\0ing", "a\nb", "x" * 501])
def test_feedback_has_the_same_labels_at_both_doors(service: InProcessApi, choice: str) -> None:
    message = task("a label that nobody can have")
    assert "/annotation/result: choice 1" in error(
        service, 422, f"{ROUTER}/webhook", json=event(message, "billing", choice)
    )
    (decision_id,) = notify(service, event(message, "billing"))["decision_ids"]
    path = f"/v1/decisions/{decision_id}/feedback"
    body = {"labels": ["billing", choice], "allow_new_labels": True}
    response = service.send("POST", path, json=body)
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/labels/1")
    assert service.call("GET", f"/v1/decisions/{decision_id}", 200)["feedback"] == ["billing"]


def test_an_annotation_has_a_maximum_number_of_choices(service: InProcessApi) -> None:
    many = event(task("many"), *(f"label{n}" for n in range(20_001)))
    assert "20,001 choices; the limit is 20,000" in error(service, 413, f"{ROUTER}/webhook", json=many)


@pytest.mark.parametrize("n_spaces", [0, 100_000])
def test_a_long_labeling_configuration_is_read_in_a_thread(
    service: InProcessApi, monkeypatch: pytest.MonkeyPatch, n_spaces: int
) -> None:
    threads: list[str] = []

    def read(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read_label_config(*arguments)

    monkeypatch.setattr(label_studio, "read_label_config", read)
    loop = service.run(_thread_name)
    config = SEVERAL.replace("<View>", "<View>" + " " * n_spaces)
    service.call("POST", f"{MODEL}/setup", 200, json={"schema": config})
    predict(service, MODEL, task(), config=config)
    predict(service, ROUTER, task(), config=config)
    assert len(threads) == 3
    assert [name == loop for name in threads] == [n_spaces == 0] * 3


async def _thread_name() -> str:
    return threading.current_thread().name


def test_a_note_without_a_choice_is_no_feedback(service: InProcessApi) -> None:
    message = task("a text with a note")
    (decision_id,) = notify(service, event(message, "billing"))["decision_ids"]
    noted = event(message, action="ANNOTATION_UPDATED")
    del noted["annotation"]["result"][0]
    assert notify(service, noted)["status"] == "ignored"
    assert service.call("GET", f"/v1/decisions/{decision_id}", 200)["feedback"] == ["billing"]


def test_a_score_belongs_to_the_choices_that_are_shown(service: InProcessApi) -> None:
    calibrated = "/label-studio/models/calibrated"
    text = "invoice of a new printer with paper jam"
    (whole,) = predict(service, calibrated, task(text))["results"]
    assert whole["score"] is not None
    (label, *others) = choices(whole)
    for config in (ONE, SEVERAL.replace(f'<Choice value="{label}"/>', "")):
        (part,) = predict(service, calibrated, task(text), config=config)["results"]
        shown = part["result"][0]["value"]["choices"] if part["result"] else []
        assert ("score" in part) == (set(shown) == {label, *others})


def test_feedback_becomes_a_data_set(service: InProcessApi) -> None:
    text = "scanner is broken"
    notify(service, event(task(text), "sales"))
    body = {"name": "f", "from_feedback": {"router": "desk"}}
    service.call("POST", "/v1/datasets", 201, json=body)
    dataset = service.call("GET", "/v1/datasets?limit=1", 200)["items"][0]["id"]
    in_process.work(service.ctx)
    examples = service.call("GET", f"/v1/datasets/{dataset}/examples?limit=500", 200)["items"]
    assert any(item["labels"] == ["sales"] and text in str(item) for item in examples)


def test_an_event_can_contain_several_annotations(service: InProcessApi) -> None:
    one, other = task("first text of several"), task("second text of several")
    events = [event(one, "billing"), event(other, "printer")]
    body = {
        **events[0],
        "action": "ANNOTATIONS_CREATED",
        "annotation": [item["annotation"] for item in events],
        "task": [other, one],
    }
    decision_ids = notify(service, body)["decision_ids"]
    feedback = [service.call("GET", f"/v1/decisions/{id_}", 200)["feedback"] for id_ in decision_ids]
    assert feedback == [["billing"], ["printer"]]
    body["task"] = [one]
    assert f"no task with the id {other['id']}" in error(service, 422, f"{ROUTER}/webhook", json=body)


def test_other_events_are_ignored(service: InProcessApi) -> None:
    for action in ("PROJECT_UPDATED", "TASKS_CREATED", "ANNOTATIONS_DELETED", "LABEL_LINK_CREATED"):
        assert notify(service, {"action": action, "annotations": [{"id": 1}]})["status"] == "ignored"
    skipped = event(task("a skipped text"), "billing", was_cancelled=True)
    assert notify(service, skipped)["status"] == "ignored"
    assert "connect a router" in notify(service, event(task(), "billing"), MODEL)["reason"]
    message = error(service, 422, f"{ROUTER}/webhook", json={"action": "START_TRAINING", "project": {}})
    assert "create a data set from the feedback" in message


CONFIGS = {
    "": "is not valid XML",
    "<View>": "is not valid XML",
    '<!DOCTYPE v [<!ENTITY a "b">]><View/>': "declares entities",
    "<View/>": "no <Choices> with a <Choice> that is a label of the model; its labels are billing, printer",
    SEVERAL.replace("billing", "x").replace("printer", "y"): "no <Choices>",
    SEVERAL.replace("<Text ", "<Image "): "does not belong to <Text> or <HyperText> with the name 'message'",
    SEVERAL.replace('toName="message" choice', 'toName="x" choice'): "with the name 'x'",
    SEVERAL.replace("$text", "text"): "must have the text itself",
    SEVERAL.replace('"$text"', '"$text" valueType="url"'): "must have the text itself",
}


@pytest.mark.parametrize("config", CONFIGS)
def test_a_labeling_configuration_that_does_not_fit_is_refused(service: InProcessApi, config: str) -> None:
    message = error(service, 422, f"{ROUTER}/setup", json={"project": "1.1", "schema": config})
    assert message.startswith("/schema: ")
    assert CONFIGS[config] in message
    message = error(service, 422, f"{MODEL}/predict", json={"tasks": [task()], "label_config": config})
    assert message.startswith("/label_config: ")


@pytest.mark.parametrize("path", [MODEL, ROUTER])
@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"body": "x"}, "/tasks/1/data/text: the task has no text"),
        ({"text": ["x"]}, "/tasks/1/data/text: the task has no text"),
        (None, "/tasks/1/data"),
    ],
)
def test_a_task_without_text_is_refused_with_its_place(
    service: InProcessApi, path: str, data: Any, place: str
) -> None:
    body = {"tasks": [task(), {"id": 5, "data": data}], "label_config": SEVERAL}
    assert place in error(service, 422, f"{path}/predict", json=body)


def test_a_raw_message_must_be_base64(service: InProcessApi) -> None:
    for raw in (5, "%"):
        body = {"tasks": [task(raw_email=raw)], "label_config": SEVERAL}
        assert "/tasks/0/data/raw_email" in error(service, 422, f"{ROUTER}/predict", json=body)


def test_limits_and_unknown_targets_are_errors(service: InProcessApi) -> None:
    body = {"tasks": [task()] * 51, "label_config": SEVERAL}
    assert "51 entries; the limit is 50" in error(service, 413, f"{MODEL}/predict", json=body)
    body = {"tasks": [task()], "label_config": SEVERAL}
    assert "there is no model x" in error(service, 404, "/label-studio/models/x/predict", json=body)
    assert "there is no router x" in error(service, 404, "/label-studio/routers/x/predict", json=body)
    assert "numeric features" in error(service, 422, "/label-studio/models/numbers/predict", json=body)
    error(service, 422, "/label-studio/things/x/predict", json=body)
    error(service, 422, f"{MODEL}/predict", json={"tasks": [], "label_config": SEVERAL})
    error(service, 422, f"{MODEL}/predict", content=b"", headers={"Content-Type": "application/json"})
    error(service, 415, f"{MODEL}/predict", content=b"{}")
    assert "/action" in error(service, 422, f"{ROUTER}/webhook", json=[])
    for path in ("/label-studio/models/x/health", "/label-studio/routers/x/versions"):
        assert service.send("GET", path).status_code == 404


def test_the_password_of_basic_authentication_is_an_api_key(service: InProcessApi) -> None:
    secret = service.call("POST", "/v1/api-keys", 201, json={"name": "p", "scopes": ["predict"]})["secret"]
    read = service.call("POST", "/v1/api-keys", 201, json={"name": "r", "scopes": ["read"]})["secret"]

    def basic(text: str) -> dict[str, str]:
        return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}

    health = f"{ROUTER}/health"
    assert service.send("GET", health, headers=basic(f"covey:{secret}")).status_code == 200
    assert service.send("GET", health, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert service.send("GET", health, headers=basic(f"covey:{read}")).status_code == 403
    for wrong in (basic("covey:"), basic("covey"), basic("covey:cov_x"), {"Authorization": "Basic %"}):
        response = service.send("GET", health, headers=wrong)
        assert (response.status_code, response.json().keys()) == (401, {"error"})
    # Other operations accept no password: a browser would repeat it for requests of foreign pages.
    assert service.send("GET", "/v1/models", headers=basic(f"covey:{secret}")).status_code == 401
