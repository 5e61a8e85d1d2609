"""``covey smtp``: a content filter that routes messages and hands them on to the next mail server."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address

import structlog

from app.inbound.monitor import Monitor
from app.inbound.smtp.async_client import AsyncRouterClient
from app.inbound.smtp.filtered_message import MessageFilter, WhenUnavailable
from app.inbound.smtp.next_hop import Address
from app.inbound.smtp.protocol import FilterProtocol, FilterState, LmtpFilterProtocol

MAX_CONNECTIONS = 200
"""How many clients can be connected at the same time."""

STOP_SECONDS = 60.0
"""How long a filter that stops waits for the messages in progress."""

log = structlog.get_logger(__name__)


class ListenError(Exception):
    """The filter cannot or must not listen on an address."""


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Options of a filter.

    Attributes:
        listen: the address to listen on, and whether to speak LMTP there.
        next_hop: the server that gets the messages.
        clients: networks of the clients that may connect, in addition to this machine.
        when_unavailable: what to do with a message that cannot be routed.
        max_bytes: maximum size of a message.
        review_to: the destination of messages that need a review; None: those of the departments.
        max_messages: how many messages are routed at the same time, and how many long ones are in memory.
    """

    listen: Address
    next_hop: Address
    clients: Sequence[IPv4Network | IPv6Network] = ()
    when_unavailable: WhenUnavailable = "retry"
    max_bytes: int = 32 * 2**20
    max_messages: int = 10
    review_to: str | None = None


class FilterServer:
    """A content filter. Create it in an event loop.

    Args:
        options: the options.
        message_filter: routes the messages.
        monitor: counts the messages.
    """

    def __init__(self, options: FilterOptions, message_filter: MessageFilter, monitor: Monitor) -> None:
        self._listen = options.listen
        self._state = FilterState(
            options.next_hop,
            message_filter,
            monitor,
            options.clients,
            options.max_bytes,
            asyncio.Semaphore(options.max_messages),
            asyncio.Semaphore(options.max_messages),
            MAX_CONNECTIONS,
        )
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        """Accept connections, and return the address with the port that was chosen for port 0.

        Raises:
            ListenError: the address is not local and no clients are allowed, or it is not available.
        """
        listen = self._listen
        loop = asyncio.get_running_loop()
        protocol = LmtpFilterProtocol if listen.lmtp else FilterProtocol

        def connection() -> FilterProtocol:
            return protocol(self._state)

        try:
            if listen.host.startswith("/"):
                self._server = await loop.create_unix_server(connection, listen.host)
                return listen
            if not self._state.clients and not await _is_loopback(listen):
                # The next hop trusts the filter, so the filter must not serve all clients.
                raise ListenError(f"{listen} is not local; name the clients with --allow-client")
            self._server = await loop.create_server(connection, listen.host, listen.port)
        except OSError as error:
            raise ListenError(f"cannot listen on {listen}: {error.strerror or error}") from error
        return Address(listen.lmtp, listen.host, self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the connections, after the messages in progress were handed on."""
        self._state.stopping = True
        if self._server is not None:
            self._server.close()
        tasks = [task for connection in list(self._state.connections) if (task := connection.stop())]
        if tasks:
            _, unfinished = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in unfinished:
                log.warning("smtp.message_interrupted")
                task.cancel()
        await asyncio.gather(*self._state.closing)


async def _is_loopback(address: Address) -> bool:
    found = await asyncio.get_running_loop().getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    return all(ip_address(item[4][0]).is_loopback for item in found)


def serve(
    options: FilterOptions,
    url: str,
    router: str,
    key: str | None,
    timeout: float,
    monitor: Monitor,
    on_ready: Callable[[Address], None],
) -> None:
    """Filter messages until SIGTERM or SIGINT.

    Args:
        options: options of the filter.
        url: base URL of the service.
        router: name of the router.
        key: API key, if the service requires one.
        timeout: how long to wait for the service, in seconds.
        monitor: counts the messages.
        on_ready: called with the address as soon as connections are accepted.

    Raises:
        ListenError: the filter cannot or must not listen on the address.
    """
    # The warnings of aiosmtpd contain what clients send.
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    asyncio.run(_serve(options, url, router, key, timeout, monitor, on_ready))


async def _serve(
    options: FilterOptions,
    url: str,
    router: str,
    key: str | None,
    timeout: float,
    monitor: Monitor,
    on_ready: Callable[[Address], None],
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = AsyncRouterClient(url, router, key, timeout)
    message_filter = MessageFilter(client, router, options.when_unavailable, monitor, options.review_to)
    server = FilterServer(options, message_filter, monitor)
    try:
        address = await server.start()
        on_ready(address)
        await stop.wait()
        await server.stop()
    finally:
        await client.close()
