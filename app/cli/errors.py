"""The error that ends a command."""

from __future__ import annotations


class CommandError(RuntimeError):
    """A command cannot do its work; the message states the reason and what to do.

    Args:
        message: printed on standard error.
        exit_code: exit status of the command.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
