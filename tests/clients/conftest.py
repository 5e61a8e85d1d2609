"""Makes the package of ``clients/python`` importable, with its generated part."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = Path(__file__).parents[2] / "clients" / "python"


def load_script(name: str) -> ModuleType:
    """Import a script of the package as the module ``covey_client_<name>``."""
    spec = importlib.util.spec_from_file_location(f"covey_client_{name}", PACKAGE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


load_script("generate").ensure_generated()
load_script("unasync")
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

    def sleep(_runtime: object, time: float) -> None:
        seconds.append(time)

    async def sleep_async(_runtime: object, time: float) -> None:
        seconds.append(time)

    monkeypatch.setattr(_runtime.BlockingRuntime, "sleep", sleep)
    monkeypatch.setattr(_runtime.AsyncRuntime, "sleep", sleep_async)
    return seconds
