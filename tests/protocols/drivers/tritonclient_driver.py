"""Calls a service with ``tritonclient.http``. Arguments: host and port, API key; prints JSON."""

import json
import sys

import numpy as np
from tritonclient import http
from tritonclient.utils import InferenceServerException

host, key = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}
texts = np.array([b"my invoice is wrong", "die Rechnung für März".encode()], dtype=np.object_)
client = http.InferenceServerClient(host)
assert client.is_server_live()
assert client.is_server_ready()
assert client.is_model_ready("calibrated", headers=headers)
assert client.is_model_ready("calibrated", "1", headers=headers)
assert not client.is_model_ready("missing", headers=headers)
assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
metadata = client.get_model_metadata("calibrated", headers=headers)


def infer(
    version, binary, outputs, name="calibrated", elements=texts, tensor="text", datatype="BYTES", **options
):
    given = http.InferInput(tensor, list(elements.shape), datatype)
    given.set_data_from_numpy(elements, binary_data=binary)
    # The client adds headers of this request to the dictionary.
    result = client.infer(name, [given], version, outputs, request_id="42", headers=dict(headers), **options)
    response = result.get_response()
    assert response["id"] == "42"
    return {
        item["name"]: [
            element.decode() if isinstance(element, bytes) else element
            for element in result.as_numpy(item["name"]).ravel().tolist()
        ]
        for item in response["outputs"]
    }


everything = infer("", True, None)
some = [http.InferRequestedOutput("labels", binary_data=False), http.InferRequestedOutput("scores")]
assert infer("live", False, some) == {name: everything[name] for name in ("labels", "scores")}
assert (
    infer("1", True, None, parameters={"top": 1})["ranking"]
    == everything["ranking"][:: len(everything["ranking"]) // 2]
)
numbers = infer("", True, None, "numbers", np.array([[1.0, 0.0], [1.0, 1.0]], np.float32), "features", "FP32")
try:
    infer("", True, None, "missing")
except InferenceServerException as error:
    missing = [error.status(), error.message()]
try:
    client.get_model_metadata("calibrated")
except InferenceServerException as error:
    anonymous = [error.status(), error.message()]
print(
    json.dumps(
        {
            "metadata": metadata,
            "outputs": everything,
            "numbers": numbers["labels"],
            "missing": missing,
            "anonymous": anonymous,
        }
    )
)
