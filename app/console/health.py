"""Page of jobs and health."""

from __future__ import annotations

from fastapi import Request, Response

from app.api.base_route import Context, ReadScope
from app.console.rendering import page
from app.console.route import pages
from app.health import overview
from app.health.service import check_readiness

router = pages()


@router.get("/health", dependencies=[ReadScope])
def health(ctx: Context, request: Request) -> Response:
    """Show whether the service is ready, the queue, the workers, and the last failures."""
    return page(
        request,
        "health.html",
        readiness=check_readiness(ctx),
        warnings=request.app.state.routed_versions.problems(),
        overview=overview.get(ctx.db),
    )
