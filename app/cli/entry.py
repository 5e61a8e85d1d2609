"""Start the command ``covey``, or say how to install what it needs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from app.cli import main as command  # noqa: PLC0415 - without the extra, it cannot be imported
    except ModuleNotFoundError as error:
        sys.exit(
            f"covey: the command needs {error.name}, which is not installed; "
            "run: pip install 'covey[service]'"
        )
    command.main()
