"""Generates the client code from openapi.json before hatchling builds a wheel or a source distribution."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from generate import ensure_generated  # noqa: E402 - hatchling does not add this folder to the path


class GenerateClient(BuildHookInterface[Any]):
    """The build hook."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """See ``BuildHookInterface``."""
        ensure_generated()
