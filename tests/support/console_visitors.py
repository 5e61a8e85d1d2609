"""Visitors of the console in the process of a test, each with the scopes of a key."""

from __future__ import annotations

from dataclasses import dataclass

from httpx import Response
from in_process_api import InProcessApi

from app.keys import service as keys
from app.keys.schemas import ApiKeyCreate


@dataclass(frozen=True)
class Visitor:
    """A visitor with an API key.

    Attributes:
        api: the API.
        secret: the key.
    """

    api: InProcessApi
    secret: str

    def get(self, path: str) -> Response:
        """Request a page."""
        return self.api.send("GET", path, headers={"Authorization": f"Bearer {self.secret}"})

    def see(self, path: str, status: int = 200) -> str:
        """Request a page, check the status, and return its HTML."""
        response = self.get(path)
        assert response.status_code == status, response.text[:2000]
        return response.text


def visitor(api: InProcessApi, *scopes: str) -> Visitor:
    """Create a key with scopes, and return its visitor."""
    key = ApiKeyCreate.model_validate({"name": "visitor", "scopes": list(scopes)})
    return Visitor(api, keys.create(api.ctx.db, key).secret)
