"""The names of ``import covey``."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import covey
from covey import _api, decisions, errors, measures
from models.catalog import ENTRIES

ROOT = Path(__file__).parents[2]

WITH_EXAMPLE = {
    *(entry.learner.__name__ for entry in ENTRIES.values()),
    *("Pipeline", "TextFeatures", "NumericFeatures", "Examples", "FeatureRows", "LabelTree", "Email"),
    *("read_examples", "load", "save", "stratified_folds", "stratified_split", "learners", "evaluate"),
    *("decisions", "measures"),
}
"""Names whose docstring shows how to use them; doctest runs the examples."""


def test_the_lazy_names_are_those_of_the_package_that_is_imported_then() -> None:
    assert sorted(covey.__all__) == sorted(_api.__all__)
    assert dir(covey) == sorted(covey.__all__)


@pytest.mark.parametrize("name", sorted(set(covey.__all__) - {"__version__"}))
def test_every_public_name_exists_and_has_a_docstring(name: str) -> None:
    public = getattr(covey, name)
    documentation = inspect.getdoc(public) or ""
    assert len(documentation) > 20
    assert name not in WITH_EXAMPLE or ">>>" in documentation


@pytest.mark.parametrize("module", [decisions, errors, measures])
def test_every_name_of_a_public_module_has_a_docstring(module: object) -> None:
    for name in getattr(module, "__all__"):  # noqa: B009 - modules have no such attribute for mypy
        documented = name == "DecisionRule" or (inspect.getdoc(getattr(module, name)) or "")
        assert documented, name


def test_every_learner_of_the_catalog_is_public() -> None:
    learners = {entry.learner for entry in ENTRIES.values()}
    assert learners <= {getattr(covey, name) for name in covey.__all__ if name != "__version__"}
    assert {learner.algorithm for learner in covey.learners()} == set(ENTRIES)


def test_the_version_is_that_of_the_package() -> None:
    assert covey.__version__.count(".") == 2


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        covey.nothing  # noqa: B018


def test_importing_covey_imports_nothing_else() -> None:
    code = "import sys; import covey; print(*sorted({n.partition('.')[0] for n in sys.modules}))"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"covey"} <= set(result.stdout.split())
    assert not {"numpy", "scipy", "sklearn", "pydantic", "models"} & set(result.stdout.split())
