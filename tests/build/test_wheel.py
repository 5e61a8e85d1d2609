"""The wheel: what it contains, what it requires, and that it works beside a folder called ``models``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from collections import Counter
from email.parser import Parser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from models.extras import EXTRAS

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.build

TRAIN = """
import covey, sys
texts = ["the invoice is wrong", "my parcel is late", "a late parcel and a wrong invoice"]
examples = covey.Examples("text", texts, [("billing",), ("shipping",), ("billing", "shipping")])
pipeline = covey.Pipeline(covey.TextFeatures(), covey.SVM()).fit(examples)
print(pipeline.predictions(["my parcel is late"])[0].labels)
print(covey.Pipeline.__module__)
import models
print(models.OWN)
try:
    covey.read_email(covey.Email(html="<p>hello"))
except covey.errors.MissingExtraError as error:
    print(error)
"""

HIDE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hide())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture
def notebooks(tmp_path: Path) -> Path:
    """A folder with a package ``models`` of its own."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("OWN = 'the own package'")
    return tmp_path


def requirements(wheel: Path) -> dict[str, set[str]]:
    """Return the distributions that the wheel requires, by extra; without an extra under an empty name."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    found: dict[str, set[str]] = {"": set()}
    for requirement in metadata.get_all("Requires-Dist", []):
        extra = re.search(r"extra == '(\w+)'", requirement)
        name = re.split(r"[\[<>=; ]", requirement)[0]
        found.setdefault(extra[1] if extra else "", set()).add(name)
    return found


def test_the_wheel_contains_the_library_inside_of_covey(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = Counter(archive.namelist())
        tops = {
            name.partition("/")[0] for name in names if not re.match(r"covey-[^/]*\.(dist-info|data)/", name)
        }
        assert tops == {"app", "covey", "migrations", "workers"}
        (script,) = [archive.getinfo(name) for name in names if ".data/" in name]
        assert script.filename.endswith("/scripts/covey")
        assert script.external_attr >> 16 & 0o111 == 0o111
        # An installer replaces this line.
        assert archive.read(script).startswith(b"#!python\n")
        assert max(names.values()) == 1
        assert "covey/py.typed" in names
        for folder, target in (("models", "covey/models"), ("covey", "covey"), ("app", "app")):
            for path in (ROOT / folder).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    assert f"{target}/{path.relative_to(ROOT / folder).as_posix()}" in names
        for name in names:
            if name.endswith((".py", ".pyi")):
                code = archive.read(name).decode()
                assert not re.search(r"^\s*(from|import) models\b", code, re.MULTILINE), name


def test_without_an_extra_the_wheel_requires_only_what_learning_needs(wheel: Path) -> None:
    required = requirements(wheel)
    assert required[""] == {
        *("numpy", "scipy", "scikit-learn"),
        *("pydantic", "typing-extensions"),  # the parameters and their checks
        *("safetensors", "threadpoolctl"),  # saved models; scikit-learn requires the second, too
        *("snowballstemmer", "stop-words"),  # two packages of word lists in plain Python
    }
    distributions = packages_distributions()
    for library, extra in EXTRAS.items():
        assert distributions[library][0].replace("_", "-") in required[extra]
    assert {"fastapi", "sqlalchemy", "typer"} | required["files"] | required["mail"] <= required["service"]
    assert required["service"] < required["telemetry"]


def train(python: str, folder: Path, code: str, path: str = "") -> list[str]:
    """Run the training in a folder, and return the lines that it prints."""
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [python, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


EXPECTED = [
    "['shipping']",
    "covey.models.pipeline.pipeline",
    "the own package",
    "reading HTML needs selectolax, which is not installed; run: pip install 'covey[mail]'",
]


def test_the_library_trains_beside_a_folder_called_models_and_without_the_extras(
    wheel: Path, notebooks: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without a network: the wheel is unpacked, and the libraries of the extras cannot be imported."""
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    hidden = {*EXTRAS, "fastapi", "sqlalchemy", "celery", "typer", "httpx", "matplotlib"}
    assert train(sys.executable, notebooks, HIDE.format(hidden=hidden) + TRAIN, str(site)) == EXPECTED


@pytest.mark.long
def test_the_wheel_installs_without_the_extras_in_an_empty_environment(wheel: Path, notebooks: Path) -> None:
    """With a package index, like a data scientist."""
    environment = notebooks / "env"
    venv.create(environment, with_pip=True)
    python = str(environment / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    assert train(python, notebooks, TRAIN) == EXPECTED
    command = subprocess.run([environment / "bin" / "covey"], capture_output=True, text=True, check=False)
    assert command.returncode == 1
    assert "pip install 'covey[service]'" in command.stderr
