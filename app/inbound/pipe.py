"""``covey route``: routes one message from standard input, for the pipes of mail servers.

This module and what it imports needs the standard library only, since a process starts for each message.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal

from app.inbound.mail_headers import add_fields, decision_fields, field_lines
from app.inbound.routed_message import RoutedMessage
from app.inbound.service_client import (
    KEY_VARIABLE,
    LOCAL_URL,
    TIMEOUT_SECONDS,
    URL_VARIABLE,
    NotRoutedError,
    RouterClient,
    read_key,
)

EX_TEMPFAIL = os.EX_TEMPFAIL
"""Exit status after which a mail server keeps the message and tries again (``sysexits.h``)."""

Output = Literal["json", "headers", "message"]

DESTINATIONS = "%destinations"
"""Word of a command that stands for all destinations of the message, each as a word of its own.

It has no braces, because Postfix removes those around an argument.
"""

DESCRIPTION = """\
Route the message on standard input, and write the decision as JSON.

If there is no decision, whatever the reason, the exit status is 75 (EX_TEMPFAIL) and nothing is written: a
mail server then keeps the message and tries again. With a command, the exit status is that of the command.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    options = argparse.ArgumentParser(
        "covey route",
        description=DESCRIPTION,
        allow_abbrev=False,
        formatter_class=partial(argparse.HelpFormatter, width=110),  # to find the width, it imports shutil
    )
    options.add_argument("--router", required=True, metavar="text", help="Name of the router.")
    options.add_argument(
        "--url",
        metavar="text",
        default=os.environ.get(URL_VARIABLE) or LOCAL_URL,
        help=f"URL of the service. Variable: `{URL_VARIABLE}`. Default: `{LOCAL_URL}`.",
    )
    options.add_argument(
        "--key-file",
        metavar="path",
        type=Path,
        help=f"File that contains the API key. Default: the variable `{KEY_VARIABLE}`.",
    )
    output = options.add_mutually_exclusive_group()
    output.add_argument(
        "--add-headers", action="store_true", help="Write the message with the header fields of the decision."
    )
    output.add_argument(
        "--headers", action="store_true", help="Write only the header fields of the decision."
    )
    options.add_argument(
        "--review-to",
        metavar="text",
        help="Destination of messages that need a review, instead of those of the predicted departments.",
    )
    options.add_argument(
        "--timeout",
        metavar="number",
        type=float,
        default=TIMEOUT_SECONDS,
        help=f"Maximum time to wait, in seconds. Default: `{TIMEOUT_SECONDS}`.",
    )
    options.add_argument(
        "command",
        nargs="*",
        help="Command after `--` that gets the output as its input. The word %%destinations stands for the "
        "destinations of the message.",
    )
    return options


def run(arguments: Sequence[str]) -> int:
    """Run the command, and return its exit status.

    Raises:
        NotRoutedError: there is no decision.
        ValueError: an option has a wrong value.
    """
    try:
        options = parser().parse_args(arguments)
    except SystemExit as ended:  # the status is 0 after --help only
        return EX_TEMPFAIL if ended.code else 0
    output: Output = "message" if options.add_headers else "headers" if options.headers else "json"
    client = RouterClient(options.url, options.router, read_key(options.key_file), options.timeout)
    return route(client, sys.stdin.buffer, sys.stdout.buffer, output, options.command, options.review_to)


def route(
    client: RouterClient,
    source: BinaryIO,
    target: BinaryIO,
    output: Output,
    command: Sequence[str],
    review_to: str | None = None,
) -> int:
    """Route the message of a stream. Write the result to another one, or to the input of a command.

    Args:
        client: the service and the router.
        source: the raw message.
        target: receives the result if there is no command.
        output: the result: the decision as JSON or as header fields, or the message with these fields.
        command: a command to run with the result as its standard input; empty for none.
        review_to: the destination of messages that need a review; None: those of the departments.

    Returns:
        The exit status: 0, or that of the command.

    Raises:
        NotRoutedError: there is no decision, or the command does not run. Nothing was written.
    """
    message = source.read()
    decision = client.route(message).with_review_to(review_to)
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
    import subprocess

    try:
        status = subprocess.run(command, input=result, stdout=sys.stderr, check=False).returncode
    except OSError as error:
        raise NotRoutedError(f"{command[0]} does not run: {error.strerror}") from error
    # A command that a signal ended may have done nothing.
    return EX_TEMPFAIL if status < 0 else status
