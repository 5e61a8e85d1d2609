"""SQL that others need of models, versions and aliases."""

from __future__ import annotations

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from app.db import tables
from app.errors import NotFound


def resolve(session: Session, name: str, ref: int | str, pointer: str = "/version") -> tables.ModelVersion:
    """Return the version with a number, or the version that an alias currently names.

    Args:
        session: a database session.
        name: name of the model.
        ref: number of a version, or name of an alias.
        pointer: JSON pointer of the reference in the request, for the error.

    Raises:
        NotFound: there is no such model, version or alias.
    """
    if isinstance(ref, int):
        return get_version_or_404(session, name, ref, pointer=pointer)
    # One statement: the alias cannot move to another version, and its version be deleted, in between.
    version = session.scalars(
        select(tables.ModelVersion)
        .join(
            tables.ModelAlias,
            and_(
                tables.ModelAlias.model == tables.ModelVersion.model,
                tables.ModelAlias.version == tables.ModelVersion.version,
            ),
        )
        .where(tables.ModelAlias.model == name, tables.ModelAlias.alias == ref)
    ).one_or_none()
    if version is not None:
        return version
    get_model_or_404(session, name)
    known = ", ".join(read_alias_numbers(session, name)) or "none"
    message = f"model {name} has no alias {ref}; existing aliases: {known}"
    raise NotFound(message, errors=[(pointer, message)])


def get_model_or_404(session: Session, name: str) -> tables.Model:
    """Return a model.

    Raises:
        NotFound: there is no such model.
    """
    row = session.get(tables.Model, name)
    if row is None:
        raise no_model(name)
    return row


def no_model(name: str) -> NotFound:
    """Return the error for a model that does not exist."""
    return NotFound(f"there is no model {name}")


def get_version_or_404(
    session: Session, name: str, version: int, pointer: str | None = None
) -> tables.ModelVersion:
    """Return a version.

    Args:
        session: a database session.
        name: name of the model.
        version: number of the version.
        pointer: JSON pointer of the number in the request, if the body contains it.

    Raises:
        NotFound: there is no such model or version.
    """
    row = session.get(tables.ModelVersion, (name, version))
    if row is None:
        get_model_or_404(session, name)
        message = f"model {name} has no version {version}"
        raise NotFound(message, errors=[(pointer, message)] if pointer else ())
    return row


def read_alias_numbers(session: Session, name: str) -> dict[str, int]:
    """Return the aliases of a model in order, each with the number of its version."""
    alias = tables.ModelAlias
    statement = select(alias.alias, alias.version).where(alias.model == name).order_by(alias.alias)
    return dict(session.execute(statement).all())
