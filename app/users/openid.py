"""Sign people in with OpenID Connect: the authorization code flow with PKCE, state and nonce.

The service imports this module only if an issuer is set. It trusts nothing but the address of the issuer: the
provider's metadata must name the same issuer, and an ID token must have the signature of one of its keys.

The secret of an attempt to sign in is in a cookie of the browser that began it. State, nonce and code
verifier follow from it, so a response of the provider is worth nothing in another browser, nor a second time,
because the cookie is then gone.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import httpx
import structlog
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from app.errors import Forbidden, NotReady
from app.keys.service import digest
from app.settings import Settings
from app.users.identity import Identity, identity_of

log = structlog.get_logger()

TIMEOUT_SECONDS = 10.0
"""Maximum time of one request to the provider."""

MAX_BYTES = 1024 * 1024
"""Maximum size of a response of the provider."""

CACHE_SECONDS = 3600.0
"""How long metadata and keys of the provider are used."""

MIN_REFRESH_SECONDS = 10.0
"""Minimum age of the keys at which a token with an unknown key leads to a request for new ones."""

LEEWAY_SECONDS = 60
"""Maximum difference between the clocks of the service and the provider."""

ALGORITHMS = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
]
"""Signatures that are accepted. All are asymmetric: no client can make them."""

_SUBJECT = re.compile(r"[ -~]{1,255}")
"""The id of a person, as the specification limits it."""


class OpenIdProvider:
    """The OpenID provider of the settings. Its metadata and keys are kept in memory for a while.

    Args:
        settings: the issuer, and what the provider knows of this service.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._metadata: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    @staticmethod
    def state(secret: str) -> str:
        """Return the state of an attempt, which the provider sends back."""
        return digest(f"state {secret}")

    async def authorization_url(self, secret: str, redirect_uri: str) -> str:
        """Return the address at the provider where a person signs in.

        Args:
            secret: the secret of the attempt.
            redirect_uri: where the provider sends the person afterwards.

        Raises:
            NotReady: the provider is unavailable.
        """
        metadata = await self._discover()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(_verifier(secret).encode()).digest())
        query = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": redirect_uri,
            "scope": "openid email profile",
            "state": self.state(secret),
            "nonce": _nonce(secret),
            "code_challenge": challenge.rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        endpoint = metadata["authorization_endpoint"]
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    async def identify(self, secret: str, code: str, redirect_uri: str) -> Identity:
        """Return the person who has signed in.

        Args:
            secret: the secret of the attempt.
            code: what the provider has sent with the person.
            redirect_uri: as in ``authorization_url``.

        Raises:
            NotReady: the provider is unavailable.
            Forbidden: the provider does not accept the code, or its ID token is not valid.
        """
        metadata = await self._discover()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": _verifier(secret),
            "client_id": self._settings.oidc_client_id,
        }
        auth: httpx.Auth | None = None
        if client_secret := self._settings.oidc_client_secret.get_secret_value():
            methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
            if "client_secret_basic" in methods:
                auth = httpx.BasicAuth(self._settings.oidc_client_id, client_secret)
            else:
                form["client_secret"] = client_secret
        response = await self._request("POST", metadata["token_endpoint"], data=form, auth=auth)
        id_token = response.get("id_token")
        if not isinstance(id_token, str):
            raise _failed(f"the token endpoint says {response.get('error', 'nothing')!s:.100}")
        try:
            token = await self._decode(id_token)
            self._claims(_nonce(secret)).validate(token.claims)
            if not _SUBJECT.fullmatch(token.claims["sub"]):
                raise ValueError("the claim sub is too long, or not ASCII")
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise _failed(f"the ID token is not valid: {error!s:.200}") from error
        return identity_of(token.claims, self._settings.oidc_claim)

    def _claims(self, nonce: str) -> jwt.JWTClaimsRegistry:
        client_id = self._settings.oidc_client_id
        return jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self._settings.oidc_issuer},
            sub={"essential": True},
            aud={"essential": True, "value": client_id},
            azp={"value": client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )

    async def _decode(self, id_token: str) -> jwt.Token:
        """Verify the signature of a token. If its key is unknown, the provider may have new ones."""
        registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        try:
            return jwt.decode(id_token, await self._key_set(CACHE_SECONDS), registry=registry)
        except InvalidKeyIdError:
            return jwt.decode(id_token, await self._key_set(MIN_REFRESH_SECONDS), registry=registry)

    async def _discover(self) -> Mapping[str, Any]:
        if self._metadata is None or time.monotonic() - self._metadata[0] > CACHE_SECONDS:
            issuer = self._settings.oidc_issuer
            url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            metadata = await self._request("GET", url)
            endpoints = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            if metadata.get("issuer") != issuer or not all(
                isinstance(metadata.get(name), str) for name in endpoints
            ):
                raise _unavailable(f"{url} describes the issuer {metadata.get('issuer')!s:.200}")
            self._metadata = time.monotonic(), metadata
        return self._metadata[1]

    async def _key_set(self, max_age: float) -> KeySet:
        if self._keys is None or time.monotonic() - self._keys[0] > max_age:
            keys = await self._request("GET", (await self._discover())["jwks_uri"])
            self._keys = time.monotonic(), KeySet.import_key_set({"keys": keys.get("keys", [])})
        return self._keys[1]

    async def _request(self, method: str, url: str, **options: Any) -> dict[str, Any]:
        """Return the JSON object of a response, also of one that rejects the request.

        Raises:
            NotReady: there is no such response in time.
        """
        content = bytearray()
        try:
            async with (
                asyncio.timeout(TIMEOUT_SECONDS),
                httpx.AsyncClient(headers={"Accept": "application/json"}, timeout=TIMEOUT_SECONDS) as http,
                http.stream(method, url, **options) as response,
            ):
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > MAX_BYTES:
                        raise _unavailable(f"{url} sends more than {MAX_BYTES:,} bytes")
                if response.status_code >= 500 or (method == "GET" and response.status_code != 200):
                    raise _unavailable(f"{url} responds with status {response.status_code}")
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            raise _unavailable(f"{url}: {str(error) or type(error).__name__}") from error
        try:
            found = httpx.Response(200, content=bytes(content)).json()
        except ValueError as error:
            raise _unavailable(f"{url} sends no JSON") from error
        if not isinstance(found, dict):
            raise _unavailable(f"{url} sends no JSON object")
        return found


def _nonce(secret: str) -> str:
    return digest(f"nonce {secret}")


def _verifier(secret: str) -> str:
    return digest(f"verifier {secret}")


def _unavailable(reason: str) -> NotReady:
    log.warning("sign_in.provider_unavailable", reason=reason)
    return NotReady("the identity provider does not respond as it should; try again later", retry_after=10)


def _failed(reason: str) -> Forbidden:
    log.warning("sign_in.rejected", reason=reason)
    return Forbidden("the identity provider did not confirm who you are; sign in again")
