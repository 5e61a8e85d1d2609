"""HTTP routes of users."""

from __future__ import annotations

from fastapi import Request

from app.api.base_route import AdminScope, Context, resource, responses
from app.api.guards import actor_of
from app.api.paging import PageQuery
from app.api.schemas import UserId
from app.users import service
from app.users.schemas import User, UserPage, UserPatch

router = resource("users")


@router.get("/users", dependencies=[AdminScope], response_description="A page of users.")
def list(ctx: Context, page: PageQuery) -> UserPage:  # noqa: A001 - the verb of the operation's id
    """List the people who have signed in with the OpenID provider, newest first."""
    return service.page(ctx.db, page)


@router.get(
    "/users/{user_id}",
    dependencies=[AdminScope],
    responses=responses(404),
    response_description="The user.",
)
def get(ctx: Context, user_id: UserId) -> User:
    """Get a user."""
    return service.get(ctx.db, user_id)


@router.patch(
    "/users/{user_id}",
    dependencies=[AdminScope],
    responses=responses(404, 409),
    response_description="The changed user.",
)
def update(ctx: Context, request: Request, user_id: UserId, body: UserPatch) -> User:
    """Change the role of a user, or disable or enable the user.

    The change applies to the next request of the user. The request is rejected with 409 if you change your
    own account, or if the OpenID provider decides about roles.
    """
    return service.update(ctx.db, ctx.settings, user_id, body, _actor_id(request))


@router.delete(
    "/users/{user_id}",
    status_code=204,
    dependencies=[AdminScope],
    responses=responses(404, 409),
    response_description="The user is deleted; no content.",
)
def delete(ctx: Context, request: Request, user_id: UserId) -> None:
    """Delete a user with the name and the e-mail address of the person.

    If the person signs in again, a new user is created; to lock a person out, disable the user.
    """
    service.delete(ctx.db, user_id, _actor_id(request))


def _actor_id(request: Request) -> str | None:
    actor = actor_of(request)
    return None if actor is None else actor.id
