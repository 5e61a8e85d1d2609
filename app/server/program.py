"""The programs that a supervisor runs as child processes."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Closable(Protocol):
    """A file or a socket."""

    def close(self) -> None:
        """Close it."""
        ...


@dataclass(frozen=True)
class Program:
    """A program with its arguments, as another process would execute it.

    Attributes:
        command: the program and its arguments.
        module: the Python module whose program it is. The process then is a fork of the supervisor, which has
            imported all that the module needs. None: the process executes ``command``.
        inherited_fds: file descriptors that an executed program gets, besides the standard ones.
        closed: files and sockets of the supervisor that a fork closes.
    """

    command: tuple[str, ...]
    module: str | None = None
    inherited_fds: tuple[int, ...] = ()
    closed: tuple[Closable, ...] = ()

    @classmethod
    def python(
        cls,
        module: str,
        *arguments: str,
        inherited_fds: tuple[int, ...] = (),
        closed: tuple[Closable, ...] = (),
    ) -> Program:
        """Return the program of a Python module, for a supervisor that has imported what it needs."""
        return cls((sys.executable, "-m", module, *arguments), module, inherited_fds, closed)

    def installed(self) -> Program:
        """Return the program as it is installed now, which a fork of the supervisor need not be."""
        return Program(self.command, None, self.inherited_fds)

    def run(self, options: Sequence[str], fds: Sequence[int]) -> None:
        """Run the program in this new process.

        Args:
            options: more arguments.
            fds: more file descriptors that the program gets.
        """
        # Ctrl-C in a terminal reaches only the supervisor, which stops its children in order.
        os.setsid()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        command = [*self.command, *options]
        if self.module is None:
            for fd in (*self.inherited_fds, *fds):
                os.set_inheritable(fd, True)
            os.execvp(command[0], command)  # noqa: S606
        for file in self.closed:
            file.close()
        sys.argv = command[2:]
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)
