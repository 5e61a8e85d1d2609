"""``/docs``: the interactive API documentation, served from files that are installed with the service.

FastAPI's own page loads its scripts from a public server, and stays blank if the browser cannot reach it.
"""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

from app.api.proxies import root_path

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; frame-ancestors 'none'"
)
"""Content-Security-Policy of the page: it loads nothing from other servers. An inline script starts it."""


def install(app: FastAPI) -> None:
    """Serve the page and its files."""
    app.mount("/docs/parts", StaticFiles(packages=[("fastapi_swagger", "resources")]))

    @app.get("/docs", include_in_schema=False)
    def docs(request: Request) -> HTMLResponse:
        root = root_path(request)
        page = get_swagger_ui_html(
            openapi_url=f"{root}/openapi.json",
            title=app.title,
            swagger_js_url=f"{root}/docs/parts/swagger-ui-bundle.js",
            swagger_css_url=f"{root}/docs/parts/swagger-ui.css",
            swagger_favicon_url=f"{root}/docs/parts/favicon-32x32.png",
        )
        page.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
        return page
