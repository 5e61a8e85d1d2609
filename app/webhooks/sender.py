"""Send events to their receivers over HTTP. ``deliveries`` says which, and when again.

One thread of a worker runs an event loop for all receivers. Each attempt has a time limit as a whole, each
webhook a number of attempts at the same time, and all of them another. So a receiver that is slow, or sends
its response byte by byte, delays no other receiver.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import structlog
from sqlalchemy.exc import SQLAlchemyError
from standardwebhooks import Webhook

from app.context import AppContext
from app.routing.message_cipher import UnknownKeyError
from app.version import __version__
from app.webhooks import deliveries
from app.webhooks.addresses import is_public
from app.webhooks.deliveries import Attempt, Outcome
from app.webhooks.secrets import revealed

log = structlog.get_logger()

ATTEMPT_SECONDS = 20.0
"""Time limit of an attempt, from the resolution of the name to the head of the response."""

CONNECT_SECONDS = 5.0
"""Time limit of a connection to one address."""

BODY_SECONDS = 2.0
"""Time for the beginning of a response, after its head."""

MAX_BODY_BYTES = 2_000
"""Number of bytes of a response that are recorded."""

MAX_ADDRESSES = 4
"""Maximum number of addresses of a name to which one attempt connects, one after the other."""

MAX_IN_FLIGHT = 100
"""Maximum number of attempts of one process at the same time."""

POLL_SECONDS = 1.0
"""Time between two looks for events while none is sent."""


class RefusedAddressError(OSError):
    """The name of a receiver resolves to an address that is not public."""


class WebhookSender:
    """Send the events of all webhooks.

    Args:
        ctx: the application context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._in_flight: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, stop: Callable[[], bool]) -> None:
        """Send events until ``stop`` returns True. Attempts that have begun then end first."""
        # The resolver of the system has no time limit, and must not keep others from their threads.
        with ThreadPoolExecutor(MAX_IN_FLIGHT, "webhook-dns") as resolvers:
            async with _client() as client:
                failing = False
                while not stop():
                    try:
                        await self._start(client, resolvers)
                        failing = False
                    except SQLAlchemyError as error:
                        if not failing:
                            log.warning("webhooks.unavailable", reason=type(error).__name__)
                        failing = True
                    await self._wait()
                if self._tasks:
                    await asyncio.wait(self._tasks)

    async def _start(self, client: httpx.AsyncClient, resolvers: ThreadPoolExecutor) -> None:
        await asyncio.to_thread(deliveries.queue_reviews, self._ctx.db)
        free = MAX_IN_FLIGHT - len(self._tasks)
        for attempt in await asyncio.to_thread(
            deliveries.claim_due, self._ctx.db, dict(self._in_flight), free
        ):
            self._in_flight[attempt.webhook_id] += 1
            task = asyncio.create_task(self._deliver(client, resolvers, attempt))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _wait(self) -> None:
        """Wait until it is time to look for events: soon after an attempt, because others may wait for it."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(POLL_SECONDS)

    async def _deliver(
        self, client: httpx.AsyncClient, resolvers: ThreadPoolExecutor, attempt: Attempt
    ) -> None:
        try:
            started = time.monotonic()
            outcome = await self._send(client, resolvers, attempt)
            log.info(
                "webhook.attempt",
                webhook_id=attempt.webhook_id,
                delivery_id=attempt.delivery_id,
                event_type=attempt.event,
                status=outcome.status,
                error=outcome.error,
                milliseconds=round((time.monotonic() - started) * 1000),
            )
            await asyncio.to_thread(deliveries.record, self._ctx.db, attempt, outcome)
        except SQLAlchemyError as error:  # the event is sent again when its claim ends
            log.warning("webhook.not_recorded", delivery_id=attempt.delivery_id, reason=type(error).__name__)
        finally:
            self._in_flight[attempt.webhook_id] -= 1
            if not self._in_flight[attempt.webhook_id]:
                del self._in_flight[attempt.webhook_id]

    async def _send(
        self, client: httpx.AsyncClient, resolvers: ThreadPoolExecutor, attempt: Attempt
    ) -> Outcome:
        try:
            url = httpx.URL(attempt.url)
            settings, webhook_id = self._ctx.settings, attempt.webhook_id
            secrets = [revealed(settings, webhook_id, secret) for secret in attempt.secrets]
            async with asyncio.timeout(ATTEMPT_SECONDS):
                addresses = await self._resolve(resolvers, url)
                response = await _post(client, url, addresses, replace(attempt, secrets=tuple(secrets)))
            body = await _beginning(response)
        except UnknownKeyError:
            return Outcome(None, "COVEY_ENCRYPTION_KEY of the worker lacks the key of the webhook's secret")
        except TimeoutError:
            return Outcome(None, f"there was no response within {ATTEMPT_SECONDS:.0f} s")
        except RefusedAddressError as error:
            return Outcome(None, str(error))
        except socket.gaierror:
            return Outcome(None, f"the name {url.host} cannot be resolved")
        except Exception as error:  # noqa: BLE001 - otherwise the event would be pending for ever
            return Outcome(None, _reason(error))
        return Outcome(response.status_code, _refusal(response.status_code), body)

    async def _resolve(self, resolvers: ThreadPoolExecutor, url: httpx.URL) -> list[str]:
        """Return the addresses of a host, after checking all of them.

        Raises:
            RefusedAddressError: one of them is not public, and the settings do not allow that.
            OSError: the name cannot be resolved.
        """
        found = await asyncio.get_running_loop().run_in_executor(resolvers, _addresses, url.host)
        if not self._ctx.settings.webhooks_allow_private:
            for address in found:
                if not is_public(address):
                    raise RefusedAddressError(
                        f"{url.host} has the address {address}, which does not belong to the public "
                        "internet; COVEY_WEBHOOKS_ALLOW_PRIVATE allows it"
                    )
        return found[:MAX_ADDRESSES]


def body_of(attempt: Attempt) -> bytes:
    """Return the body of the request that sends an event, as Standard Webhooks recommends it."""
    content = {
        "type": attempt.event,
        "timestamp": attempt.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "data": attempt.data,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def signed_headers(attempt: Attempt, at: datetime, body: bytes) -> dict[str, str]:
    """Return the headers that prove who has sent a request, and when (https://www.standardwebhooks.com).

    During a rotation there are two signatures, and the receiver knows the secret of either.
    """
    signatures = [Webhook(secret).sign(attempt.delivery_id, at, body.decode()) for secret in attempt.secrets]
    return {
        "webhook-id": attempt.delivery_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(
        # A proxy from the environment would resolve names itself.
        trust_env=False,
        verify=httpx.create_ssl_context(),  # SSL_CERT_FILE names other certificates of authorities
        follow_redirects=False,
        timeout=httpx.Timeout(ATTEMPT_SECONDS, connect=CONNECT_SECONDS),
        # A connection that is kept would not be checked again.
        limits=httpx.Limits(max_connections=MAX_IN_FLIGHT, max_keepalive_connections=0),
    )


def _addresses(host: str) -> list[str]:
    """Return the addresses of a host in the order in which the system prefers them."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _post(
    client: httpx.AsyncClient, url: httpx.URL, addresses: Sequence[str], attempt: Attempt
) -> httpx.Response:
    """Send an event to the first address that accepts a connection. Return the response, without its body.

    The request goes to the address that was checked. Its ``Host``, and the name in the certificate that the
    receiver must have, are those of the URL.
    """
    body = body_of(attempt)
    headers = {
        "Host": url.netloc.decode(),
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",  # the beginning of the response is recorded as it is
        "User-Agent": f"Covey/{__version__}",
        **signed_headers(attempt, datetime.now(UTC), body),
    }
    extensions: dict[str, Any] = {"sni_hostname": url.host}
    for number, address in enumerate(addresses, 1):
        request = client.build_request(
            "POST", url.copy_with(host=address), content=body, headers=headers, extensions=extensions
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if number == len(addresses):
                raise
            continue
        return response
    raise OSError("the name has no address")


async def _beginning(response: httpx.Response) -> str | None:
    """Return the first bytes of a response as text, and close it. The status counts, whatever follows it."""
    content = b""
    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(BODY_SECONDS):
            async for part in response.aiter_raw():
                content += part[: MAX_BODY_BYTES - len(content)]
                if len(content) == MAX_BODY_BYTES:
                    break
    with suppress(httpx.HTTPError):
        await response.aclose()
    text = content.decode(errors="replace")
    readable = (character if character.isprintable() or character == "\n" else " " for character in text)
    return "".join(readable).strip() or None


def _refusal(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"the receiver returned {status}, and redirects are not followed; use the final URL"
    return f"the receiver returned {status}"


def _reason(error: Exception) -> str:
    """Return one line about an error of the connection."""
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
