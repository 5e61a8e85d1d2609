"""Calls a service with the types and codecs of MLServer. Arguments: host and port, API key; prints JSON."""

import json
import sys

import pandas as pd
import requests
from mlserver.codecs import NumpyCodec, PandasCodec, StringCodec
from mlserver.types import (
    InferenceRequest,
    InferenceResponse,
    MetadataModelResponse,
    MetadataServerResponse,
    RequestOutput,
)

host, key = sys.argv[1:]
TEXTS = ["my invoice is wrong", "die Rechnung für März"]
session = requests.Session()
session.headers["Authorization"] = f"Bearer {key}"


def get(path):
    response = session.get(f"http://{host}/v2{path}")
    response.raise_for_status()
    return response.text


def infer(model, request):
    # MLServer's own client posts the dictionary of the request, with or without its unset fields.
    responses = []
    for body in (request.model_dump(mode="json"), request.model_dump(mode="json", exclude_none=True)):
        response = session.post(f"http://{host}/v2/models/{model}/infer", json=body)
        response.raise_for_status()
        responses.append(InferenceResponse.model_validate_json(response.text))
    assert responses[0] == responses[1]
    return responses[0]


def read(response):
    return {
        output.name: StringCodec.decode_output(output)
        if output.datatype == "BYTES"
        else NumpyCodec.decode_output(output).ravel().tolist()
        for output in response.outputs
    }


MetadataServerResponse.model_validate_json(get(""))
MetadataModelResponse.model_validate_json(get("/models/calibrated"))
request = InferenceRequest(inputs=[StringCodec.encode_input("text", TEXTS, use_bytes=False)])
outputs = read(infer("calibrated", request))
encoded = InferenceRequest(
    inputs=[StringCodec.encode_input("text", TEXTS, use_bytes=False)], outputs=[RequestOutput(name="labels")]
)
assert read(infer("calibrated", encoded)) == {"labels": outputs["labels"]}


def labels_of_frame(model, frame):
    # The codec flattens outputs with several columns, so only outputs with one element per row fit a frame.
    encoded = PandasCodec.encode_request(frame, use_bytes=False)
    encoded.outputs = [RequestOutput(name="labels")]
    return PandasCodec.decode_response(infer(model, encoded))["labels"].tolist()


numbers = labels_of_frame("numbers", pd.DataFrame({"a": [1.0, 1.0], "b": [0.0, 1.0]}))
emails = labels_of_frame("mail", pd.DataFrame({"subject": TEXTS, "text": ["", "please help"]}))
print(json.dumps({"outputs": outputs, "numbers": numbers, "emails": emails}))
