"""Calls a service with ``InferenceRESTClient`` of KServe. Arguments: host and port, API key; prints JSON."""

import asyncio
import json
import sys

import httpx
import numpy as np
from kserve import InferInput, InferRequest
from kserve.inference_client import InferenceRESTClient, RESTConfig
from kserve.protocol.infer_type import RequestedOutput

host, key = sys.argv[1:]
url, headers = f"http://{host}", {"Authorization": f"Bearer {key}"}
TEXTS = ["my invoice is wrong", "die Rechnung für März"]


def request(*, binary, binary_output):
    given = InferInput("text", [2], "BYTES")
    given.set_data_from_numpy(np.array(TEXTS, dtype=np.object_), binary_data=binary)
    parameters = {"binary_data_output": True} if binary_output else None
    return InferRequest("calibrated", [given], request_id="42", parameters=parameters)


def read(response):
    assert response.model_name == "calibrated"
    assert response.id == "42"
    return {
        output.name: [
            element.decode() if isinstance(element, bytes) else element
            for element in output.as_numpy().ravel().tolist()
        ]
        for output in response.outputs
    }


async def main():
    client = InferenceRESTClient(RESTConfig(protocol="v2"))
    assert await client.is_server_live(url)
    assert await client.is_server_ready(url)
    assert await client.is_model_ready(url, "calibrated", headers=headers)
    outputs = []
    for binary in (False, True):
        for binary_output in (False, True):
            sent = request(binary=binary, binary_output=binary_output)
            response = await client.infer(url, sent, model_name="calibrated", headers=dict(headers))
            outputs.append(read(response))
    assert all(item == outputs[0] for item in outputs)
    sent = request(binary=False, binary_output=False)
    sent.request_outputs = [RequestedOutput("labels")]
    some = read(await client.infer(url, sent, model_name="calibrated", headers=dict(headers)))
    assert some == {"labels": outputs[0]["labels"]}
    try:
        await client.infer(
            url, request(binary=False, binary_output=False), model_name="missing", headers=headers
        )
    except httpx.HTTPStatusError as error:
        missing = [error.response.status_code, str(error)]
    print(json.dumps({"outputs": outputs[0], "missing": missing}))


asyncio.run(main())
