"""Checks ``openapi.json`` with the recommended rules of Spectral and Redocly; a warning is an error.

    python clients/check_rules.py

Without npm, it says so and checks nothing, unless ``COVEY_REQUIRE_SERVERS`` is 1, as in CI. It checks the
same files only once.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from generate_clients import (
    CLIENTS,
    DOCUMENT,
    GeneratorError,
    GeneratorMissingError,
    install_npm_packages,
    run,
)

RULES = CLIENTS / "contract"
CHECKED = CLIENTS.parent / "build" / "checked-rules.sha256"
"""The digest of the files that have followed the rules."""

_OFFLINE = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}


def _digest() -> str:
    rules = (RULES / name for name in ("spectral.yaml", "redocly.yaml", "package-lock.json"))
    files = (DOCUMENT, Path(__file__), *rules)
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


def main() -> int:
    """Print the problems, and return 1 if there are any."""
    digest = _digest()
    if CHECKED.exists() and CHECKED.read_text(encoding="utf-8") == digest:
        print("openapi.json still follows the rules of Spectral and Redocly.")
        return 0
    programs = RULES / "node_modules" / ".bin"
    try:
        install_npm_packages(RULES)
        run(
            programs / "spectral",
            "lint",
            DOCUMENT,
            "--ruleset",
            "spectral.yaml",
            "--fail-severity",
            "hint",
            cwd=RULES,
        )
        run(programs / "redocly", "lint", DOCUMENT, "--config", "redocly.yaml", cwd=RULES, env=_OFFLINE)
    except GeneratorMissingError as error:
        print(f"Not checked: the rules of Spectral and Redocly. {error}")
        return int(os.environ.get("COVEY_REQUIRE_SERVERS", "") not in ("", "0"))
    except GeneratorError as error:
        print(error)
        return 1
    CHECKED.parent.mkdir(exist_ok=True)
    CHECKED.write_text(digest, encoding="utf-8")
    print("openapi.json follows the rules of Spectral and Redocly.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
