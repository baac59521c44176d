"""Commands in processes that are forked from one that has imported the SDK: each takes milliseconds instead of two
seconds, and its time and memory are measured."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import bounded

OTHER_USER = 65534
"""The id of the user who owns nothing."""


@dataclass(frozen=True)
class Request:
    """A command to run. closed: streams to close. other: whether another user runs it. patience: seconds to its end"""

    arguments: Sequence[str]
    folder: str
    output: str
    variables: Mapping[str, str]
    closed: Sequence[int] = ()
    other: bool = False
    patience: float = 30.0


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    code:    its exit code; 137 if it took longer than it may
    seconds: from its start to its end
    memory:  the most that it had at once, in bytes, with what it was forked with
    """

    code: int
    out: str
    err: str
    seconds: float
    memory: int


class Commands:
    """The process that commands are forked from. Use it as a context manager."""

    def __enter__(self) -> Commands:
        self._process = bounded.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._outputs = tempfile.TemporaryDirectory()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.__exit__(kind, error, traceback)  # closes its input, which ends it, and waits
        self._outputs.cleanup()

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        variables: Mapping[str, str] | None = None,
        closed: Sequence[int] = (),
        *,
        other: bool = False,
    ) -> Ended:
        """Runs the command in the folder to its end."""
        output = os.path.join(self._outputs.name, "output")
        request = Request(arguments, str(folder), output, variables or {}, closed, other)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(request)) + "\n")
        self._process.stdin.flush()
        code, seconds, memory = json.loads(self._process.stdout.readline())
        out, err = (Path(output + suffix).read_bytes().decode("utf-8", "replace") for suffix in (".out", ".err"))
        return Ended(code, out, err, seconds, memory)


def serve() -> None:
    """Runs the commands that are requested on standard input, one after another."""
    os.environ.setdefault("TQDM_DISABLE", "1")
    _import()
    for line in sys.stdin:
        request = Request(**json.loads(line))
        begin = time.monotonic()
        pid = os.fork()
        if not pid:
            with contextlib.suppress(BaseException):
                _become(request)
            os._exit(111)
        code, memory = _end(pid, request.patience)
        print(json.dumps((code, time.monotonic() - begin, memory)), flush=True)


def _import() -> None:
    """Imports what commands import, by using it."""
    import gc

    import dateutil.rrule  # noqa: F401
    import pydantic  # noqa: F401

    import allranks.api.steps
    import allranks.catalog
    import allranks.catalog.functions
    import allranks.cli.commands.check
    import allranks.cli.views.runs
    import allranks.history.stored
    import allranks.schedules.finding  # noqa: F401
    from allranks.checks.component import check
    from allranks.cli import main  # noqa: F401
    from allranks.local import engine  # noqa: F401
    from allranks.local.requirements import machine_problems
    from allranks.plan import codec
    from allranks.plan.reader import read_plan

    files = {
        "file.yml": "type: pipeline\njobs: {a: {type: command, command: echo, environment: 'azureml:a:1'}}",
        "file.py": "from azure.ai.ml import command\njob = command(command='echo', environment='azureml:a:1')\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
            plan = read_plan(os.path.join(folder, name), {}, Path(folder, "snapshots"))
            machine_problems(plan)
            codec.loads(codec.dumps(plan))
        check([])
    gc.freeze()  # what is here stays, also in the processes that are forked


def _end(pid: int, patience: float) -> tuple[int, int]:
    """Waits for a process, and kills it if it takes too long. Returns its exit code and its memory."""
    descriptor = os.pidfd_open(pid)
    ready, _, _ = select.select([descriptor], [], [], patience)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    os.close(descriptor)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return (code if code >= 0 else 128 - code), usage.ru_maxrss * 1024


def _become(request: Request) -> None:
    """Runs the command in this process, which ends with it."""
    from allranks.cli.main import main

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, suffix in ((1, ".out"), (2, ".err")):
        file = os.open(request.output + suffix, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    for number in request.closed:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.variables)
    if request.other:
        os.setgroups([])
        os.setgid(OTHER_USER)
        os.setuid(OTHER_USER)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tempfile.tempdir = None
    sys.argv = ["allranks", *request.arguments]
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
