"""Users in the database, as if people had signed in."""

from __future__ import annotations

from app.db.session import Database
from app.ids import new_id
from app.settings import Settings
from app.users import service
from app.users.identity import Identity


def new_user(db: Database) -> str:
    """Create a user with the role reader, and return its id."""
    identity = Identity("https://id.example", new_id("usr"), "Ann", "ann@example.org", True, frozenset())
    return service.sign_in(db, Settings(oidc_default_role="reader"), identity).id
