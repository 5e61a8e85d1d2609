"""Generates ``covey_client._sync`` from ``covey_client._async``: the same client without an event loop.

    python clients/python/unasync.py            after a change of ``_async``
    python clients/python/unasync.py --check    the exit status is 1 if ``_sync`` is not up to date

The output is in the repository, so that readers, debuggers and the build need nothing of this file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "src" / "covey_client"
SOURCE = PACKAGE / "_async"
TARGET = PACKAGE / "_sync"

HEAD = "# Generated from {name} by unasync.py. Change that file instead.\n"

WORDS = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b(handle|set)_async_", r"\1_"),
    (r"\basyncio_detailed\b", "sync_detailed"),
    (r"\b_async\b", "_sync"),
    (r"\bAsyncRuntime\b", "BlockingRuntime"),
    (r"\bAsync([A-Z])", r"\1"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\ba(close|closing|iter_bytes|iter_lines|read)\b", r"\1"),
    (r"an event loop \(asyncio or trio\)", "blocking calls"),
    (r"programs with an event loop", "programs without an event loop"),
]
"""Words of the source with what they become, also in docstrings."""

SUMMARIES = {
    "client.py": '''\
    """A client of the service. Several threads can use it.

    >>> from covey_client import Covey
    >>> with Covey() as covey:
    ...     dataset = covey.upload("helpdesk.jsonl")
    ...     job = covey.train(
    ...         {"model": "docs", "dataset_id": dataset.id, "learner": {"algorithm": "mmp"}}, timeout=600
    ...     )
    ...     answer = covey.predict("docs", ["The courier says the parcel is late."], top=1)
    >>> job.state, answer.predictions[0].labels
    ('succeeded', ['shipping'])
''',
    "routing.py": '''\
    r"""A router of the service. Several threads can use it.

    >>> from covey_client import NotRouted, Router
    >>> with Router("frontdesk") as router:
    ...     router.route(b"Subject: parcel\\n\\nWhere is my parcel?").router
    'frontdesk'
    >>> with Router("frontdesk", "http://127.0.0.1:9") as router:
    ...     try:
    ...         router.route(b"Subject: parcel")
    ...     except NotRouted as error:
    ...         error.exit_status
    75
''',
}
"""Summary and example of the class of a module, because those of the source need an event loop."""


def convert(text: str, name: str) -> str:
    """Return the blocking form of a module.

    >>> convert("async def f(call: Callable[[], Awaitable[list[T]]]) -> T: return (await call())[0]", "m.py")
    'def f(call: Callable[[], list[T]]) -> T: return (call())[0]'
    """
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text)
    while (match := re.search(r"\bAwaitable\[", text)) is not None:
        end = _closing_bracket(text, match.end())
        text = text[: match.start()] + text[match.end() : end] + text[end + 1 :]
    if name in SUMMARIES:
        pattern = r'(?<=:\n) {4}""".*?\n(?=\n    Args:)'
        text, n = re.subn(pattern, lambda _: SUMMARIES[name], text, count=1, flags=re.DOTALL)
        assert n == 1, f"{name} has no class with a summary and arguments"  # noqa: S101
    return text


def _closing_bracket(text: str, start: int) -> int:
    """Return the index of the bracket that closes the one before a position."""
    depth = 1
    for i in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("a bracket is not closed")


def generate() -> dict[str, str]:
    """Return the modules of the package."""
    modules = {}
    for source in sorted(SOURCE.glob("*.py")):
        head = HEAD.format(name=f"_async/{source.name}")
        text = head + convert(source.read_text("utf-8"), source.name)
        # Other orders of imports, names that are not used any more, and shorter lines.
        text = _ruff("check", "--fix-only", "--select", "F401,I001", name=source.name, text=text)
        modules[source.name] = _ruff("format", name=source.name, text=text)
    return modules


def _ruff(*arguments: str, name: str, text: str) -> str:
    """Return the text of a module as Ruff changes it."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        *arguments,
        "--quiet",
        "--stdin-filename",
        str(TARGET / name),
        "-",
    ]
    return subprocess.run(command, input=text, capture_output=True, check=True, text=True).stdout


def contents(folder: Path) -> dict[str, str]:
    """Return the modules of a package."""
    return {path.name: path.read_text("utf-8") for path in folder.glob("*.py")}


def main() -> int:
    """Generate the package, or check it, and return the exit status."""
    generated = generate()
    if generated == contents(TARGET):
        return 0
    if "--check" in sys.argv:
        print(f"{TARGET} is not up to date; run: python clients/python/unasync.py", file=sys.stderr)
        return 1
    TARGET.mkdir(exist_ok=True)
    for name in contents(TARGET).keys() - generated.keys():
        (TARGET / name).unlink()
    for name, text in generated.items():
        (TARGET / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
