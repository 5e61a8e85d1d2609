"""``/docs``: the page that shows the API and tries it out, made of files that are installed with the service.

FastAPI's own page loads its parts from another company's server, and is blank where that cannot be reached.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; frame-ancestors 'none'"
)
"""The page's Content-Security-Policy: nothing comes from elsewhere. A script in its text starts it."""


def install(app: FastAPI) -> None:
    """Serve the page and its parts. Addresses in it are relative, so that a proxy may put a path in front."""
    app.mount("/docs/parts", StaticFiles(packages=[("fastapi_swagger", "resources")]))

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        page = get_swagger_ui_html(
            openapi_url="openapi.json",
            title=app.title,
            swagger_js_url="docs/parts/swagger-ui-bundle.js",
            swagger_css_url="docs/parts/swagger-ui.css",
            swagger_favicon_url="docs/parts/favicon-32x32.png",
        )
        page.headers["Content-Security-Policy"] = POLICY
        return page
