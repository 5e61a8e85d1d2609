"""The protocols of other projects that the API can serve, each with the name that the settings use."""

from __future__ import annotations

from fastapi import APIRouter

from app.protocols.label_studio import api as label_studio
from app.protocols.open_inference import api as open_inference
from app.settings import Protocol, Settings

ROUTERS: dict[Protocol, APIRouter] = {
    "open_inference": open_inference.router,
    "label_studio": label_studio.router,
}


def served(settings: Settings) -> list[APIRouter]:
    """Return the routes of the protocols that are switched on."""
    return [ROUTERS[name] for name in settings.served_protocols()]
