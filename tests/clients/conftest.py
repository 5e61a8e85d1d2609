"""Makes the package of ``clients/python`` importable, with its generated part."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "clients" / "python"


def _ensure_generated() -> None:
    spec = importlib.util.spec_from_file_location("covey_client_generate", PACKAGE / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.ensure_generated()


_ensure_generated()
sys.path.insert(0, str(PACKAGE / "src"))

import either_client  # noqa: E402 - after the path
from covey_client import _runtime  # noqa: E402
from either_client import Either  # noqa: E402


@pytest.fixture(params=["Blocking", "Asynchronous"])
def either(request: pytest.FixtureRequest) -> Either:
    """The blocking and the asynchronous client."""
    kind: Either = getattr(either_client, request.param)
    return kind


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the clients waited; they do not really wait."""
    seconds: list[float] = []

    async def sleep(_runtime: object, time: float) -> None:
        seconds.append(time)

    for runtime in (_runtime.BlockingRuntime, _runtime.AsyncRuntime):
        monkeypatch.setattr(runtime, "sleep", sleep)
    return seconds
