"""The Open Inference Protocol: metadata, inference as JSON and in the binary extension, errors."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process_api import InProcessApi, api
from stack import departments

TEXTS = ["my invoice is wrong", "the printer is broken"]
INFER = "/v2/models/m/infer"
LENGTH = "Inference-Header-Content-Length"
FEATURES = [
    {"features": {"a": 1.0, "b": float(i % 2)}, "labels": ["odd" if i % 2 else "even"], "id": str(i)}
    for i in range(12)
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, migrated_sqlite: Path) -> Iterator[InProcessApi]:
    folder = tmp_path_factory.mktemp("open-inference")
    options = {"max_instances": 20, "max_body_bytes": 100_000, "max_text_chars": 10_000}
    with pytest.MonkeyPatch.context() as patch, api(folder, migrated_sqlite, patch, **options) as service:
        texts = service.dataset()
        service.train(texts)
        service.train(texts, model="calibrated", decision={"kind": "auto"})
        emails = [
            {"id": item["id"], "email": {"subject": item["text"]}, "labels": item["labels"]}
            for item in departments(40)
        ]
        service.train(service.dataset(emails), model="mail")
        numeric = {"features": {"kind": "numeric"}, "learner": {"algorithm": "mp_boost", "rounds": 3}}
        service.train(service.dataset(FEATURES), model="numbers", **numeric)
        yield service


def text_input(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": list(texts), **fields}


def infer(service: InProcessApi, body: Any, path: str = INFER) -> dict[str, Any]:
    response: dict[str, Any] = service.call("POST", path, 200, json=body)
    return response


def elements(response: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the elements of each output, as rows if it has columns."""
    found = {}
    for output in response["outputs"]:
        data, shape = output["data"], output["shape"]
        width = shape[1] if len(shape) == 2 else 0
        found[output["name"]] = [data[i : i + width] for i in range(0, len(data), width)] if width else data
        assert len(found[output["name"]]) == shape[0]
    return found


def predict(service: InProcessApi, instances: Any, model: str = "m", **options: Any) -> list[Any]:
    body = {"instances": instances, **options}
    predictions: list[Any] = service.call("POST", f"/v1/models/{model}/predict", 200, json=body)[
        "predictions"
    ]
    return predictions


def assert_equal(outputs: dict[str, list[Any]], predictions: list[Any]) -> None:
    """Check that outputs contain what the API predicts."""
    assert [json.loads(text) for text in outputs["labels"]] == [item["labels"] for item in predictions]
    for output, field in {"ranking": "label", "scores": "score", "probabilities": "probability"}.items():
        if output in outputs:
            assert outputs[output] == [[item[field] for item in one["ranking"]] for one in predictions]
    if "set_probability" in outputs:
        assert outputs["set_probability"] == [item["set_probability"] for item in predictions]


def binary(head: dict[str, Any], *blobs: bytes) -> dict[str, Any]:
    """Return the options of a request in the binary extension."""
    text = json.dumps(head).encode()
    return {"content": text + b"".join(blobs), "headers": {LENGTH: str(len(text))}}


def strings(*elements: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(element)) + element for element in elements)


def read_binary(body: bytes, json_length: int) -> dict[str, Any]:
    head = json.loads(body[:json_length])
    position, found = json_length, {}
    for output in head["outputs"]:
        size = output["parameters"]["binary_data_size"]
        blob, position = body[position : position + size], position + size
        if output["datatype"] == "FP64":
            found[output["name"]] = np.frombuffer(blob, "<f8").reshape(output["shape"]).tolist()
        else:
            texts = []
            while blob:
                (length,) = struct.unpack("<I", blob[:4])
                texts.append(blob[4 : 4 + length].decode())
                blob = blob[4 + length :]
            found[output["name"]] = np.array(texts).reshape(output["shape"]).tolist()
    assert position == len(body)
    return found


def error(service: InProcessApi, status: int, path: str = INFER, **options: Any) -> str:
    """Send a request that fails, and return the message."""
    response = service.send("POST", path, **options)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body.keys() == {"error"}
    message: str = body["error"]
    return message


def test_the_server_describes_itself_without_a_key(service: InProcessApi) -> None:
    none = {"Authorization": ""}
    for path in ("/v2", "/v2/"):
        metadata = service.send("GET", path, headers=none).json()
        assert metadata["name"] == "covey"
        assert metadata["extensions"] == ["binary_tensor_data"]
    assert service.send("GET", "/v2/health/live", headers=none).json() == {"live": True}


def test_readiness_is_that_of_the_service(service: InProcessApi, monkeypatch: pytest.MonkeyPatch) -> None:
    own, of_protocol = service.send("GET", "/health/ready"), service.send("GET", "/v2/health/ready")
    assert own.status_code == of_protocol.status_code == 503, "no worker runs in this test"
    assert of_protocol.json() == {"error": own.json()["detail"]}
    monkeypatch.setattr("app.protocols.open_inference.api.require_ready", lambda *_, **__: None)
    assert service.call("GET", "/v2/health/ready", 200) == {"live": True, "ready": True}


def test_a_model_lists_versions_aliases_and_tensors(service: InProcessApi) -> None:
    metadata = service.call("GET", "/v2/models/calibrated", 200)
    assert metadata["name"] == "calibrated"
    assert metadata["versions"] == ["live", "1"]
    assert metadata["platform"] == "covey"
    assert metadata["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    labels = service.call("GET", "/v1/models/calibrated/versions/1", 200)["labels"]
    assert [(item["name"], item["datatype"], item["shape"]) for item in metadata["outputs"]] == [
        ("labels", "BYTES", [-1]),
        ("ranking", "BYTES", [-1, -1]),
        ("scores", "FP64", [-1, -1]),
        ("probabilities", "FP64", [-1, -1]),
        ("set_probability", "FP64", [-1]),
    ]
    assert metadata["outputs"][0]["parameters"] == {"names": labels}
    (matrix,) = service.call("GET", "/v2/models/numbers/versions/1", 200)["inputs"]
    assert (matrix["shape"], matrix["parameters"]) == ([-1, 2], {"names": ["a", "b"]})
    uncalibrated = service.call("GET", "/v2/models/m/versions/live", 200)["outputs"]
    assert [item["name"] for item in uncalibrated] == ["labels", "ranking", "scores"]


def test_a_version_is_ready_if_it_can_be_loaded(service: InProcessApi) -> None:
    service.forget_versions()
    for path in ("/v2/models/m/ready", "/v2/models/m/versions/1/ready", "/v2/models/m/versions/live/ready"):
        assert service.call("GET", path, 200) == {"name": "m", "ready": True}
    for path in ("/v2/models/x/ready", "/v2/models/m/versions/9/ready", "/v2/models/m/versions/x/ready"):
        response = service.send("GET", path)
        assert (response.status_code, response.json().keys()) == (404, {"error"})


@pytest.mark.parametrize("path", [INFER, "/v2/models/m/versions/1/infer", "/v2/models/m/versions/live/infer"])
def test_outputs_are_the_predictions_of_the_api(service: InProcessApi, path: str) -> None:
    response = infer(service, {"id": "42", "inputs": [text_input(*TEXTS)]}, path)
    assert (response["id"], response["model_name"], response["model_version"]) == ("42", "m", "1")
    assert_equal(elements(response), predict(service, [{"text": text} for text in TEXTS]))


def test_a_calibrated_version_has_probabilities(service: InProcessApi) -> None:
    response = infer(service, {"inputs": [text_input(*TEXTS)]}, "/v2/models/calibrated/infer")
    assert "id" not in response
    outputs = elements(response)
    assert [*outputs] == ["labels", "ranking", "scores", "probabilities", "set_probability"]
    assert_equal(outputs, predict(service, [{"text": text} for text in TEXTS], "calibrated"))


def test_a_request_selects_outputs_and_the_length_of_rankings(service: InProcessApi) -> None:
    body = {
        "inputs": [text_input(*TEXTS)],
        "parameters": {"top": 2, "priority": 1},
        "outputs": [{"name": "scores"}, {"name": "labels", "parameters": None}],
    }
    outputs = elements(infer(service, body))
    assert [*outputs] == ["scores", "labels"]
    assert_equal(outputs, predict(service, [{"text": text} for text in TEXTS], top=2))


def test_tensors_have_a_row_for_each_document_in_every_format(service: InProcessApi) -> None:
    expected = elements(infer(service, {"inputs": [text_input(*TEXTS)]}))
    encoded = [base64.b64encode(text.encode()).decode() for text in TEXTS]
    for tensor in (
        text_input(*TEXTS, shape=[2, 1]),
        text_input(shape=[2, 1], data=[[text] for text in TEXTS]),
        text_input(*encoded, parameters={"content_type": "base64"}),
    ):
        assert elements(infer(service, {"inputs": [tensor]})) == expected


def test_the_binary_extension_carries_the_same_elements(service: InProcessApi) -> None:
    path = "/v2/models/calibrated/infer"
    expected = elements(infer(service, {"inputs": [text_input(*TEXTS)]}, path))
    blob = strings(*(text.encode() for text in TEXTS))
    tensor = {
        "name": "text",
        "shape": [2],
        "datatype": "BYTES",
        "parameters": {"binary_data_size": len(blob)},
    }
    head = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    response = service.send("POST", path, **binary(head, blob))
    assert response.headers["content-type"] == "application/octet-stream"
    assert read_binary(response.content, int(response.headers[LENGTH])) == expected
    some = [{"name": "scores", "parameters": {"binary_data": True}}, {"name": "labels"}]
    response = service.send("POST", path, json={"inputs": [text_input(*TEXTS)], "outputs": some})
    head = json.loads(response.content[: int(response.headers[LENGTH])])
    assert head["outputs"][1]["data"] == expected["labels"]
    scores = np.frombuffer(response.content[int(response.headers[LENGTH]) :], "<f8")
    assert scores.tolist() == [score for row in expected["scores"] for score in row]


def test_an_email_is_raw_or_has_an_input_for_each_part(service: InProcessApi) -> None:
    path = "/v2/models/mail/infer"
    parts = {"subject": TEXTS, "from": ["ann@example.com", ""], "text": ["", "please help"]}
    inputs = [{**text_input(*values), "name": name} for name, values in parts.items()]
    emails = [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    expected = predict(service, [{"email": email} for email in emails], "mail")
    assert_equal(elements(infer(service, {"inputs": inputs}, path)), expected)
    raw = b"Subject: my invoice\r\n\r\nis wrong \xff\r\n"
    expected = predict(service, [{"raw_email": base64.b64encode(raw).decode()}], "mail")
    blob = strings(raw)
    tensor = {
        "name": "raw_email",
        "shape": [1, 1],
        "datatype": "BYTES",
        "parameters": {"binary_data_size": len(blob)},
    }
    response = service.send("POST", path, **binary({"inputs": [tensor]}, blob))
    assert_equal(elements(response.json()), expected)


def test_numeric_features_are_a_matrix_or_a_tensor_for_each_feature(service: InProcessApi) -> None:
    path = "/v2/models/numbers/infer"
    rows = [[1.0, 0.0], [1.0, 1.0], [0.5, 0.25]]
    expected = predict(service, [{"features": dict(zip("ab", row, strict=True))} for row in rows], "numbers")
    flat = [value for row in rows for value in row]
    matrix: dict[str, Any]
    for data in (flat, rows):
        matrix = {"name": "features", "shape": [3, 2], "datatype": "FP32", "data": data}
        assert_equal(elements(infer(service, {"inputs": [matrix]}, path)), expected)
    for datatype, format_ in (("FP64", "<f8"), ("FP32", "<f4"), ("FP16", "<f2")):
        blob = np.array(rows, format_).tobytes()
        parameters = {"binary_data_size": len(blob)}
        matrix = {"name": "features", "shape": [3, 2], "datatype": datatype, "parameters": parameters}
        response = service.send("POST", path, **binary({"inputs": [matrix]}, blob))
        assert_equal(elements(response.json()), expected)
    columns = [
        {"name": "b", "shape": [2, 1], "datatype": "INT64", "data": [0, 1]},
        {"name": "a", "shape": [2], "datatype": "FP64", "data": [1.0, 1]},
        {"name": "c", "shape": [2], "datatype": "BOOL", "data": [True, False]},
    ]
    of_columns = infer(service, {"inputs": columns}, path)
    assert_equal(elements(of_columns), expected[:2])
    assert of_columns["parameters"] == {"unknown_features": 1, "unknown_feature_names": "c"}


def test_control_characters_of_texts_are_accepted(service: InProcessApi) -> None:
    text = "my invoice\f is \u0000 wrong \x7f"
    response = infer(service, {"inputs": [text_input(text)]})
    assert_equal(elements(response), predict(service, [{"text": text}]))


TEXT = text_input(*TEXTS)
MATRIX = {"name": "features", "shape": [1, 2], "datatype": "FP64"}


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        ("m", [], "/inputs"),
        ("m", [{**TEXT, "shape": [3]}], "/inputs/0/data: has 2 elements, but the shape [3]"),
        ("m", [{**TEXT, "shape": [2, 1], "data": [["a"], "b"]}], "each row must be a list of 1 element"),
        ("m", [{**TEXT, "shape": [1, 2]}], "/inputs/0/shape: 2 columns"),
        ("m", [{**TEXT, "shape": [1, 1, 2]}], "/inputs/0/shape"),
        ("m", [{**TEXT, "shape": [-2]}], "/inputs/0/shape/0"),
        ("m", [{**TEXT, "shape": [0], "data": []}], "there are no rows"),
        ("m", [{**TEXT, "data": None}], "/inputs/0/data: must be a list"),
        ("m", [{**TEXT, "data": ["a", 1]}], "the elements of type BYTES must be strings"),
        ("m", [{**TEXT, "name": "x"}], "'x' is not an input; the inputs are text, raw_email"),
        ("m", [TEXT, TEXT], "/inputs/1/name: the input 'text' occurs twice"),
        ("m", [TEXT, text_input("a", name="subject")], "/inputs/1/shape: 1 rows, but the first input has 2"),
        ("m", [TEXT, {**TEXT, "name": "raw_email"}], "is a whole message"),
        (
            "m",
            [{**TEXT, "datatype": "INT8", "data": [1, 2]}],
            "/inputs/0/datatype: this model was trained on text",
        ),
        ("m", [{**TEXT, "datatype": "STRING"}], "/inputs/0/datatype: 'STRING' is not one of BYTES, BOOL"),
        ("m", [{**TEXT, "parameters": {"content_type": "base64"}}], "/inputs/0/data/0: is not valid base64"),
        ("numbers", [{**MATRIX, "data": [1, "a"]}], "not all elements are of type FP64"),
        ("numbers", [{**MATRIX, "data": [1, True]}], "not all elements are of type FP64"),
        ("numbers", [{**MATRIX, "data": [1, 10**400]}], "an element is too large"),
        (
            "numbers",
            [{**MATRIX, "shape": [1, 3], "data": [1, 2, 3]}],
            "3 columns, but the version has 2 features",
        ),
        ("numbers", [TEXT], "this model was trained on numeric features"),
    ],
)
def test_an_invalid_tensor_is_refused_with_its_place(
    service: InProcessApi, model: str, inputs: Any, message: str
) -> None:
    assert message in error(service, 422, f"/v2/models/{model}/infer", json={"inputs": inputs})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parameters": {"top": 0}}, "/parameters/top: must be a positive integer"),
        ({"parameters": {"top": True}}, "/parameters/top"),
        ({"parameters": {"binary_data_output": 1}}, "/parameters/binary_data_output: must be true or false"),
        ({"outputs": [{"name": "x"}]}, "/outputs/0/name: 'x' is not an output; the outputs are labels"),
        (
            {"outputs": [{"name": "labels"}, {"name": "labels"}]},
            "/outputs/1/name: the output 'labels' occurs twice",
        ),
        ({"outputs": [{"name": "scores", "parameters": {"classification": 2}}]}, "classification extension"),
        ({"outputs": [{"name": "probabilities"}]}, "version 1 of m is not calibrated"),
        ({"id": 5}, "/id"),
    ],
)
def test_an_invalid_option_is_refused_with_its_place(
    service: InProcessApi, fields: dict[str, Any], message: str
) -> None:
    assert message in error(service, 422, json={"inputs": [TEXT], **fields})


BINARY_TEXT = {"name": "text", "shape": [2], "datatype": "BYTES"}


@pytest.mark.parametrize(
    ("tensor", "blob", "message"),
    [
        (BINARY_TEXT, strings(b"a"), "are not 2 elements"),
        (BINARY_TEXT, strings(b"a", b"b", b"c"), "are not 2 elements"),
        (BINARY_TEXT, strings(b"a") + b"\xff\xff\xff\xff", "the element 1 ends after the 9 bytes"),
        (BINARY_TEXT, strings(b"a") + b"\x01", "the element 1 ends after the 6 bytes"),
        (BINARY_TEXT, strings(b"a", b"\xff"), "/inputs/0/data/1: byte 0 is not UTF-8"),
        ({**MATRIX, "datatype": "FP32"}, b"\0" * 9, "has 9 bytes"),
    ],
)
def test_invalid_binary_elements_are_refused(
    service: InProcessApi, tensor: dict[str, Any], blob: bytes, message: str
) -> None:
    head = {"inputs": [{**tensor, "parameters": {"binary_data_size": len(blob)}}]}
    assert message in error(service, 422, **binary(head, blob))


def test_sizes_that_contradict_the_body_are_refused(service: InProcessApi) -> None:
    blob = strings(b"a", b"b")
    for size in (-1, len(blob) + 1, "9", True):
        head = {"inputs": [{**BINARY_TEXT, "parameters": {"binary_data_size": size}}]}
        assert "binary_data_size: the body has 10 bytes" in error(service, 422, **binary(head, blob))
    head = {"inputs": [{**BINARY_TEXT, "parameters": {"binary_data_size": len(blob)}}]}
    assert "2 bytes that belong to no input" in error(service, 422, **binary(head, blob, b"xx"))
    for length in ("x", "-1", "100000", "9" * 30):
        assert LENGTH in error(service, 422, content=b"{}", headers={LENGTH: length})
    assert "not a finite number" in error(
        service,
        422,
        "/v2/models/numbers/infer",
        **binary(
            {"inputs": [{**MATRIX, "parameters": {"binary_data_size": 16}}]}, struct.pack("<dd", 1, np.nan)
        ),
    )


def test_limits_are_those_of_the_api(service: InProcessApi) -> None:
    assert "21 rows; the limit is 20" in error(service, 413, json={"inputs": [text_input(*["a"] * 21)]})
    assert "/instances/1/text" in error(service, 413, json={"inputs": [text_input("a", "a" * 10_001)]})
    assert "larger than the limit" in error(service, 413, json={"inputs": [text_input("a" * 100_001)]})
    assert "Content-Encoding gzip" in error(service, 415, content=b"x", headers={"Content-Encoding": "gzip"})


def test_every_error_below_the_path_has_the_format_of_the_protocol(service: InProcessApi) -> None:
    assert "not JSON" in error(service, 400, content=b"{")
    error(service, 422, content=b"")
    assert "there is no model x" in error(service, 404, "/v2/models/x/infer", json={"inputs": [TEXT]})
    assert "does not exist" in error(service, 404, "/v2/models/m/explain")
    assert "does not support POST" in error(service, 405, "/v2/models/m")
    assert "API key" in error(service, 401, json={"inputs": [TEXT]}, headers={"Authorization": ""})
    assert "head of the request" in error(service, 431, headers={"x": "y" * 40_000})
    name = "x" * 65
    assert "/path/name" in error(service, 422, f"/v2/models/{name}/infer", json={"inputs": [TEXT]})


def test_models_need_a_key_that_may_predict(service: InProcessApi) -> None:
    secret = service.call("POST", "/v1/api-keys", 201, json={"name": "r", "scopes": ["read"]})["secret"]
    read = {"Authorization": f"Bearer {secret}"}
    for path in ("/v2/models/m", "/v2/models/m/ready", "/v2/models/m/versions/1/ready"):
        assert service.send("GET", path, headers=read).status_code == 403
        assert service.send("GET", path, headers={"Authorization": ""}).status_code == 401
    assert "lacks the scope predict" in error(service, 403, json={"inputs": [TEXT]}, headers=read)


def test_the_protocol_is_not_in_the_openapi_document(service: InProcessApi) -> None:
    assert not any(" /v2" in operation for operation in service.documented)
