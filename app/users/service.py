"""Users: sign in, list, change and delete them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from sqlalchemy import select

from app.api.paging import Page, newest_first
from app.db import tables
from app.db.session import Database, Transaction
from app.db.upsert import insert_if_absent
from app.errors import Conflict, Forbidden, NotFound
from app.ids import new_id
from app.settings import Role, Settings, split
from app.users.identity import Identity
from app.users.roles import highest
from app.users.schemas import User, UserPage, UserPatch

MAX_NAME = 200
"""Number of characters of a name that are kept."""


def sign_in(db: Database, settings: Settings, identity: Identity) -> User:
    """Record that a person has signed in: create the user, or update it from the provider.

    Raises:
        Forbidden: the settings give the person no role, or the user is disabled.
    """
    check_email(settings, identity)
    role = provided_role(settings, identity.values) or settings.oidc_default_role
    if not role:
        raise Forbidden("your account has no role here; ask the administrator for one")
    user, name = tables.User, identity.name[:MAX_NAME]
    with db.write() as tx:
        insert_if_absent(
            tx,
            user,
            id=new_id("usr"),
            issuer=identity.issuer,
            subject=identity.subject,
            name=name,
            email=identity.email,
            role=role,
            created_at=tx.now,
            last_sign_in_at=tx.now,
        )
        row = tx.session.scalars(
            select(user)
            .where(user.issuer == identity.issuer, user.subject == identity.subject)
            .with_for_update()
        ).one()
        if row.disabled_at is not None:
            raise Forbidden("an administrator has disabled your account")
        if settings.oidc_roles:  # the provider decides at each sign-in, otherwise administrators do
            row.role = role
        row.name, row.email, row.last_sign_in_at = name, identity.email, tx.now
        tx.session.flush()
        return _to_response(row)


def provided_role(settings: Settings, values: AbstractSet[str]) -> Role | None:
    """Return the highest role that the values of the claim give; None if they give none."""
    return highest({role for value, role in settings.oidc_role_of().items() if value in values})


def check_email(settings: Settings, identity: Identity) -> None:
    """Check that the e-mail address of a person belongs to an allowed domain.

    Raises:
        Forbidden: it does not, or the provider has not verified it.
    """
    domains = {domain.lower() for domain in split(settings.oidc_email_domains)}
    if not domains:
        return
    domain = (identity.email or "").rpartition("@")[2].lower()
    if domain not in domains or not identity.email_verified:
        raise Forbidden(
            f"people of {domain or 'an unknown domain'} cannot sign in here"
            if identity.email_verified
            else "the identity provider has not verified your e-mail address"
        )


def page(db: Database, page: Page) -> UserPage:
    """Return a page of users, newest first."""
    with db.read() as session:
        rows, cursor = newest_first(session, select(tables.User), tables.User.id, page)
        return UserPage(items=[_to_response(row) for row in rows], next_cursor=cursor)


def get(db: Database, user_id: str) -> User:
    """Return a user.

    Raises:
        NotFound: there is no such user.
    """
    with db.read() as session:
        row = session.get(tables.User, user_id)
        if row is None:
            raise NotFound(f"there is no user {user_id}")
        return _to_response(row)


def update(
    db: Database, settings: Settings, user_id: str, body: UserPatch, actor_id: str | None = None
) -> User:
    """Change the role of a user, or disable or enable it.

    Raises:
        NotFound: there is no such user.
        Conflict: users cannot change themselves, so an administrator always remains; or the OpenID provider
            decides about roles.
    """
    with db.write() as tx:
        row = _get_locked(tx, user_id, actor_id)
        if body.role is not None and body.role != row.role:
            if settings.oidc_roles:
                raise Conflict(
                    f"the claim {settings.oidc_claim} of the identity provider decides about roles "
                    "(COVEY_OIDC_ROLES); change the role there",
                    code="role_from_provider",
                )
            row.role = body.role
        if body.disabled is not None and body.disabled != (row.disabled_at is not None):
            row.disabled_at = tx.now if body.disabled else None
        tx.session.flush()
        return _to_response(row)


def delete(db: Database, user_id: str, actor_id: str | None = None) -> None:
    """Delete a user and its sessions.

    Raises:
        NotFound: there is no such user.
        Conflict: users cannot delete themselves.
    """
    with db.write() as tx:
        tx.session.delete(_get_locked(tx, user_id, actor_id))


def _get_locked(tx: Transaction, user_id: str, actor_id: str | None) -> tables.User:
    row = tx.session.get(tables.User, user_id, with_for_update=True)
    if row is None:
        raise NotFound(f"there is no user {user_id}")
    if user_id == actor_id:
        raise Conflict("you cannot change your own account; ask another administrator", code="own_account")
    return row


def _to_response(row: tables.User) -> User:
    return User(
        id=row.id,
        name=row.name,
        email=row.email,
        role=row.role,
        disabled=row.disabled_at is not None,
        issuer=row.issuer,
        subject=row.subject,
        created_at=row.created_at,
        last_sign_in_at=row.last_sign_in_at,
    )
