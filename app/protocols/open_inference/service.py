"""Answer requests of the Open Inference Protocol with the functions that predict for the API."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import select

from app.db import tables
from app.db.session import Database
from app.protocols.open_inference.inputs import count_rows, input_metadata, read_documents
from app.protocols.open_inference.outputs import (
    InferenceResponse,
    output_metadata,
    requested_top,
    wanted_outputs,
    write_response,
)
from app.protocols.open_inference.schemas import InferenceRequest, ModelMetadata
from app.protocols.open_inference.tensors import Tensor
from app.serving import prediction
from app.serving.instances import find_unknown_features
from app.serving.loaded_models import LoadedModels
from app.serving.loaded_version import LoadedVersion
from app.serving.state import Catalog, ServedVersion
from app.settings import Settings
from models.data.examples import FeatureRows
from models.pipeline import Pipeline, Ranking

MAX_VERSIONS: Final = 100
"""Maximum number of versions that the metadata of a model lists, the newest ones."""


async def infer(
    catalog: Catalog,
    loaded: LoadedModels,
    name: str,
    reference: int | str,
    request: InferenceRequest,
    tensors: list[Tensor],
    settings: Settings,
    *,
    n_bytes: int,
) -> InferenceResponse:
    """Predict for the documents of a request.

    Args:
        catalog: knows the version of each alias.
        loaded: the versions in memory.
        name: name of the model.
        reference: the number or an alias of the version.
        request: the request.
        tensors: its inputs.
        settings: the limits.
        n_bytes: size of the request.

    Raises:
        ServiceError: as ``app.serving.prediction.predict``, with the places of the tensors.
    """
    n_rows = count_rows(tensors, settings)
    wanted = wanted_outputs(request)
    unknown: dict[str, Any] = {}

    def read(pipeline: Pipeline) -> prediction.Documents:
        documents = read_documents(pipeline, tensors, settings)
        if isinstance(documents, FeatureRows) and (found := find_unknown_features(pipeline, documents.names)):
            unknown.update(unknown_features=found.count, unknown_feature_names=", ".join(found.names))
        return documents

    def write(version: ServedVersion, found: LoadedVersion, ranking: Ranking) -> InferenceResponse:
        return write_response(request, wanted, version, found, ranking, unknown)

    return await prediction.rank(
        catalog,
        loaded,
        name,
        reference,
        read,
        write,
        n_instances=n_rows,
        n_bytes=n_bytes,
        top=requested_top(request, wanted),
    )


def describe(db: Database, version: ServedVersion, found: LoadedVersion) -> ModelMetadata:
    """Describe a version, and list the versions of its model."""
    with db.read() as session:
        aliases = session.scalars(
            select(tables.ModelAlias.alias)
            .where(tables.ModelAlias.model == version.model)
            .order_by(tables.ModelAlias.alias)
        ).all()
        numbers = session.scalars(
            select(tables.ModelVersion.version)
            .where(tables.ModelVersion.model == version.model)
            .order_by(tables.ModelVersion.version.desc())
            .limit(MAX_VERSIONS)
        ).all()
    return ModelMetadata(
        name=version.model,
        versions=[*aliases, *map(str, numbers)],
        platform="covey",
        inputs=input_metadata(found.pipeline),
        outputs=output_metadata(found.pipeline),
    )
