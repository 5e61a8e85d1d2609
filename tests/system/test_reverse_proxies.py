"""nginx and Caddy with the files of ``deploy`` in front of a service that is used over TLS."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import required
from certificates import write_certificate
from production import free_port
from stack import BYTES, Stack, departments
from waiting import LIMIT_SECONDS, wait_for

from app.console.sessions import COOKIE
from app.server.parent_death import end_with_parent

DEPLOY = Path(__file__).parents[2] / "deploy"
PREFIX = "/tools/covey"


@contextmanager
def running(command: list[str], port: int, log: Path, **variables: str) -> Iterator[None]:
    """Run a proxy in the foreground while the block lasts."""
    if (program := shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin")) is None:
        required.missing(f"{command[0]} is not installed (on Debian: nginx-light and caddy)")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **variables},
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - calls nothing that takes a lock
        )

    def listens() -> bool | None:
        assert process.poll() is None, log.read_text()
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return None

    try:
        wait_for(listens, what=command[0])
        yield
    finally:
        process.terminate()
        process.wait(LIMIT_SECONDS)


@contextmanager
def nginx(folder: Path, service: str, prefix: str) -> Iterator[httpx.Client]:
    """Run nginx with the files of ``deploy``; yields a client of it."""
    shutil.copytree(DEPLOY / "nginx/snippets", folder / "snippets")
    port, certificate = free_port(), write_certificate(folder, "localhost")
    site = (DEPLOY / "nginx/conf.d/covey.conf").read_text()
    for written, here in {
        "127.0.0.1:8000": service,
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/covey.pem": str(certificate),
        "/etc/ssl/private/covey.key": str(certificate),
    }.items():
        assert site.count(written) == 1
        site = site.replace(written, here)
    if prefix:  # the server of something else
        site = re.sub(
            r' *set \$covey_prefix "";\n.*?(?=^})',
            "    include snippets/covey-below-path.conf;\n",
            site,
            flags=re.DOTALL | re.MULTILINE,
        )
    (folder / "nginx.conf").write_text(
        f"pid nginx.pid; daemon off; master_process off; events {{}}\nhttp {{ access_log off;\n{site}}}\n"
    )
    command = ["nginx", "-p", str(folder), "-c", "nginx.conf", "-e", "stderr"]
    with running(command, port, folder / "log"), client(f"https://localhost:{port}", certificate) as http:
        yield http


@contextmanager
def caddy(folder: Path, service: str, prefix: str) -> Iterator[httpx.Client]:
    """Run Caddy with the files of ``deploy`` and a certificate of its own; yields a client of it."""
    port = free_port()
    file = DEPLOY / "caddy" / ("below-path.Caddyfile" if prefix else "Caddyfile")
    no_root = "{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n}\n"
    (folder / "Caddyfile").write_text(no_root + file.read_text())
    site = f"https://localhost:{port}"
    command = ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    home = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    root = folder / "caddy/pki/authorities/local/root.crt"
    with running(command, port, folder / "log", SITE=site, API=service, **home):
        wait_for(lambda: root.exists() or None, what="the certificate")
        with client(site, root) as http:
            wait_for(lambda: has_certificate(http), what="the certificate of the site")
            yield http


def has_certificate(http: httpx.Client) -> bool | None:
    """Return whether the proxy completes a TLS handshake."""
    with suppress(httpx.ConnectError):
        http.get("/")
        return True
    return None


def client(url: str, certificate: Path) -> httpx.Client:
    """Return a client that trusts only this certificate."""
    context = ssl.create_default_context(cafile=str(certificate))
    return httpx.Client(base_url=url, verify=context, timeout=LIMIT_SECONDS, trust_env=False)


PROXIES = {"nginx": nginx, "caddy": caddy}


@pytest.mark.parametrize("prefix", ["", PREFIX], ids=["a site", "below a path"])
@pytest.mark.parametrize("proxy", PROXIES)
def test_a_proxy_with_the_file_of_the_repository_serves_everything_over_tls(
    secured_stack: tuple[Stack, str], tmp_path: Path, proxy: str, prefix: str
) -> None:
    stack, secret = secured_stack
    key = {"Authorization": f"Bearer {secret}"}
    with PROXIES[proxy](tmp_path, stack.url.removeprefix("http://"), prefix) as http:

        def send(
            method: str, path: str, headers: Mapping[str, str] = key, **options: object
        ) -> httpx.Response:
            return http.request(method, prefix + path, headers=headers, **options)  # type: ignore[arg-type]

        _sign_in(http, prefix, secret)
        for path in ("/metrics", "/health/ready"):
            assert send("GET", path).status_code == 404

        created = send("POST", "/v1/datasets", json={"name": "proxy"})
        location = f"/v1/datasets/{created.json()['id']}"
        assert created.headers["Location"] == prefix + location
        rows = departments(40)
        rows[0]["text"] += " word" * 190_000
        rows[1]["text"] += " word" * 190_000  # together more than nginx accepts without a setting
        content = "".join(f"{json.dumps(row)}\n" for row in rows)
        assert send("PUT", f"{location}/content", {**key, **BYTES}, content=content).status_code == 202

        def ended() -> str | None:
            state: str = send("GET", location).json()["state"]
            return state if state in ("ready", "failed") else None

        assert wait_for(ended, what="the data set") == "ready"

        hold = stack.hold()
        job = {
            "dataset_id": created.json()["id"],
            "model": f"proxy-{proxy}",
            "learner": {"algorithm": "mp_boost", "rounds": 3},
            "decision": {"kind": "sign"},
        }
        started = send("POST", "/v1/training-jobs", json=job)
        assert started.status_code == 202, started.text
        stream = {**key, "Accept": "text/event-stream"}
        path = f"{prefix}{started.headers['Location'].removeprefix(prefix)}/events"
        with hold, http.stream("GET", path, headers=stream) as events:
            lines = events.iter_lines()
            assert next(line for line in lines if line.startswith("data:"))  # the job has not ended
            hold.release()
            assert any("succeeded" in line for line in lines)


def _sign_in(http: httpx.Client, prefix: str, secret: str) -> None:
    """Sign in to the console as a browser does: the cookie is for TLS, and redirects stay on this server."""
    first = http.get(f"{prefix}/console/models", headers={"X-Forwarded-Prefix": "/wrong"})
    page = first.headers["Location"]
    assert page.startswith(f"{prefix}/console/sign-in?next=")
    form = {"key": secret, "next": f"{prefix}/console/models"}
    origin = str(http.base_url).rstrip("/")
    # A client that writes the headers of proxies itself must change nothing.
    headers = {"Origin": origin, "X-Forwarded-Proto": "http", "X-Forwarded-Prefix": "/wrong"}
    signed_in = http.post(page.partition("?")[0], data=form, headers=headers)
    assert signed_in.headers["Location"] == f"{prefix}/console/models"
    assert f"Path={prefix or '/'};" in signed_in.headers["Set-Cookie"]
    assert "Secure" in signed_in.headers["Set-Cookie"]
    assert COOKIE in http.cookies
    assert http.get(f"{prefix}/console/models").status_code == 200
