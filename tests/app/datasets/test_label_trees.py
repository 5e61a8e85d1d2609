"""Label trees with too many levels are rejected, in requests and in files."""

from __future__ import annotations

import io
from pathlib import Path

import in_process
import pytest

from app.context import AppContext
from app.datasets import creation
from app.datasets.schemas import DatasetCreate
from app.errors import Invalid
from models.data.ingestion.ingest import ingest
from models.data.limits import IngestLimits
from models.errors import BadDataError


def chain(n: int) -> dict[str, str]:
    return {f"l{i}": f"l{i + 1}" for i in range(n)}


def test_a_request_with_a_deep_tree_is_rejected(ctx: AppContext) -> None:
    creation.create(ctx, DatasetCreate(name="deep", label_tree=chain(99)), in_process.WITHOUT_KEY)
    with pytest.raises(Invalid, match="4,001 levels; the limit is 100") as error:
        creation.create(ctx, DatasetCreate(name="deeper", label_tree=chain(4_000)), in_process.WITHOUT_KEY)
    assert error.value.errors[0][0] == "/label_tree"


def test_a_file_with_a_deep_tree_is_rejected(tmp_path: Path) -> None:
    path = "/".join("a" * 5)
    content = f"@relation r\n@attribute x numeric\n@attribute class hierarchical {path}\n@data\n1,{path}\n"
    limits = IngestLimits(tree_depth=5)
    assert ingest(io.BytesIO(content.encode()), "arff", tmp_path / "five", limits=limits).n_labels == 5
    with pytest.raises(BadDataError, match="5 levels; the limit is 4"):
        ingest(io.BytesIO(content.encode()), "arff", tmp_path / "set", limits=IngestLimits(tree_depth=4))
