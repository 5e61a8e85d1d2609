"""Measure how routing changes as decisions accumulate in PostgreSQL.

    python -m benchmarks.decisions_growth
    python -m benchmarks.decisions_growth --rows 300000 3000000 --per-day 100000

Starts a PostgreSQL whose commits wait for the disk, and trains a model of 60 labels. For each number of rows,
it fills the table with copies of decisions that the service made itself, then measures the service's own
functions: routing a new message (prediction included), routing a message again, reading a decision and pages
of the newest ones, and deleting expired decisions. Prints the times;
``decision_bytes.py`` measures the sizes.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import in_process
import postgres
from message_routing import InProcessRouting, message_routing
from sqlalchemy import select, text

from app.api.paging import Page
from app.context import AppContext
from app.db import schema, tables
from app.db.session import Database, database_now
from app.maintenance import retention
from app.maintenance.storage_setup import prepare_storage
from app.routing import decisions, service
from app.routing.decision_search import DecisionFilter
from app.routing.schemas import RouterPut
from app.settings import Settings
from app.storage import LocalStorage
from app.training import service as training
from app.training.schemas import TrainingJobCreate
from models.mail import MailDocument, read_message

Item = TypeVar("Item")

N_LABELS = 60
TEMPLATES = 200
"""Number of real decisions that the table is filled with copies of."""

REPEATS = 300
EXPIRED_BATCHES = 20
DAYS = 30
"""Age of the oldest decision in the table."""

ROUTER = "desk"

OLD_ROWS = text(
    """
    INSERT INTO decisions (id, router_id, router, message_key, response, created_at)
    SELECT
        'dec_' || (
            SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> (45 - 5 * k)) & 31)::int + 1, 1), '' ORDER BY k)
            FROM generate_series(0, 9) AS k
        ) || substr(md5(n::text || 'id'), 1, 16),
        template.router_id, template.router, encode(sha256(n::text::bytea), 'hex'),
        template.response, to_timestamp(ms / 1000.0)
    FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n
    CROSS JOIN LATERAL (
        SELECT (extract(epoch FROM now()) * 1000 - :days * 86400000.0 * (1 - n / CAST(:total AS float)))::bigint AS ms
    ) AS times
    JOIN templates AS template ON template.number = n % :templates
    """  # noqa: E501 - SQL
)
"""Copies of the templates, evenly over the last days; ids begin with the time, as those of the service do."""


Times = tuple[float, float, float]
"""Fastest, median and 95th percentile in milliseconds."""


def main() -> None:
    """Measure at each number of rows, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000, 3_000_000])
    parser.add_argument("--per-day", type=int, default=100_000, help="decisions a day, for the year")
    arguments = parser.parse_args()
    sizes = sorted(arguments.rows)
    with postgres.server(durable=True) as server, tempfile.TemporaryDirectory() as folder:
        url = server.create()
        settings = Settings(data_dir=Path(folder), database_url=url)
        storage = LocalStorage(Path(folder) / "storage")
        ctx = AppContext(settings, Database(url), storage, in_process.NoRelay())
        try:
            schema.migrate(ctx.db.engine)
            prepare_storage(ctx.db, ctx.storage)
            make_router(ctx)
            with message_routing(ctx) as routing:
                make_templates(ctx, routing)
                results: dict[int, dict[str, Times]] = {}
                for filled, size in pairwise([0, *sizes]):
                    started = time.perf_counter()
                    fill(ctx, filled + 1, size, sizes[-1])
                    print(f"filled to {size:,} rows in {time.perf_counter() - started:.0f} s", flush=True)
                    results[size] = operations(ctx, routing, size)
            print_times(results, 365 * arguments.per_day)
        finally:
            ctx.close()


def make_router(ctx: AppContext) -> None:
    """Train a model and create the router."""
    examples = [
        {
            "email": {"subject": f"w{n % N_LABELS}", "text": f"w{n % 7}"},
            "labels": [f"department {n % N_LABELS}"],
        }
        for n in range(10 * N_LABELS)
    ]
    dataset_id = in_process.dataset(ctx, examples)
    body = {"model": "m", "dataset_id": dataset_id, "learner": {"algorithm": "naive_bayes"}}
    training.create(ctx, TrainingJobCreate.model_validate(body), in_process.WITHOUT_KEY)
    in_process.work(ctx)
    service.put(ctx.db, ROUTER, RouterPut(model="m", fallback="front-desk@example.org", at_most=3))


def message(rng: random.Random) -> MailDocument:
    """Return a message that was not routed before."""
    words = " ".join(f"w{rng.randrange(N_LABELS)}" for _ in range(30))
    head = f"Message-ID: <{rng.getrandbits(128):x}@mail.example.org>\r\nSubject: {words[:40]}"
    return read_message(f"{head}\r\n\r\n{words}".encode())


def make_templates(ctx: AppContext, routing: InProcessRouting) -> None:
    """Route messages, and keep their decisions for the copies."""
    rng = random.Random(1)  # noqa: S311 - no secret
    for _ in range(TEMPLATES):
        routing.route(ROUTER, message(rng))
    with ctx.db.write() as tx:
        tx.session.execute(
            text(
                "CREATE TABLE templates AS "
                "SELECT row_number() OVER () - 1 AS number, router_id, router, response FROM decisions"
            )
        )


def fill(ctx: AppContext, first: int, last: int, total: int) -> None:
    """Insert rows number ``first`` to ``last`` of ``total``."""
    step = 100_000
    for start in range(first, last + 1, step):
        values = {"first": start, "last": min(start + step - 1, last), "days": DAYS, "total": total}
        values["templates"] = TEMPLATES
        with ctx.db.write() as tx:
            tx.session.execute(OLD_ROWS, values)
    with ctx.db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        # As autovacuum does on a server that is not filled within minutes.
        connection.execute(text("VACUUM (ANALYZE) decisions"))
        connection.execute(text("CHECKPOINT"))


def operations(ctx: AppContext, routing: InProcessRouting, size: int) -> dict[str, Times]:
    """Measure every operation on the table as it is."""
    rng = random.Random(size)  # noqa: S311 - no secret
    with ctx.db.read() as session:
        sample = select(tables.Decision.id).where(text("random() < :share"))
        ids = list(session.scalars(sample.limit(REPEATS), {"share": min(1.0, 4 * REPEATS / size)}))
    mails = [message(rng) for _ in range(REPEATS)]

    def page(limit: int) -> object:
        return decisions.page(ctx, ROUTER, DecisionFilter(), Page(limit, None))

    def route(mail: MailDocument) -> object:
        return routing.route(ROUTER, mail)

    return {
        "route a new message": timed(mails, route),
        "route it again": timed(mails, route),
        "read a decision": timed(ids, partial(decisions.get, ctx.db)),
        "page of the newest 50": timed([50] * 30, page),
        "page of the newest 500": timed([500] * 10, page),
        f"expire {retention.BATCH_SIZE} decisions": expire(ctx),
    }


def timed(items: Iterable[Item], call: Callable[[Item], object]) -> Times:
    """Return the times of a call for each item."""
    seconds = []
    for item in items:
        started = time.perf_counter()
        call(item)
        seconds.append(time.perf_counter() - started)
    return summarize(seconds)


def summarize(seconds: list[float]) -> Times:
    """Return fastest, median and 95th percentile in milliseconds."""
    ms = [1000 * value for value in seconds]
    return min(ms), statistics.median(ms), statistics.quantiles(ms, n=20)[-1]


def expire(ctx: AppContext) -> Times:
    """Let the oldest decisions expire; return the times of the transactions, without the pauses."""
    with ctx.db.read() as session:
        statement = select(tables.Decision.created_at).order_by(tables.Decision.id)
        oldest = session.scalars(statement.offset(EXPIRED_BATCHES * retention.BATCH_SIZE)).first()
        assert oldest is not None
        keep_days = (database_now(session) - oldest) / timedelta(days=1)
    changed = replace(ctx, settings=ctx.settings.model_copy(update={"keep_decisions_days": keep_days}))
    seconds: list[float] = []
    started = time.perf_counter()

    def note(_seconds: float) -> None:
        nonlocal started
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()

    original, retention.time = retention.time, _Clock(note)  # type: ignore[attr-defined, assignment]
    try:
        deleted = retention.delete_expired_rows(changed, lambda: False)["decisions"]
    finally:
        retention.time = original  # type: ignore[attr-defined]
    assert deleted >= EXPIRED_BATCHES * retention.BATCH_SIZE - 1, deleted
    return summarize(seconds)


class _Clock:
    """Stands for the module ``time``: the pauses mark the ends of transactions."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self.sleep = sleep


def print_times(results: dict[int, dict[str, Times]], year: int) -> None:
    """Print the times at each size, and the fastest of a year if each tenfold adds as much as the last."""
    sizes = sorted(results)
    head = "".join(f"{f'{size:,} rows':>24}" for size in sizes)
    print(f"\n{'milliseconds: fastest (p50, p95)':<34}{head}{f'{year:,} rows':>20}")
    for name in results[sizes[0]]:
        times = [results[size][name] for size in sizes]
        columns = "".join(f"{f'{fastest:.1f} ({p50:.1f}, {p95:.1f})':>24}" for fastest, p50, p95 in times)
        extrapolated = ""
        if len(times) > 1:
            per_tenfold = (times[-1][0] - times[-2][0]) / math.log10(sizes[-1] / sizes[-2])
            after_a_year = times[-1][0] + max(per_tenfold, 0) * math.log10(year / sizes[-1])
            extrapolated = f"{f'about {after_a_year:.1f}':>20}"
        print(f"{name:<34}{columns}{extrapolated}")


if __name__ == "__main__":
    main()
