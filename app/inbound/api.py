"""HTTP routes that e-mail providers call when they have received a message.

They need no API key: the provider signs its requests, or knows a password. They are not in the OpenAPI
document, because their bodies belong to the providers, and no client of this service sends them.
"""

from __future__ import annotations

from app.api.base_route import resource
from app.api.direct_routes import Direct, DirectRequest
from app.api.request_head import refuse_encoding
from app.api.schemas import RouterName
from app.errors import TooLarge
from app.inbound import service
from app.inbound.providers.delivery import Provider
from app.inbound.providers.table import PROVIDERS
from app.inbound.schemas import Receipt

router = resource("routers")


def _add_route(provider: Provider) -> None:
    async def receive(request: Direct, name: RouterName) -> Receipt:
        verify = provider.check_head(request.context.settings, request.head, name)
        refuse_encoding(request.head)
        body = await _body(request, provider.max_bytes)
        return await service.receive(request.context, request.state.message_router, name, body, verify)

    router.add_api_route(
        f"/routers/{{name}}/inbound/{provider.path}",
        receive,
        methods=["POST"],
        name=f"receive_{provider.name}",
        include_in_schema=False,
        openapi_extra={"requestBody": {"content": {kind: {} for kind in sorted(provider.media_types)}}},
    )


async def _body(request: DirectRequest, limit: int | None) -> bytes:
    if limit is None:
        return await request.body()
    body, truncated = await request.body_up_to(limit)
    if truncated:
        raise TooLarge(f"the request's body is larger than the limit of {limit:,} bytes")
    return body


for _provider in PROVIDERS:
    _add_route(_provider)
