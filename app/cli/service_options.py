"""The options of every command that talks to a service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.inbound.service_client import KEY_VARIABLE, URL_VARIABLE

Url = Annotated[str, typer.Option(envvar=URL_VARIABLE, help="URL of the service.")]
KeyFile = Annotated[
    Path | None, typer.Option(help=f"File that contains the API key. Default: the variable `{KEY_VARIABLE}`.")
]
