"""Migrations upgrade and downgrade on both databases, also if several processes migrate at the same time."""

from __future__ import annotations

import re
import shutil
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

import migrations
from app.cli.main import cli
from app.db import migration, schema, tables
from app.db.schema import SchemaError
from app.db.session import make_engine

REVISIONS = [
    script.revision
    for script in reversed(list(ScriptDirectory.from_config(migration.config()).walk_revisions()))
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


NEXT = """
import sqlalchemy as sa
from alembic import op
revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None

def upgrade() -> None:
    with op.batch_alter_table("jobs") as batch:
        batch.add_column(sa.Column("colour", sa.String(length=9), server_default="red", nullable=False))

def downgrade() -> None:
    with op.batch_alter_table("jobs") as batch:
        batch.drop_column("colour")
"""


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release with one more revision, which changes a table to which other tables refer."""
    folder = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "0002_next.py").write_text(NEXT)
    monkeypatch.setattr(migrations, "__file__", str(folder / "__init__.py"))


@pytest.mark.usefixtures("next_release")
def test_a_migration_keeps_the_rows_that_refer_to_a_changed_table(engine: Engine) -> None:
    """SQLite changes a table by dropping it, and a dropped row deletes those that refer to it."""
    schema.migrate(engine, "0001")
    with engine.begin() as connection:
        for statement in (
            (
                "INSERT INTO jobs (id, kind, state, spec, attempt, failures, consecutive_losses, fence, "
                "priority, claim_key, due_at, created_at) VALUES ('job_1', 'train', 'queued', '{}', 0, 0, 0, "
                "0, 0, '', '2026-01-01', '2026-01-01')"
            ),
            "INSERT INTO job_events VALUES ('job_1', 1, '2026-01-01', 'queued', '{}')",
            "INSERT INTO curve_points VALUES ('job_1', 1, '{}')",
        ):
            connection.execute(text(statement))
    for revision in ("head", "0001", "head"):
        schema.migrate(engine, revision)
        with engine.connect() as connection:
            for name in ("jobs", "job_events", "curve_points"):
                assert connection.scalar(select(func.count()).select_from(sql.table(name))) == 1
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT colour FROM jobs")) == "red"


@pytest.mark.usefixtures("next_release")
def test_a_database_of_the_release_before_is_rejected_with_what_to_do(engine: Engine) -> None:
    schema.migrate(engine, "0001")
    with pytest.raises(SchemaError, match=r"at revision 0001, .* needs 0002; run `covey migrate`"):
        schema.require_head(engine)
    schema.migrate(engine)
    schema.require_head(engine)


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


def test_the_names_of_the_files_give_the_revisions_in_their_order() -> None:
    assert schema.revisions() == REVISIONS


def test_a_database_that_is_not_migrated_is_rejected_with_what_to_do(engine: Engine) -> None:
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
