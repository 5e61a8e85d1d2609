"""Measure how many bytes the database and the storage need for a routed message.

    python -m benchmarks.decision_bytes
    python -m benchmarks.decision_bytes --messages 2000 --per-day 10000

Trains an SVM on the training part of 20 Newsgroups, and routes messages of the test part into SQLite and into
PostgreSQL: as routers do by default, with stored explanations, and without text. Counts the decisions, their
labels, and all indexes of both. Prints the table of ``docs/background/capacity.md``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import in_process
import postgres
from message_routing import message_routing
from sqlalchemy import text

from app.context import AppContext
from app.db import schema
from app.db.session import Database
from app.maintenance.storage_setup import prepare_storage
from app.routing import service
from app.routing.kept_messages import OriginalMessage, pack
from app.routing.schemas import RouterPut
from app.settings import Settings
from app.storage import LocalStorage
from app.training import service as training
from app.training.schemas import TrainingJobCreate
from benchmarks.corpora import Json, records
from models.mail import read_message

VARIANTS: dict[str, tuple[bool, bool]] = {
    "by default": (True, False),
    "with `explain`": (True, True),
    "with `COVEY_KEEP_DECISION_TEXT=false`": (False, False),
}
"""Whether decisions store text, and whether they are explained."""

_POSTGRESQL = text("SELECT pg_total_relation_size('decisions') + pg_total_relation_size('decision_labels')")
_SQLITE = text(
    "SELECT sum(pgsize) FROM dbstat WHERE name IN "
    "(SELECT name FROM sqlite_schema WHERE tbl_name IN ('decisions', 'decision_labels'))"
)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_000, help="messages that are routed")
    parser.add_argument("--per-day", type=int, default=10_000, help="messages a day, for the year")
    arguments = parser.parse_args()
    tests = (row for row in records("20newsgroups") if row["split"] == "test")
    messages = [_raw(number, row) for number, row in enumerate(islice(tests, arguments.messages))]
    sizes: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for kind in ("sqlite", "postgresql"):
        with _context(kind) as ctx:
            _train(ctx)
            before = _bytes(ctx)
            for name, (keeps_text, explains) in VARIANTS.items():
                settings = ctx.settings.model_copy(update={"keep_decision_text": keeps_text})
                router = f"desk-{keeps_text}-{explains}"
                body = RouterPut(model="m", fallback="front-desk@example.org", explain=explains)
                service.put(ctx.db, router, body)
                with message_routing(replace(ctx, settings=settings)) as routing:
                    for raw in messages:
                        routing.route(router, read_message(raw), explain=None)
                after = _bytes(ctx)
                sizes[name].append((after - before) / len(messages))
                before = after
    kept = [len(pack(OriginalMessage("message/rfc822", raw), "messages/x", None)) for raw in messages]
    year = 365 * arguments.per_day
    print(f"| a decision, in bytes | SQLite | PostgreSQL | a year of {arguments.per_day:,} a day |")
    print("|---|---|---|---|")
    for name, (sqlite, postgresql) in sizes.items():
        largest = max(sqlite, postgresql) * year / 1e9
        print(f"| {name} | {sqlite:,.0f} | {postgresql:,.0f} | {largest:.1f} GB |")
    mean = sum(kept) / len(kept)
    print(f"\nA kept message of {sum(map(len, messages)) / len(messages):,.0f} bytes takes {mean:,.0f}.")


def _raw(number: int, row: Json) -> bytes:
    """Return a message; the texts of the corpus begin with From and Subject."""
    return f"Message-ID: <{number:024x}@mail.example.org>\n{row['text']}".encode()


def _train(ctx: AppContext) -> None:
    rows = [row for row in records("20newsgroups") if row["split"] == "train"]
    body = {"model": "m", "dataset_id": in_process.dataset(ctx, rows), "learner": {"algorithm": "svm"}}
    training.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)


@contextmanager
def _context(kind: str) -> Iterator[AppContext]:
    """Return the context of a service with an empty database of a kind."""
    with tempfile.TemporaryDirectory() as folder, postgres.server() as server:
        settings = Settings(data_dir=Path(folder), database_url=server.create() if kind != "sqlite" else "")
        database = Database(settings.resolved_database_url())
        ctx = AppContext(settings, database, LocalStorage(Path(folder) / "storage"), in_process.NoRelay())
        try:
            schema.migrate(ctx.db.engine)
            prepare_storage(ctx.db, ctx.storage)
            yield ctx
        finally:
            ctx.close()


def _bytes(ctx: AppContext) -> int:
    """Return the size of decisions and their labels, with all indexes."""
    with ctx.db.autocommit() as connection:
        if ctx.db.engine.dialect.name == "sqlite":
            return int(connection.execute(_SQLITE).scalar_one() or 0)
        connection.execute(text("VACUUM decisions, decision_labels"))
        return int(connection.execute(_POSTGRESQL).scalar_one())


if __name__ == "__main__":
    main()
