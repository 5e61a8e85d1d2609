"""Create the counters of routers before their first message."""

from __future__ import annotations

from app.metrics import create_router_counters
from app.serving.snapshot import Snapshot, version_references


def create_counters_of_routers(snapshot: Snapshot) -> None:
    """Create the counters of all routers of a snapshot, with the value 0."""
    for router in snapshot.routers.values():
        model = router.config["model"]
        versions = [snapshot.version(model, reference) for reference in version_references(router.config)]
        create_router_counters(router.name, model, [found.version for found in versions if found is not None])
