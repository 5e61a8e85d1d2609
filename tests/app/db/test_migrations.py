"""The schema: every migration up and down, on both databases, alone and at once."""

from __future__ import annotations

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
from sqlalchemy import Engine, inspect, text
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
    made = make_engine(empty_url)
    yield made
    made.dispose()


def shape(engine: Engine) -> dict[str, object]:
    """Everything that a migration makes, as the database tells it."""
    look = inspect(engine)
    return {
        table: {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"])
                for column in look.get_columns(table)
            ],
            "primary": look.get_pk_constraint(table),
            "foreign": sorted(look.get_foreign_keys(table), key=repr),
            "unique": sorted(look.get_unique_constraints(table), key=repr),
            "indexes": sorted(look.get_indexes(table), key=repr),
        }
        for table in look.get_table_names()
    }


def test_every_revision_goes_up_and_down_and_up_again(engine: Engine) -> None:
    assert schema.current(engine) is None
    shapes = []
    for revision in REVISIONS:
        schema.migrate(engine, revision)
        assert schema.current(engine) == revision
        shapes.append(shape(engine))
    for revision, before in list(zip(REVISIONS, shapes, strict=True))[-2::-1]:
        schema.migrate(engine, revision)
        assert schema.current(engine) == revision
        assert shape(engine) == before
    schema.migrate(engine, "base")
    assert schema.current(engine) is None
    assert set(shape(engine)) == {"alembic_version"}
    schema.migrate(engine)
    assert schema.current(engine) == schema.head() == REVISIONS[-1]
    assert shape(engine) == shapes[-1]


def test_the_migrated_schema_is_what_the_tables_say(engine: Engine) -> None:
    schema.migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True}
        )
        assert compare_metadata(context, tables.Base.metadata) == []
    # Comparing tells nothing of nullable primary keys and of names; a database made from the tables does.
    migrated = shape(engine)
    del migrated["alembic_version"]
    schema.migrate(engine, "base")
    tables.Base.metadata.create_all(engine)
    made = shape(engine)
    del made["alembic_version"]
    assert made == migrated


def test_every_constraint_has_a_name_by_the_rule(engine: Engine) -> None:
    schema.migrate(engine)
    look = inspect(engine)
    for table in look.get_table_names():
        if table == "alembic_version":
            continue
        assert look.get_pk_constraint(table)["name"] == f"pk_{table}"
        for unique in look.get_unique_constraints(table):
            assert unique["name"] == f"uq_{table}_{'_'.join(unique['column_names'])}"
        for foreign in look.get_foreign_keys(table):
            columns = "_".join(foreign["constrained_columns"])
            assert foreign["name"] == f"fk_{table}_{columns}_{foreign['referred_table']}"
        for index in look.get_indexes(table):
            if "duplicates_constraint" not in index:
                assert index["name"] == f"ix_{table}_{'_'.join(str(c) for c in index['column_names'])}"
        for check in look.get_check_constraints(table):
            assert re.match(f"ck_{table}_", check["name"] or "")


def test_migrating_twice_changes_nothing(engine: Engine) -> None:
    schema.migrate(engine)
    before = shape(engine)
    schema.migrate(engine)
    assert shape(engine) == before


def test_several_may_migrate_at_once(empty_url: str) -> None:
    assert race(3, "migrate", empty_url) == [schema.head()] * 3


def test_a_migration_that_fails_leaves_the_schema_as_it_was(
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
    assert shape(engine) == {}
    schema.migrate(engine)


def test_a_database_without_a_schema_is_refused_with_the_remedy(engine: Engine) -> None:
    with pytest.raises(SchemaError, match=f"at revision none, .* needs {schema.head()}; run `covey migrate`"):
        schema.require_head(engine)
    schema.migrate(engine)
    schema.require_head(engine)


def test_a_database_of_a_newer_release_is_refused_with_another_remedy(engine: Engine) -> None:
    """`covey migrate` could do nothing about it, and must not touch what it does not know."""
    schema.migrate(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for attempt in (schema.require_head, schema.migrate):
        with pytest.raises(SchemaError, match=r"at revision 9999, .* a newer release"):
            attempt(engine)
    assert schema.current(engine) == "9999"


def test_a_revision_that_does_not_exist_is_refused(engine: Engine) -> None:
    with pytest.raises(SchemaError, match=r"there is no revision .nonsense.; there are base, 0001"):
        schema.migrate(engine, "nonsense")
    assert schema.current(engine) is None


def test_the_command_migrates_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COVEY_DATABASE_URL", raising=False)
    monkeypatch.setenv("COVEY_DATA_DIR", "")  # the command sets it; put back afterwards
    data = tmp_path / "new" / "data"
    for before in ("none", schema.head()):
        ran = CliRunner().invoke(cli, ["migrate", "--data", str(data)], catch_exceptions=False)
        assert ran.exit_code == 0
        assert ran.stdout == f"schema: {before} -> {schema.head()}\n"
    engine = make_engine(f"sqlite:///{data / 'covey.db'}")
    schema.require_head(engine)
    engine.dispose()
    ran = CliRunner().invoke(cli, ["migrate", "nonsense", "--data", str(data)])
    assert ran.exit_code == 1
    assert "there is no revision 'nonsense'" in ran.stderr
