#!python
"""The command ``covey``. The wheel contains this file as the script ``bin/covey``.

Only the standard library is imported before a command is known. A mail server returns a message to its sender
after each exit status of ``covey route`` but 75, and packages are missing or incomplete while they are
upgraded. So this file, which a script that pip generates would have to import, is the script itself.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn


def main() -> None:
    """Run the command line, or say how to install what it needs."""
    if sys.argv[1:2] == ["route"]:
        route(sys.argv[2:])
    try:
        from app.cli import main as command  # noqa: PLC0415 - without the extra, it cannot be imported
    except ModuleNotFoundError as error:
        sys.exit(
            f"covey: the command needs {error.name}, which is not installed; "
            "run: pip install 'covey[service]'"
        )
    command.main()


class _StoppedError(BaseException):
    """A signal has arrived."""


def route(arguments: list[str]) -> NoReturn:
    """Run ``covey route``. Whatever prevents a decision, the process ends with EX_TEMPFAIL."""
    status = os.EX_TEMPFAIL
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _stop)
        from app.inbound import pipe  # noqa: PLC0415 - see above

        status = pipe.run(arguments)
    except BaseException as error:  # noqa: BLE001 - reported; the mail server keeps the message
        name = "" if type(error).__name__ in ("NotRoutedError", "ValueError") else f"{type(error).__name__}: "
        sys.stderr.write(f"covey: not routed, send the message again: {name}{error}\n")
        sys.stderr.flush()
    finally:
        # Nothing that happens at the end of an interpreter, or in the lines above, changes the status.
        os._exit(status)


def _stop(number: int, _frame: object) -> None:
    raise _StoppedError(f"stopped by signal {number}")


if __name__ == "__main__":
    main()
