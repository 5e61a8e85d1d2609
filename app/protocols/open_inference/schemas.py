"""Request and response schemas of the Open Inference Protocol.

The protocol defines the names. Fields and parameters that it does not define are ignored, because clients
send parameters that are meant for other servers.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

MAX_NAME_LENGTH = 1000


class RequestPart(BaseModel):
    """Base of a request and its parts."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)


Parameters: TypeAlias = dict[str, Any] | None


class RequestInput(RequestPart):
    """An input tensor, without its elements."""

    name: Annotated[str, Field(max_length=MAX_NAME_LENGTH)]
    """Name of the input."""
    shape: list[Annotated[int, Field(ge=0, le=2**31 - 1)]] = Field(min_length=1, max_length=2)
    """Number of rows, and of columns if there are several."""
    datatype: str
    """Type of the elements."""
    parameters: Parameters = None
    """`binary_data_size` and `content_type` have an effect."""


class RequestOutput(RequestPart):
    """A requested output."""

    name: str
    """Name of the output."""
    parameters: Parameters = None
    """`binary_data` has an effect."""


class InferenceRequest(RequestPart):
    """An inference request, without the elements of its tensors."""

    id: str | None = None
    """The response repeats it."""
    parameters: Parameters = None
    """`top` and `binary_data_output` have an effect."""
    inputs: list[RequestInput] = Field(min_length=1)
    """The inputs."""
    outputs: list[RequestOutput] | None = None
    """The requested outputs; by default all that the version has."""


class ResponsePart(BaseModel):
    """Base of responses."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ServerLive(ResponsePart):
    """The process responds."""

    live: bool
    """Always true."""


class ServerReady(ResponsePart):
    """The service is ready."""

    live: bool
    """Always true; the name in the protocol."""
    ready: bool
    """Always true; the name that the client of KServe reads."""


class ServerMetadata(ResponsePart):
    """Describes the service."""

    name: str
    """Always `covey`."""
    version: str
    """Release of the service."""
    extensions: list[str]
    """Supported extensions of the protocol."""


class MetadataTensor(ResponsePart):
    """Describes an input or an output."""

    name: str
    """Name of the tensor."""
    datatype: str
    """Type of its elements."""
    shape: list[int]
    """Its shape; -1 stands for any number."""
    parameters: dict[str, Any] | None = None
    """`names`: the names of the columns of an input, or the labels that an output can contain."""


class ModelMetadata(ResponsePart):
    """Describes a version of a model."""

    name: str
    """Name of the model."""
    versions: list[str]
    """Aliases of the model, and the numbers of its newest versions."""
    platform: str
    """Always `covey`."""
    inputs: list[MetadataTensor]
    """Inputs of the version."""
    outputs: list[MetadataTensor]
    """Outputs of the version."""


class ModelReady(ResponsePart):
    """The version can predict."""

    name: str
    """Name of the model."""
    ready: bool
    """Always true."""
