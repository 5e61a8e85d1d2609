"""FastAPI dependencies of the routes that predict."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from app.serving.loaded_models import LoadedModels


def _loaded_models(request: Request) -> LoadedModels:
    loaded: LoadedModels = request.app.state.loaded
    return loaded


Loaded = Annotated[LoadedModels, Depends(_loaded_models)]
"""The model versions in the memory of this process."""
