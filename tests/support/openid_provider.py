"""An OpenID provider on loopback: a page to log in, codes with PKCE, and ID tokens that a test can forge."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "covey", "s3cret"

LOGIN_PAGE = """<!doctype html><title>Log in</title><h1>Example login</h1>
<form method="post" action="/login"><input type="hidden" name="query" value="{query}">
<label>User <input name="user" autofocus></label><button>Log in</button></form>"""


def new_key(kid: str) -> RSAKey:
    """Return a new key for signatures."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"}, auto_kid=False)


@dataclass
class Provider:
    """The state of the provider.

    Attributes:
        issuer: its URL.
        people: the claims of people by their names for the login.
        key: signs ID tokens; ``/jwks`` has its public part.
        sign: makes the ID token of claims; a test replaces it to forge tokens.
        is_down: whether every response has the status 500.
        paths: the paths of all requests.
    """

    issuer: str = ""
    people: dict[str, dict[str, Any]] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: new_key("one"))
    sign: Callable[[dict[str, Any]], str] = lambda _claims: ""
    is_down: bool = False
    paths: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def signed(self, claims: dict[str, Any], key: RSAKey | None = None) -> str:
        """Return an ID token with the signature of the provider, or of another key."""
        key = key or self.key
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)

    def metadata(self) -> dict[str, Any]:
        """Return the description of the provider."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }

    def log_in(self, query: dict[str, str], user: str) -> str:
        """Return where a person goes who has logged in: back to the service with a code."""
        assert query["client_id"] == CLIENT_ID
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self._codes[code] = {**query, "user": user}
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        """Return the tokens for a code, which works once; otherwise an error."""
        credentials = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if authorization != f"Basic {credentials}":
            return {"error": "invalid_client"}
        login = self._codes.pop(form["code"], None)
        challenge = hashlib.sha256(form["code_verifier"].encode()).digest()
        if (
            login is None
            or login["redirect_uri"] != form["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != login["code_challenge"]
        ):
            return {"error": "invalid_grant"}
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": f"id-of-{login['user']}",
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": login["nonce"],
            **self.people[login["user"]],
        }
        return {"access_token": "unused", "token_type": "Bearer", "id_token": self.sign(claims)}


@contextmanager
def openid_provider() -> Iterator[Provider]:
    """Run a provider until the block ends."""
    state = Provider()
    state.sign = state.signed

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            state.paths.append(url.path)
            if url.path == "/.well-known/openid-configuration":
                self.respond(json.dumps(state.metadata()))
            elif url.path == "/jwks":
                self.respond(json.dumps({"keys": [state.key.as_dict(private=False)]}))
            else:
                query = url.query.replace("&", "&amp;")
                self.respond(LOGIN_PAGE.format(query=query), kind="text/html")

        def do_POST(self) -> None:
            state.paths.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = dict(parse_qsl(body, keep_blank_values=True))
            if self.path == "/token":
                tokens = state.token(form, self.headers.get("Authorization", ""))
                self.respond(json.dumps(tokens), status=400 if "error" in tokens else 200)
                return
            query = {name: values[0] for name, values in parse_qs(form["query"]).items()}
            self.send_response(302)
            self.send_header("Location", state.log_in(query, form["user"]))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def respond(self, text: str, *, status: int = 200, kind: str = "application/json") -> None:
            content = text.encode()
            self.send_response(500 if state.is_down else status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
