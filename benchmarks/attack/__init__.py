r"""Abuse tests against a real service: hostile input, races, and dependencies that are slow or away.

Each file is about one area. An attack is a generator function with the decorator ``attack``. It does
something to a service of ``Targets``, measures the cost, and yields a ``Result`` for each statement that
must hold:

    @attack("a long run of combining marks")
    def marks(targets: Targets) -> Iterator[Result]:
        body = {"instances": [{"text": "a" + "\u0301\u0316" * 100_000}]}
        with targets.shared.watched() as cost:
            response = targets.shared.post(PREDICT, json=body)
        yield expect("status", response.status_code, 200)
        yield at_most("CPU time of the API", cost.cpu_seconds, 2.0, "s")

An exception is a regression, too. An attack must leave the shared service as it found it: it deletes what it
creates, or uses names of its own. Attacks that change settings or break something start their own service:
``targets.new(...)``, ``targets.with_postgres(...)`` or ``targets.with_dependencies(...)``.

``short=True`` marks the attacks that ``make test-faults`` runs: they cost at most a second or two of CPU time
on the shared service, and their bounds do not depend on the speed of the machine.

To add an attack, write the function in the file of its area. To add a file, name it in ``AREAS``.
"""

from __future__ import annotations

from importlib import import_module

from benchmarks.attack.harness import ATTACKS, Attack

AREAS = (
    "text",
    "requests",
    "event_loop",
    "http_edges",
    "providers",
    "artifacts",
    "keys",
    "connections",
    "races",
    "queue",
    "queries",
    "decisions",
    "learners",
    "broker",
    "storage",
    "database",
    "mailbox",
    "mail_path",
)


def all_attacks() -> list[Attack]:
    """Return all attacks, in the order of the areas."""
    for area in AREAS:
        import_module(f"benchmarks.attack.{area}")
    return list(ATTACKS.values())
