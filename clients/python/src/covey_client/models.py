"""The bodies of requests and responses, as the generator makes them from openapi.json."""

from covey_client.generated.models import *  # noqa: F403 - the generator lists the names in __all__
