"""The proxy that injects faults into connections does what it says."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import fault_proxy
import pytest
from waiting import LIMIT_SECONDS, wait_for


@pytest.fixture
def echo() -> Iterator[tuple[str, int]]:
    """A server that returns what it receives."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve(connection: socket.socket) -> None:
            with connection, suppress(ConnectionResetError):
                while data := connection.recv(65536):
                    connection.sendall(data)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: tuple[str, int]) -> Iterator[fault_proxy.FaultProxy]:
    with fault_proxy.proxy(echo) as proxy:
        yield proxy


def connect(proxy: fault_proxy.FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=LIMIT_SECONDS)


def test_a_healthy_proxy_transfers_everything_in_order(proxy: fault_proxy.FaultProxy) -> None:
    sent = bytes(range(256)) * 4096
    with connect(proxy) as client:

        def send() -> None:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)

        sending = threading.Thread(target=send)
        sending.start()
        received = b"".join(iter(lambda: client.recv(65536), b""))
        sending.join()
    assert received == sent


def test_delays_hold_back_every_request_and_do_not_add_up(proxy: fault_proxy.FaultProxy) -> None:
    proxy.delay(0.3)
    with connect(proxy) as client:
        began = time.monotonic()
        for _ in range(4):
            client.sendall(b"x")
            time.sleep(0.05)
        received = b""
        while len(received) < 4:
            received += client.recv(4)
        assert time.monotonic() - began >= 0.45  # the last was sent after 0.15 s
        proxy.heal()
        client.sendall(b"y")
        assert client.recv(1) == b"y"


def test_a_mute_proxy_accepts_and_transfers_nothing_until_it_heals(proxy: fault_proxy.FaultProxy) -> None:
    with connect(proxy) as open_before:
        open_before.sendall(b"x")
        assert open_before.recv(1) == b"x"
        proxy.mute()
        with connect(proxy) as opened_later:
            for client in (open_before, opened_later):
                client.sendall(b"y")
                client.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    client.recv(1)
                client.settimeout(LIMIT_SECONDS)
            proxy.heal()
            assert open_before.recv(1) == b"y"
            assert opened_later.recv(1) == b"y"


def test_a_refusing_proxy_resets_and_refuses_connections_until_it_heals(
    proxy: fault_proxy.FaultProxy,
) -> None:
    with connect(proxy) as client:
        client.sendall(b"x")
        assert client.recv(1) == b"x"
        proxy.refuse()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.heal()
    with connect(proxy) as client:
        client.sendall(b"x")
        assert client.recv(1) == b"x"
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    wait_for(lambda: proxy.connections() == 0 or None, what="the connections to end")
    assert proxy.accepted() == 2
