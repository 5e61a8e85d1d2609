"""Webhooks reach no address that only the network of the service can reach."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest
from in_process_api import InProcessApi

from app.api.idempotency import NOT_IDEMPOTENT
from app.errors import Invalid
from app.webhooks import service as webhooks
from app.webhooks.addresses import is_public, literal_address
from app.webhooks.schemas import WebhookCreate

PRIVATE = [
    *(
        "127.0.0.1",
        "127.255.0.1",
        "0.0.0.0",  # noqa: S104 - an address to refuse
        "10.0.0.1",
        "172.16.9.9",
        "192.168.1.1",
        "100.64.0.1",
    ),
    *("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "::1", "::", "fe80::1", "fe80::1%1", "fc00::1", "fd00:ec2::254", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_recognized(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:93.184.215.14"])
def test_public_addresses_are_recognized(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "127.0.0.1", "10.1", "0"])
def test_an_address_is_read_as_the_resolver_of_the_system_reads_it(host: str) -> None:
    assert literal_address(host) == socket.inet_ntoa(socket.inet_aton(host))


@pytest.mark.parametrize("host", ["example.org", "1.2.3.4.5", "256.1.1.1", "127.0.0.x", "", "0xyz", "1_0.1"])
def test_a_name_is_no_address(host: str) -> None:
    assert literal_address(host) is None


def test_a_url_with_a_private_address_is_refused_unless_a_setting_allows_it(service: InProcessApi) -> None:
    assert service.ctx.settings.webhooks_allow_private
    strict = replace(
        service.ctx, settings=service.ctx.settings.model_copy(update={"webhooks_allow_private": False})
    )
    hosts = ["127.0.0.1", "[::1]:8443", "localhost", "0x7f.1", "10.1", "169.254.169.254"]
    for host in hosts:
        body = WebhookCreate(url=f"https://{host}/x", events=["job.ended"])
        assert webhooks.create(service.ctx, body, NOT_IDEMPOTENT).url == body.url
        with pytest.raises(Invalid, match="COVEY_WEBHOOKS_ALLOW_PRIVATE") as refused:
            webhooks.create(strict, body, NOT_IDEMPOTENT)
        assert [pointer for pointer, _ in refused.value.errors] == ["/url"]
    public = WebhookCreate(url="https://hooks.example.org/x", events=["job.ended"])
    assert webhooks.create(strict, public, NOT_IDEMPOTENT).url == public.url
