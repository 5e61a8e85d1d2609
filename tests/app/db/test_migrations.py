"""Migrations upgrade and downgrade on both databases, also if several processes migrate at the same time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from racing_processes import race
from sqlalchemy import Engine, func, inspect, select, sql, text
from sqlalchemy.engine.interfaces import ReflectedIndex
from typer.testing import CliRunner

from app.cli.main import cli
from app.db import schema, tables
from app.db.schema import SchemaError
from app.db.session import make_engine

REVISIONS = [
    script.revision
    for script in reversed(list(ScriptDirectory.from_config(schema.config()).walk_revisions()))
]


@pytest.fixture
def engine(empty_url: str) -> Iterator[Engine]:
    """A database without tables."""
    engine = make_engine(empty_url)
    yield engine
    engine.dispose()


def describe_index(index: ReflectedIndex) -> dict[str, object]:
    """Return an index with its condition as text, because expressions cannot be compared."""
    options = {name: str(value) for name, value in index.get("dialect_options", {}).items()}
    return {**index, "dialect_options": options}


def describe_schema(engine: Engine) -> dict[str, object]:
    """Return the columns, constraints and indexes of every table in the database."""
    inspector = inspect(engine)
    return {
        table: {
            "columns": sorted(
                (column["name"], str(column["type"]), column["nullable"])
                for column in inspector.get_columns(table)
            ),
            "primary": inspector.get_pk_constraint(table),
            "foreign": sorted(inspector.get_foreign_keys(table), key=repr),
            "unique": sorted(inspector.get_unique_constraints(table), key=repr),
            "indexes": sorted(map(describe_index, inspector.get_indexes(table)), key=repr),
        }
        for table in inspector.get_table_names()
    }


def test_every_revision_can_be_upgraded_and_downgraded(engine: Engine) -> None:
    assert schema.current(engine) is None
    schemas = []
    for revision in REVISIONS:
        schema.migrate(engine, revision)
        assert schema.current(engine) == revision
        schemas.append(describe_schema(engine))
    for revision, before in list(zip(REVISIONS, schemas, strict=True))[-2::-1]:
        schema.migrate(engine, revision)
        assert schema.current(engine) == revision
        assert describe_schema(engine) == before
    schema.migrate(engine, "base")
    assert schema.current(engine) is None
    assert set(describe_schema(engine)) == {"alembic_version"}
    schema.migrate(engine)
    assert schema.current(engine) == schema.head() == REVISIONS[-1]
    assert describe_schema(engine) == schemas[-1]


def test_the_migrated_schema_is_that_of_the_table_classes(engine: Engine) -> None:
    schema.migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, tables.Base.metadata) == []
    # Alembic does not compare nullable primary keys and names, so create the tables and compare everything.
    migrated = describe_schema(engine)
    del migrated["alembic_version"]
    schema.migrate(engine, "base")
    tables.Base.metadata.create_all(engine)
    created = describe_schema(engine)
    del created["alembic_version"]
    assert created == migrated


def test_the_names_of_constraints_follow_the_convention(engine: Engine) -> None:
    schema.migrate(engine)
    inspector = inspect(engine)
    for table in inspector.get_table_names():
        if table == "alembic_version":
            continue
        assert inspector.get_pk_constraint(table)["name"] == f"pk_{table}"
        for unique in inspector.get_unique_constraints(table):
            assert unique["name"] == f"uq_{table}_{'_'.join(unique['column_names'])}"
        for foreign in inspector.get_foreign_keys(table):
            columns = "_".join(foreign["constrained_columns"])
            assert foreign["name"] == f"fk_{table}_{columns}_{foreign['referred_table']}"
        for index in inspector.get_indexes(table):
            if "duplicates_constraint" not in index:
                assert index["name"] == f"ix_{table}_{'_'.join(str(c) for c in index['column_names'])}"
        for check in inspector.get_check_constraints(table):
            assert re.match(f"ck_{table}_", check["name"] or "")


def test_a_migration_keeps_the_rows_that_refer_to_a_changed_table(engine: Engine) -> None:
    """SQLite changes a table by dropping it, and a dropped row deletes those that refer to it."""
    schema.migrate(engine, "0004")
    with engine.begin() as connection:
        for statement in (
            (
                "INSERT INTO jobs (id, kind, state, spec, attempt, failures, consecutive_losses, fence, "
                "due_at, notified_at, created_at) VALUES ('job_1', 'train', 'queued', '{}', 0, 0, 0, 0, "
                "'2026-01-01', '2026-01-01', '2026-01-01')"
            ),
            "INSERT INTO job_events VALUES ('job_1', 1, '2026-01-01', 'queued', '{}')",
            "INSERT INTO curve_points VALUES ('job_1', 1, '{}')",
        ):
            connection.execute(text(statement))
    for revision in ("head", "0004"):
        schema.migrate(engine, revision)
        with engine.connect() as connection:
            for name in ("jobs", "job_events", "curve_points"):
                assert connection.scalar(select(func.count()).select_from(sql.table(name))) == 1


def test_a_router_gets_its_references_and_is_kept_if_they_do_not_exist(engine: Engine) -> None:
    schema.migrate(engine, "0004")
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO models VALUES ('m', 1, '2026-01-01')",
            (
                "INSERT INTO model_versions (model, version, artifact_key, artifact_sha256, artifact_bytes, "
                "description, created_at) VALUES ('m', 1, 'k', 's', 1, '{}', '2026-01-01')"
            ),
            "INSERT INTO model_aliases VALUES ('m', 'live', 1, 1, '2026-01-01')",
        ):
            connection.execute(text(statement))
        for name, model, config in (
            ("alias", "m", '{"version": "live", "shadow": 1}'),
            ("version", "m", '{"version": 1, "shadow": "gone"}'),
            ("deleted", "gone", '{"version": "live"}'),
        ):
            connection.execute(
                text(
                    "INSERT INTO routers VALUES (:name, :name, :model, :config, '2026-01-01', '2026-01-01')"
                ),
                {"name": name, "model": model, "config": config},
            )
    schema.migrate(engine)
    with engine.connect() as connection:
        references = connection.execute(
            text("SELECT name, version, alias, shadow_version, shadow_alias FROM routers ORDER BY name")
        ).all()
    assert [tuple(row) for row in references] == [
        ("alias", None, "live", 1, None),
        ("deleted", None, None, None, None),
        ("version", 1, None, None, None),
    ]
    schema.migrate(engine, "0004")


def test_a_router_with_a_margin_sends_every_message_to_review(engine: Engine) -> None:
    schema.migrate(engine, "0006")
    configs = {
        "large": {"version": 1, "review_below": 2.5},
        "none": {"version": 1, "at_most": 2},
        "small": {"version": 1, "review_below": 0.2, "at_most": 1},
    }
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO models VALUES ('m', 1, '2026-01-01')"))
        for name, config in configs.items():
            connection.execute(
                text(
                    "INSERT INTO routers (name, id, model, config, created_at, updated_at) "
                    "VALUES (:name, :name, 'm', :config, '2026-01-01', '2026-01-01')"
                ),
                {"name": name, "config": json.dumps(config)},
            )
    schema.migrate(engine)
    with engine.connect() as connection:
        rows = connection.execute(select(tables.Router.name, tables.Router.config)).all()
    assert dict(rows) == {
        "large": {"version": 1, "review_below": 1.0},
        "none": configs["none"],
        "small": {"version": 1, "review_below": 1.0, "at_most": 1},
    }


def test_migrating_twice_changes_nothing(engine: Engine) -> None:
    schema.migrate(engine)
    before = describe_schema(engine)
    schema.migrate(engine)
    assert describe_schema(engine) == before


def test_several_processes_can_migrate_at_the_same_time(empty_url: str) -> None:
    assert race(3, "migrate", empty_url) == [schema.head()] * 3


def test_a_failed_migration_does_not_change_the_schema(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_after(config: Config, revision: str) -> None:
        upgrade(config, revision)
        raise ZeroDivisionError

    upgrade = command.upgrade
    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", fail_after)
        with pytest.raises(ZeroDivisionError):
            schema.migrate(engine)
    assert describe_schema(engine) == {}
    schema.migrate(engine)


def test_a_database_that_is_not_migrated_is_rejected_with_the_remedy(engine: Engine) -> None:
    with pytest.raises(SchemaError, match=f"at revision none, .* needs {schema.head()}; run `covey migrate`"):
        schema.require_head(engine)
    schema.migrate(engine)
    schema.require_head(engine)


def test_a_database_of_a_newer_release_is_rejected(engine: Engine) -> None:
    """`covey migrate` rejects it, too, because it does not know the revision."""
    schema.migrate(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for function in (schema.require_head, schema.migrate):
        with pytest.raises(SchemaError, match=r"at revision 9999, .* a newer release"):
            function(engine)
    assert schema.current(engine) == "9999"


def test_a_revision_that_does_not_exist_is_rejected(engine: Engine) -> None:
    with pytest.raises(SchemaError, match=r"revision .nonsense. does not exist; choose one of base, 0001"):
        schema.migrate(engine, "nonsense")
    assert schema.current(engine) is None


def test_the_command_migrates_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COVEY_DATABASE_URL", raising=False)
    monkeypatch.setenv("COVEY_DATA_DIR", "")  # the command sets it; monkeypatch restores it
    data = tmp_path / "new" / "data"
    for before in ("none", schema.head()):
        result = CliRunner().invoke(cli, ["migrate", "--data", str(data)], catch_exceptions=False)
        assert result.exit_code == 0
        assert result.stdout == f"schema: {before} -> {schema.head()}\n"
    engine = make_engine(f"sqlite:///{data / 'covey.db'}")
    schema.require_head(engine)
    engine.dispose()
    result = CliRunner().invoke(cli, ["migrate", "nonsense", "--data", str(data)])
    assert result.exit_code == 1
    assert "revision 'nonsense' does not exist" in result.stderr


def test_old_decisions_can_be_found(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their columns and labels are filled in batches."""
    migration = ScriptDirectory.from_config(schema.config()).get_revision("0008").module
    monkeypatch.setattr(migration, "BATCH_SIZE", 2)
    department = {"label": "billing", "destination": "b", "score": 1.0}
    message = {"automated": False, "defects": [], "truncated": False}
    decided = {"model": "m", "version": 3, "disposition": "routed"}
    decisions: dict[str, tuple[dict[str, object], list[str] | None]] = {
        "dec_1": ({**decided, "departments": [department], "message": message}, ["billing"]),
        "dec_2": ({**decided, "departments": [department], "message": message}, ["legal"]),
        "dec_3": (
            {
                **decided,
                "disposition": "review",
                "departments": [department, {**department, "label": "legal"}],
                "set_probability": 0.25,
                "message": {**message, "message_id": "\0" + "é" * 600},
            },
            None,
        ),
        "dec_4": ({**decided, "disposition": "fallback", "departments": [], "message": message}, []),
        "dec_5": ({}, None),
    }
    schema.migrate(engine, "0007")
    with engine.begin() as connection:
        for id_, (response, feedback) in decisions.items():
            connection.execute(
                text(
                    "INSERT INTO decisions "
                    "(id, router_id, router, message_key, response, feedback, created_at) "
                    "VALUES (:id, 'rtr_1', 'desk', :id, :response, :feedback, '2026-01-01')"
                ),
                {
                    "id": id_,
                    "response": json.dumps(response),
                    "feedback": None if feedback is None else json.dumps(feedback),
                },
            )
    schema.migrate(engine)
    columns = ("id", "disposition", "model", "version", "message_id", "set_probability", "feedback_state")
    with engine.connect() as connection:
        rows = connection.execute(
            select(*(tables.Decision.__table__.c[name] for name in columns)).order_by(tables.Decision.id)
        ).all()
        labels = connection.execute(
            select(tables.DecisionLabel.label, tables.DecisionLabel.decision_id).order_by(
                tables.DecisionLabel.decision_id, tables.DecisionLabel.label
            )
        ).all()
    assert [tuple(row) for row in rows] == [
        ("dec_1", "routed", "m", 3, None, None, "agreed"),
        ("dec_2", "routed", "m", 3, None, None, "corrected"),
        ("dec_3", "review", "m", 3, "é" * 500, 0.25, None),
        ("dec_4", "fallback", "m", 3, None, None, "agreed"),
        ("dec_5", None, None, None, None, None, None),
    ]
    assert [tuple(label) for label in labels] == [
        ("billing", "dec_1"),
        ("billing", "dec_2"),
        ("billing", "dec_3"),
        ("legal", "dec_3"),
    ]


def test_old_shadows_have_their_agreement(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    migration = ScriptDirectory.from_config(schema.config()).get_revision("0011").module
    monkeypatch.setattr(migration, "BATCH_SIZE", 2)
    departments = [{"label": "billing", "destination": "b", "score": 1.0}]
    shadows = [["billing"], ["billing", "legal"], [], None]
    schema.migrate(engine, "0010")
    with engine.begin() as connection:
        for number, labels in enumerate(shadows):
            shadow = None if labels is None else json.dumps({"version": 2, "labels": labels, "ranking": []})
            connection.execute(
                text(
                    "INSERT INTO decisions "
                    "(id, router_id, router, message_key, response, shadow, created_at) "
                    "VALUES (:id, 'rtr_1', 'desk', :id, :response, :shadow, '2026-01-01')"
                ),
                {
                    "id": f"dec_{number}",
                    "response": json.dumps({"departments": departments}),
                    "shadow": shadow,
                },
            )
    schema.migrate(engine)
    of = tables.Decision
    with engine.connect() as connection:
        rows = connection.execute(select(of.shadow_version, of.shadow_agrees).order_by(of.id)).all()
    assert [tuple(row) for row in rows] == [(2, True), (2, False), (2, False), (None, None)]
