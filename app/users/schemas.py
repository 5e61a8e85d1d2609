"""Request and response schemas of users."""

from __future__ import annotations

from pydantic import ConfigDict

from app.api.schemas import NextCursor, RequestModel, ResponseModel, Timestamp
from app.settings import Role


class UserPatch(RequestModel):
    """Changes of a user. Fields that are left out do not change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "reviewer"}, {"disabled": True}]})

    role: Role | None = None
    """The new role: `reader` reads resources, `reviewer` also reads kept messages and corrects decisions,
    `editor` also changes data sets, models and routers and routes messages, `admin` may do everything."""
    disabled: bool | None = None
    """Whether the user is locked out. The sessions of a disabled user end at once."""


class User(ResponseModel):
    """A person who has signed in with the OpenID provider."""

    id: str
    """Id of the user; starts with `usr_`."""
    name: str
    """Name of the person, as the provider states it."""
    email: str | None = None
    """E-mail address of the person. Absent if the provider does not state it."""
    role: Role
    """What the user may do."""
    disabled: bool
    """Whether the user is locked out."""
    issuer: str
    """The OpenID provider."""
    subject: str
    """Id of the person at the provider."""
    created_at: Timestamp
    """Time of the first sign-in."""
    last_sign_in_at: Timestamp
    """Time of the last sign-in."""


class UserPage(ResponseModel):
    """A page of users, newest first."""

    items: list[User]
    """Users of this page."""
    next_cursor: NextCursor
