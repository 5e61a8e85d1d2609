"""Write predictions as output tensors, as JSON or in the binary extension of the protocol.

The rows of ``ranking`` are labels in descending order of their scores. ``scores`` and ``probabilities`` have
the same columns. A label set has no fixed size, so an element of ``labels`` is a JSON array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from pydantic_core import to_json

from app.errors import Invalid
from app.protocols.open_inference.schemas import InferenceRequest, MetadataTensor
from app.serving.loaded_version import LoadedVersion
from app.serving.state import ServedVersion
from models.arrays import Floats
from models.pipeline import Pipeline, Ranking

RANKED: Final = ("ranking", "scores", "probabilities")
"""The outputs with a column for each label of the rankings."""

CALIBRATED: Final = ("probabilities", "set_probability")
"""The outputs of calibrated versions."""

OUTPUTS: Final = ("labels", *RANKED, "set_probability")


@dataclass(frozen=True)
class WantedOutput:
    """An output of a response.

    Attributes:
        name: its name.
        binary: whether to write it in the binary extension.
    """

    name: str
    binary: bool


@dataclass(frozen=True)
class InferenceResponse:
    """A response to an inference request.

    Attributes:
        body: the JSON text, and the elements of binary tensors.
        json_length: size of the JSON text; None if there is nothing else.
    """

    body: bytes
    json_length: int | None


def output_metadata(pipeline: Pipeline) -> list[MetadataTensor]:
    """Return the outputs of a version."""
    labels = {"names": pipeline.labels_}
    return [
        MetadataTensor(
            name=name,
            datatype="BYTES" if name in {"labels", "ranking"} else "FP64",
            shape=[-1, -1] if name in RANKED else [-1],
            parameters=labels if name in {"labels", "ranking"} else None,
        )
        for name in OUTPUTS
        if name not in CALIBRATED or pipeline.calibration_ is not None
    ]


def wanted_outputs(request: InferenceRequest) -> list[WantedOutput] | None:
    """Return the outputs that a request names; None if it names none.

    Raises:
        Invalid: there is no such output, or the request wants something that no output has.
    """
    if not request.outputs:
        return None
    binary = _flag(request.parameters, "binary_data_output", "/parameters")
    wanted: list[WantedOutput] = []
    for i, output in enumerate(request.outputs):
        pointer = f"/outputs/{i}"
        if output.name not in OUTPUTS:
            message = f"{output.name[:100]!r} is not an output; the outputs are {', '.join(OUTPUTS)}"
            raise _invalid(f"{pointer}/name", message)
        if any(output.name == other.name for other in wanted):
            raise _invalid(f"{pointer}/name", f"the output {output.name!r} occurs twice")
        parameters = output.parameters or {}
        if parameters.get("classification"):
            message = "the classification extension is not supported; use ranking and the parameter top"
            raise _invalid(f"{pointer}/parameters/classification", message)
        of_one = (
            _flag(parameters, "binary_data", f"{pointer}/parameters")
            if "binary_data" in parameters
            else binary
        )
        wanted.append(WantedOutput(output.name, of_one))
    return wanted


def requested_top(request: InferenceRequest, wanted: Sequence[WantedOutput] | None) -> int | None:
    """Return the length of the rankings; None for every label.

    Raises:
        Invalid: the parameter is no positive integer.
    """
    top = (request.parameters or {}).get("top")
    if top is not None and (type(top) is not int or not 1 <= top < 2**31):
        raise _invalid("/parameters/top", "must be a positive integer")
    if wanted is not None and all(output.name not in RANKED for output in wanted):
        return 1
    return top


def write_response(
    request: InferenceRequest,
    wanted: Sequence[WantedOutput] | None,
    version: ServedVersion,
    loaded: LoadedVersion,
    ranking: Ranking,
    parameters: dict[str, Any],
) -> InferenceResponse:
    """Write the response to a request.

    Args:
        request: the request.
        wanted: the outputs; None writes all that the version has.
        version: the version that has predicted.
        loaded: the same version in memory.
        ranking: its predictions.
        parameters: parameters of the response.

    Raises:
        Invalid: the version does not have an output, because it is not calibrated.
    """
    if wanted is None:
        binary = _flag(request.parameters, "binary_data_output", "/parameters")
        wanted = [WantedOutput(output.name, binary) for output in output_metadata(loaded.pipeline)]
    heads, blobs = [], []
    for output in wanted:
        head, blob = _write_output(output, version, loaded, ranking)
        heads.append(head)
        blobs.append(blob)
    fields = {"model_name": version.model, "model_version": str(version.version)}
    if request.id is not None:
        fields["id"] = request.id
    start = to_json({**fields, "parameters": parameters} if parameters else fields)
    text = b'%b,"outputs":[%b]}' % (start[:-1], b",".join(heads))
    if not any(output.binary for output in wanted):
        return InferenceResponse(text, None)
    return InferenceResponse(text + b"".join(blobs), len(text))


def _write_output(
    output: WantedOutput, version: ServedVersion, loaded: LoadedVersion, ranking: Ranking
) -> tuple[bytes, bytes]:
    """Return an output as JSON, and its elements if they are binary."""
    elements: Sequence[bytes] | Floats
    if output.name == "labels":
        elements, shape = _label_sets(loaded, ranking), [len(ranking.label_sets)]
    elif output.name == "ranking":
        elements, shape = _ranked_labels(loaded, ranking), [*ranking.order.shape]
    else:
        elements = _numbers(output.name, version, ranking)
        shape = [*elements.shape]
    is_text = isinstance(elements, list)
    parameters: dict[str, Any] = {"content_type": "str" if is_text else "np"}
    head = {"name": output.name, "datatype": "BYTES" if is_text else "FP64", "shape": shape}
    if output.binary:
        binary = _to_binary(elements)
        return to_json({**head, "parameters": {**parameters, "binary_data_size": len(binary)}}), binary
    return b'%b,"data":%b}' % (to_json({**head, "parameters": parameters})[:-1], _to_json(elements)), b""


def _to_json(elements: Sequence[bytes] | Floats) -> bytes:
    if isinstance(elements, np.ndarray):
        return to_json(elements.ravel().tolist())
    return to_json([element.decode() for element in elements])


def _to_binary(elements: Sequence[bytes] | Floats) -> bytes:
    if isinstance(elements, np.ndarray):
        return elements.astype("<f8").tobytes()
    return b"".join([len(element).to_bytes(4, "little") + element for element in elements])


def _label_sets(loaded: LoadedVersion, ranking: Ranking) -> list[bytes]:
    names = loaded.pipeline.labels_
    return [to_json([names[label] for label in labels]) for labels in ranking.label_sets]


def _ranked_labels(loaded: LoadedVersion, ranking: Ranking) -> list[bytes]:
    labels = loaded.pipeline.labels_
    return [labels[number].encode() for number in ranking.order.ravel().tolist()]


def _numbers(name: str, version: ServedVersion, ranking: Ranking) -> Floats:
    numbers = {
        "scores": ranking.scores,
        "probabilities": ranking.probabilities,
        "set_probability": ranking.set_probabilities,
    }[name]
    if numbers is None:
        raise _invalid(
            "/outputs",
            f"version {version.version} of {version.model} is not calibrated, so it has no output {name}; "
            "train a version with the decision auto, or do not request the output",
        )
    return numbers


def _flag(parameters: dict[str, Any] | None, name: str, pointer: str) -> bool:
    value = (parameters or {}).get(name, False)
    if not isinstance(value, bool):
        raise _invalid(f"{pointer}/{name}", "must be true or false")
    return value


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(f"{pointer}: {message}", errors=[(pointer, message)])
