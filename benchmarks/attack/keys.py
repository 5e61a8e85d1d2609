"""API keys, and the service before the first key exists."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.attack.harness import MESSAGES, Result, Targets, attack, expect, holds

ADMIN = {"name": "first", "scopes": ["admin"]}


@attack("the deletion of the last key")
def last_key(targets: Targets) -> Iterator[Result]:
    """Delete the only key, which opened the service to everyone."""
    with targets.new() as service:
        key = service.stack.call("POST", "/v1/api-keys", 201, json=ADMIN)
        headers = {"Authorization": f"Bearer {key['secret']}"}
        yield expect("status without a key", service.get("/v1/models").status_code, 401)
        deleted = service.request("DELETE", f"/v1/api-keys/{key['id']}", headers=headers).status_code
        yield expect("status of the deletion", deleted, 204, 409)
        yield expect("status without a key afterwards", service.get("/v1/models").status_code, 401)
        yield expect("a new key without a key", service.post("/v1/api-keys", json=ADMIN).status_code, 401)


@attack("web pages that reach an open service", short=True)
def web_pages(targets: Targets) -> Iterator[Result]:
    """Send what a browser sends for a page of another site: after DNS rebinding, and across sites."""
    with targets.new() as service:  # a key that is made would close the shared service
        host = service.stack.url.removeprefix("http://")
        keys = "/v1/api-keys"
        hostile = {
            "a foreign host": {"Host": "attacker.example"},
            "a foreign host with the port": {"Host": "attacker.example:" + host.rpartition(":")[2]},
            "a foreign origin": {"Origin": "http://attacker.example"},
            "an opaque origin": {"Origin": "null"},
            "a page of another site": {"Sec-Fetch-Site": "cross-site"},
        }
        for name, headers in hostile.items():
            response = service.post(keys, json=ADMIN, headers=headers)
            yield holds(f"{name} is refused", 400 <= response.status_code < 500, response.status_code)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            response = service.post(
                keys, content=b'{"name": "x", "scopes": ["admin"]}', headers={"Content-Type": kind}
            )
            yield expect(f"status of a key as {kind}", response.status_code, 400, 403, 415)
            response = service.post(MESSAGES, content=b"Subject: x\r\n\r\nx", headers={"Content-Type": kind})
            yield expect(f"status of a message as {kind}", response.status_code, 400, 403, 415)
        friendly = {
            "localhost": {"Host": "localhost:" + host.rpartition(":")[2]},
            "its own page": {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"},
        }
        for name, headers in friendly.items():
            yield expect(f"status for {name}", service.get("/v1/models", headers=headers).status_code, 200)
        yield expect("status of the list of keys", service.get(keys).status_code, 200)
        if service.get(keys).status_code == 200:
            yield expect("keys that were made", service.stack.call("GET", keys, 200)["items"], [])
