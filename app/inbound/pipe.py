"""``covey route``: routes one message from standard input, for the pipes of mail servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import BinaryIO, Literal

from app.inbound.mail_headers import add_fields, decision_fields, field_lines
from app.inbound.routed_message import RoutedMessage
from app.inbound.service_client import NotRoutedError, RouterClient

EX_TEMPFAIL = os.EX_TEMPFAIL
"""Exit status after which a mail server keeps the message and tries again (``sysexits.h``)."""

Output = Literal["json", "headers", "message"]

DESTINATIONS = "%destinations"
"""Word of a command that stands for all destinations of the message, each as a word of its own.

It has no braces, because Postfix removes those around an argument.
"""


def route(
    client: RouterClient, source: BinaryIO, target: BinaryIO, output: Output, command: Sequence[str]
) -> int:
    """Route the message of a stream. Write the result to another one, or to the input of a command.

    Args:
        client: the service and the router.
        source: the raw message.
        target: receives the result if there is no command.
        output: the result: the decision as JSON or as header fields, or the message with these fields.
        command: a command to run with the result as its standard input; empty for none.

    Returns:
        The exit status: 0, or that of the command.

    Raises:
        NotRoutedError: there is no decision, or the command does not run. Nothing was written.
    """
    message = source.read()
    decision = client.route(message)
    result = _result(decision, message, output)
    if not command:
        target.write(result)
        target.flush()
        return 0
    return _run(_with_destinations(command, decision), result)


def _result(decision: RoutedMessage, message: bytes, output: Output) -> bytes:
    if output == "json":
        return decision.content + b"\n"
    fields = decision_fields(decision)
    return field_lines(fields) if output == "headers" else add_fields(message, fields)


def _with_destinations(command: Sequence[str], decision: RoutedMessage) -> list[str]:
    words: list[str] = []
    for word in command:
        words += decision.destinations if word == DESTINATIONS else [word]
    return words


def _run(command: Sequence[str], result: bytes) -> int:
    try:
        status = subprocess.run(command, input=result, stdout=sys.stderr, check=False).returncode
    except OSError as error:
        raise NotRoutedError(f"{command[0]} does not run: {error.strerror}") from error
    # A command that a signal ended may have done nothing.
    return EX_TEMPFAIL if status < 0 else status
