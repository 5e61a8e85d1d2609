"""Read the settings of a command."""

from __future__ import annotations

import os
from typing import Any

import typer
from pydantic import ValidationError

from app.settings import PREFIX, Settings, invalid_settings


def settings_with(**options: Any) -> Settings:
    """Return the settings; options take precedence, and child processes inherit them by the environment.

    Raises:
        typer.Exit: a setting is invalid; a line on standard error names each.
    """
    for name, value in options.items():
        if value is not None:
            os.environ[f"{PREFIX}{name.upper()}"] = str(value)
    try:
        return Settings()
    except ValidationError as error:
        for line in invalid_settings(error):
            typer.echo(f"covey: {line}", err=True)
        raise typer.Exit(2) from error
