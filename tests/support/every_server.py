"""Tests that start servers and do not end; see ``tests/system/test_runner_death.py``."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import bucket
import postgres
import production
from production import Production
from stack import Stack, departments


def test_every_server(tmp_path: Path) -> None:
    with ExitStack() as opened:
        folder = tmp_path / "production"
        folder.mkdir()
        settings = {"COVEY_BROKER_URL": opened.enter_context(production.valkey(folder))}
        try:
            settings["COVEY_DATABASE_URL"] = opened.enter_context(postgres.server()).create()
        except postgres.UnavailableError:
            settings["COVEY_DATABASE_URL"] = f"sqlite:///{folder}/covey.db"
        buckets = opened.enter_context(bucket.server(folder / "bucket.log"))
        settings |= {"COVEY_STORAGE_URL": buckets.create(), **bucket.CREDENTIALS}
        opened.callback(Production(folder, settings, workers=1).start().stop)
        stack = Stack(tmp_path / "data").start()
        opened.callback(stack.stop)
        hold = stack.hold()
        stack.train(stack.dataset(departments(40))["id"])
        hold.wait()
        _wait_for_ever()


def test_one_server(tmp_path: Path) -> None:
    with production.valkey(tmp_path):
        _wait_for_ever()


def _wait_for_ever() -> None:
    Path(os.environ["READY_FILE"]).touch()
    while True:
        signal.pause()
