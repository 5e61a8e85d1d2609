"""The Go, Java and C# clients that openapi-generator generates compile, and work with a running service.

``make clients-long`` runs this.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import client_drivers
import generate_clients
import pytest
from required import missing
from stack import Stack

pytestmark = [pytest.mark.build, pytest.mark.long, pytest.mark.system]

JSON_NET = Path("/usr/lib/cli/Newtonsoft.Json-5.0/Newtonsoft.Json.dll")
ASSEMBLIES = (
    "System.Net.Http.dll",
    "System.ComponentModel.DataAnnotations.dll",
    "System.Runtime.Serialization.dll",
    "System.Web.dll",
)
"""The Debian packages ``libmono-system-…4.0-cil`` contain these."""


def require(program: str, package: str) -> None:
    """Skip the test if a compiler is not installed."""
    if shutil.which(program) is None:
        missing(f"{program} is not installed; install the Debian package {package}")


def test_the_go_client_works_from_the_upload_to_the_correction(stack: Stack, tmp_path: Path) -> None:
    require("go", "golang-go")
    if not (generate_clients.DEBIAN_GO / generate_clients.GO_DEPENDENCY).exists():
        missing("the Go package validator.v2 is not installed; install golang-gopkg-validator.v2-dev")
    client_drivers.generate("go", tmp_path / "covey")
    (tmp_path / "covey" / "drive").mkdir()
    shutil.copy(client_drivers.DRIVERS / "go" / "main.go", tmp_path / "covey" / "drive")
    env = {
        **os.environ,
        "GOFLAGS": "-mod=vendor",
        "GOPROXY": "off",
        "CGO_ENABLED": "0",
    }
    client_drivers.run("go", "build", "-o", tmp_path / "run", "./drive", cwd=tmp_path / "covey", env=env)
    inputs = client_drivers.write_inputs(tmp_path)
    output = client_drivers.run(tmp_path / "run", stack.url, *inputs, cwd=tmp_path)
    assert output.strip() == client_drivers.WORKS


def test_the_java_client_works_from_the_upload_to_the_correction(stack: Stack, tmp_path: Path) -> None:
    require("javac", "openjdk-17-jdk-headless")
    client_drivers.generate("java", tmp_path / "java")
    # The generator is one jar that contains Jackson, which is all that the client needs.
    package = importlib.util.find_spec("openapi_generator_cli")
    assert package is not None
    assert package.origin is not None
    jackson = Path(package.origin).parent / "openapi-generator.jar"
    sources = [
        str(client_drivers.DRIVERS / "java" / "Drive.java"),
        *map(str, (tmp_path / "java").glob("src/main/java/**/*.java")),
    ]
    (tmp_path / "sources").write_text("\n".join(sources))
    client_drivers.run("javac", "-nowarn", "-d", "classes", "-classpath", jackson, "@sources", cwd=tmp_path)
    inputs = client_drivers.write_inputs(tmp_path)
    classpath = f"{tmp_path / 'classes'}{os.pathsep}{jackson}"
    output = client_drivers.run("java", "-classpath", classpath, "Drive", stack.url, *inputs, cwd=tmp_path)
    assert output.strip() == client_drivers.WORKS


def test_the_csharp_client_works_from_the_upload_to_the_correction(stack: Stack, tmp_path: Path) -> None:
    require("mcs", "mono-mcs")
    require("mono", "mono-runtime")
    if not JSON_NET.exists():
        missing("Json.NET is not installed; install the Debian package libnewtonsoft-json5.0-cil")
    client_drivers.generate("csharp", tmp_path / "csharp")
    sources = [
        *(str(client_drivers.DRIVERS / "csharp" / name) for name in ("Substitutes.cs", "Drive.cs")),
        *(str(file) for file in (tmp_path / "csharp" / "src" / "Covey").rglob("*.cs")),
    ]
    (tmp_path / "sources").write_text("\n".join(sources))
    # The substitutes replace a class of Json.NET (436), and derive from it by its alias.
    references = [f"-reference:{name}" for name in (*ASSEMBLIES, JSON_NET, f"jsonnet={JSON_NET}")]
    options = ["-langversion:latest", "-nowarn:436", "-out:drive.exe"]
    client_drivers.run("mcs", *options, *references, "@sources", cwd=tmp_path)
    inputs = client_drivers.write_inputs(tmp_path)
    env = {**os.environ, "MONO_PATH": str(JSON_NET.parent)}
    output = client_drivers.run("mono", "drive.exe", stack.url, *inputs, cwd=tmp_path, env=env)
    assert output.strip() == client_drivers.WORKS
