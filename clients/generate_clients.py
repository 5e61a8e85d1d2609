"""Generates clients from ``openapi.json``.

    python clients/generate_clients.py [--output FOLDER] [CLIENT ...]

Without a name, it generates all clients whose generators are here, and says which are missing.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

CLIENTS = Path(__file__).parent
DOCUMENT = CLIENTS.parent / "openapi.json"
OUTPUT = CLIENTS / "generated"
TYPESCRIPT = CLIENTS / "typescript"
BIN = Path(sys.executable).parent
NODE = (20, 19)
"""The oldest version of Node.js that runs the generators."""

GO_DEPENDENCY = "gopkg.in/validator.v2"
GO_DEPENDENCY_VERSION = "v2.0.1"
DEBIAN_GO = Path("/usr/share/gocode/src")
"""Where Debian installs the sources of Go packages."""


class GeneratorMissingError(Exception):
    """A program that a generator needs is missing."""


class GeneratorError(Exception):
    """A generator failed. The message contains its output."""


def run(*command: str | Path, cwd: Path = CLIENTS, env: Mapping[str, str] | None = None) -> str:
    """Run a command, and return what it prints.

    Raises:
        GeneratorError: the command failed.
    """
    completed = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if completed.returncode:
        raise GeneratorError(f"{' '.join(map(str, command))}\n{completed.stdout[-8000:]}")
    return completed.stdout


def require(program: str, package: str) -> None:
    """Check that a program is on the ``PATH``."""
    if shutil.which(program) is None:
        raise GeneratorMissingError(f"{program} is not installed; install {package}")


def python(folder: Path, *, config: Path | None = CLIENTS / "python" / "generator.yaml") -> str:
    """Generate the Python package ``covey_api``, and return the output of the generator."""
    return run(
        BIN / "openapi-python-client",
        "generate",
        *("--path", DOCUMENT),
        *("--output-path", folder / "covey_api"),
        *("--meta", "none"),
        "--overwrite",
        *(("--config", config) if config else ()),
        # Without a configuration, the generator formats its code with ruff.
        env={"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "200"},
    )


def install_npm_packages(folder: Path = TYPESCRIPT) -> None:
    """Install the locked npm packages of a folder, unless they are here."""
    require("node", "Node.js")
    require("npm", "npm")
    version = tuple(int(part) for part in run("node", "--version").lstrip("v").split(".")[:2])
    if version < NODE:
        raise GeneratorMissingError(f"Node.js {'.'.join(map(str, NODE))} or later is not installed")
    installed = folder / "node_modules" / ".installed"
    with (folder / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # npm fails if two processes install into one folder
        packages = lock.read()
        if installed.exists() and installed.read_text() == packages:
            return
        try:
            run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
        except GeneratorError as error:
            raise GeneratorMissingError(f"npm cannot install the packages: {error}") from error
        installed.write_text(packages)


def typescript(folder: Path) -> str:
    """Generate the client of hey-api, and the types for openapi-fetch."""
    install_npm_packages()
    hey_api = run(
        TYPESCRIPT / "node_modules" / ".bin" / "openapi-ts",
        *("--file", "hey-api.config.mjs"),
        cwd=TYPESCRIPT,
        env={"INPUT": str(DOCUMENT), "OUTPUT": str(folder / "hey-api")},
    )
    openapi_fetch = run(
        "node",
        "openapi-fetch.mjs",
        cwd=TYPESCRIPT,
        env={"INPUT": str(DOCUMENT), "OUTPUT": str(folder / "openapi-fetch.d.ts")},
    )
    return hey_api + openapi_fetch


def openapi_generator(name: str, folder: Path) -> str:
    """Generate a client with openapi-generator-cli."""
    require("java", "a Java runtime, for example the Debian package openjdk-17-jre-headless")
    return run(
        BIN / "openapi-generator-cli",
        "generate",
        *("--generator-name", name),
        *("--input-spec", DOCUMENT),
        *("--config", CLIENTS / f"{name}.yaml"),
        *("--output", folder),
        *("--global-property", "apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"),
    )


def go(folder: Path) -> str:
    """Generate the Go package ``covey``, with a ``go.mod``."""
    output = openapi_generator("go", folder)
    lines = ["module covey", "go 1.19", f"require {GO_DEPENDENCY} {GO_DEPENDENCY_VERSION}"]
    source = DEBIAN_GO / GO_DEPENDENCY
    shutil.rmtree(folder / "test", ignore_errors=True)  # empty tests, which need other packages
    if source.exists():  # compile without a proxy
        vendored = folder / "vendor" / GO_DEPENDENCY
        shutil.rmtree(vendored, ignore_errors=True)
        shutil.copytree(source, vendored, ignore=shutil.ignore_patterns("*_test.go"))
        (folder / "vendor" / "modules.txt").write_text(
            f"# {GO_DEPENDENCY} {GO_DEPENDENCY_VERSION}\n## explicit\n{GO_DEPENDENCY}\n"
        )
    (folder / "go.mod").write_text("\n\n".join(lines) + "\n")
    return output


JAVA_BODY = re.compile(
    r"byte\[\] localVarPostBody = memberVarObjectMapper\.writeValueAsBytes\(body\);\s*"
    r"(?P<call>localVarRequestBuilder\.method\(\"\w+\", HttpRequest\.BodyPublishers)"
    r"\.ofByteArray\(localVarPostBody\)"
)
"""How the generated code encodes a body that is a file, as JSON."""


def java(folder: Path) -> str:
    """Generate the Java packages ``covey.client``.

    The generator encodes a file as JSON. The result sends the bytes of the file instead, while it reads them.
    """
    output = openapi_generator("java", folder)
    for file in folder.glob("src/main/java/**/*.java"):
        source = file.read_text()
        # The annotation is the only thing that would need a package besides Jackson.
        changed = re.sub(r"(?m)^ *@javax\.annotation\.Generated\(.*\)\n", "", source)
        changed = JAVA_BODY.sub(r"\g<call>.ofFile(body.toPath())", changed)
        if changed != source:
            file.write_text(changed)
    return output


CSHARP_VALUE = re.compile(r"EmitDefaultValue = false(?P<rest>\)\]\s*public (?:int|long|double|bool) )")
"""A field of the generated code that is not sent if it is 0 or false, whatever its default in the API is."""


def csharp(folder: Path) -> str:
    """Generate the C# namespace ``Covey``.

    The generated code leaves out numbers that are 0 and booleans that are false, so that the service would
    use its default. The result sends them. Fields that have no default in the API are nullable types.
    """
    output = openapi_generator("csharp", folder)
    for file in (folder / "src" / "Covey" / "Models").glob("*.cs"):
        source = file.read_text()
        changed = CSHARP_VALUE.sub(r"EmitDefaultValue = true\g<rest>", source)
        if changed != source:
            file.write_text(changed)
    return output


GENERATORS: Mapping[str, Callable[[Path], str]] = {
    generator.__name__: generator for generator in (python, typescript, go, java, csharp)
}


def main() -> None:
    """Generate the clients that the arguments name."""
    parser = argparse.ArgumentParser(description="Generate clients from openapi.json.")
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"one of: {', '.join(GENERATORS)}")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the generated clients")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.clients) - set(GENERATORS))
    if unknown:
        parser.error(f"unknown client: {', '.join(unknown)}; choose from {', '.join(GENERATORS)}")
    for name in arguments.clients or GENERATORS:
        folder = arguments.output.resolve() / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            GENERATORS[name](folder)
        except GeneratorMissingError as error:
            if arguments.clients:
                raise SystemExit(f"{name}: {error}") from error
            print(f"{name}: skipped, {error}")
        except GeneratorError as error:
            raise SystemExit(f"{name}: {error}") from error
        else:
            print(f"{name}: {folder}")


if __name__ == "__main__":
    main()
