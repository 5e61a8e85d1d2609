"""Imported artifacts with forged manifests: each is rejected as a whole, or can be read everywhere."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import in_process
import pytest
from forging import forge, mutate, nested
from sqlalchemy import func, select

from app.api.errors import problem_of
from app.api.paging import Page
from app.context import AppContext
from app.db import tables
from app.errors import Invalid
from app.registry import service
from app.registry.schemas import ModelVersion
from models import catalog
from models.artifact import save
from models.data.examples import Examples
from models.labels import LabelTree
from models.pipeline import Pipeline

SHA256 = "0" * 64
EXTRA = {"metrics": {"train": {"f1_micro": 0.9}, "test": {"f1_micro": 0.8}}, "dataset_sha256": SHA256}


@cache
def original(folder: Path) -> bytes:
    pipeline = Pipeline.from_parameters(
        catalog.FEATURES_PARAMETERS.validate_python({"kind": "text"}),
        catalog.LEARNER_PARAMETERS.validate_python({"algorithm": "mp_boost", "rounds": 2}),
    )
    texts, sets = ["red rose", "blue sky", "green grass"] * 2, [("red",), ("blue",), ("green",)] * 2
    pipeline.fit(Examples("text", texts, sets), tree=LabelTree({"red": "warm", "blue": "cold"}))
    save(pipeline, folder / "model.covey", extra=EXTRA)
    return (folder / "model.covey").read_bytes()


@pytest.fixture
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return original(tmp_path_factory.getbasetemp())


def submit(ctx: AppContext, content: bytes) -> ModelVersion:
    with ctx.storage.temporary_file() as path:
        path.write_bytes(content)
        return service.import_version(ctx, "helpdesk", path, in_process.WITHOUT_KEY)


def stored(ctx: AppContext) -> tuple[int | None, int | None, int]:
    """Numbers of models, versions and artifacts."""
    with ctx.db.read() as session:
        counts = [
            session.scalar(select(func.count()).select_from(table))
            for table in (tables.Model, tables.ModelVersion)
        ]
    return counts[0], counts[1], len(list(ctx.storage.files("artifacts")))


def read_everything(ctx: AppContext, version: ModelVersion) -> None:
    responses = [
        service.get_version(ctx.db, "helpdesk", version.version),
        service.page_versions(ctx.db, "helpdesk", Page(100, None)),
        service.page_models(ctx.db, Page(100, None)),
        service.get_model(ctx.db, "helpdesk"),
    ]
    for response in responses:
        response.model_dump_json().encode()


def test_an_artifact_that_is_not_forged_keeps_its_provenance(ctx: AppContext, content: bytes) -> None:
    version = submit(ctx, content)
    assert version.metrics is not None
    assert version.metrics.model_dump() == EXTRA["metrics"]
    assert version.dataset_sha256 == SHA256
    read_everything(ctx, version)


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_header: dict[str, Any], manifest: dict[str, Any]) -> None:
        place: Any = manifest
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (_set("labels", 0, to="\ud800"), "/labels/0"),
        (_set("labels", 0, to="a\tb"), "labels/0"),
        (_set("extra", "metrics", to="high"), "extra/metrics"),
        (_set("extra", "metrics", to={"test": {"f1_micro": 0.5}}), "extra/metrics/train"),
        (_set("extra", "metrics", "train", "f1_micro", to="0.5"), "extra/metrics/train/f1_micro"),
        (_set("extra", "metrics", "train", to={f"m{i}": 0.5 for i in range(1_001)}), "extra/metrics/train"),
        (_set("extra", "dataset_sha256", to=5), "extra/dataset_sha256"),
        (_set("extra", "dataset_sha256", to="latest"), "extra/dataset_sha256"),
        (_set("extra", "note", to="\0"), "extra/note"),
        (_set("facts", "deep", to=nested(900)), "/facts/deep/0"),
        (_set("facts", "text", to="\0"), "/facts/text"),
        (_set("warnings", 0, to=5), "warnings/0"),
        (_set("label_tree", to={f"l{i}": f"l{i + 1}" for i in range(200)}), "201 levels"),
    ],
)
def test_a_forged_manifest_is_rejected_and_leaves_nothing(
    ctx: AppContext, content: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None], named: str
) -> None:
    def with_warning(header: dict[str, Any], manifest: dict[str, Any]) -> None:
        manifest["warnings"] = ["a warning"]
        change(header, manifest)

    with pytest.raises(Invalid) as error:
        submit(ctx, forge(content, with_warning))
    assert error.value.code == "bad_artifact"
    assert named in error.value.detail
    assert stored(ctx) == (0, 0, 0)


def test_the_limit_on_labels_applies_to_imports(ctx: AppContext, content: bytes) -> None:
    limited = replace(ctx, settings=ctx.settings.model_copy(update={"max_labels": 4}))
    with pytest.raises(Invalid, match="5 labels; the limit is 4"):
        submit(limited, content)
    assert stored(ctx) == (0, 0, 0)


def test_every_mutated_manifest_is_rejected_or_can_be_read(ctx: AppContext, content: bytes) -> None:
    rejected = accepted = 0
    rng = random.Random(0)  # noqa: S311 - test data
    for number in range(60):
        before = stored(ctx)
        changed = forge(content, lambda _, manifest: mutate(manifest, rng))
        error = None
        try:
            version = submit(ctx, changed)
        except Invalid as caught:
            error = caught
        if error is None:
            accepted += 1
            read_everything(ctx, version)
            continue
        rejected += 1
        assert error.code == "bad_artifact", number
        problem_of(error).model_dump_json().encode()
        assert stored(ctx) == before, number
    assert min(rejected, accepted) > 0
