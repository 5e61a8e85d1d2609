"""Add the console to the application."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from fastapi.staticfiles import StaticFiles

from app.console import (
    batch_predictions,
    corrections,
    datasets,
    experiments,
    health,
    help_page,
    home,
    keys,
    models,
    reading_again,
    routers,
    sign_in,
    training,
    unknown_pages,
    users,
    webhooks,
)


def install(app: FastAPI) -> None:
    """Serve the pages, and their scripts and styles. ``/`` leads to the console."""
    app.mount("/console/static", StaticFiles(packages=[("app.console", "static")]))
    areas = (
        *(sign_in, home, datasets, reading_again, training, experiments),
        *(models, corrections, batch_predictions, routers, health, keys, users, webhooks, help_page),
    )
    for pages in (*areas, unknown_pages):  # the last one matches every path
        app.router.routes.extend(pages.router.routes)

    @app.get("/", include_in_schema=False)
    def root(request: Request) -> RedirectResponse:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/console", HTTPStatus.SEE_OTHER)
