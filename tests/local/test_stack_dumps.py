"""Which processes belong to a rank, and what is read of them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bounded
from allranks.local import stack_dumps
from run_records import make_ranks

INSTANCE = """
import os, subprocess, sys

files = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
command = [sys.argv[1], "-c", "read end"]
with subprocess.Popen(command, executable="/bin/sh", preexec_fn=os.setpgrp, **files) as worker:
    print(worker.pid, file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize(("name", "belongs"), [("ray::Worker.train", True), ("tensorboard", False)])
def test_workers_of_ray_belong_to_the_rank_that_leads_their_session(tmp_path: Path, name: str, belongs: bool) -> None:
    """They write to Ray's own files, not to the log of the rank."""
    (rank,) = make_ranks(1, 1)
    rank.log = str(tmp_path / "log.txt")
    command, pipe = [sys.executable, "-c", INSTANCE, name], subprocess.PIPE
    with (
        open(rank.log, "w") as log,
        bounded.Popen(command, stdin=pipe, stdout=log, stderr=pipe, start_new_session=True) as leader,
    ):
        assert leader.stderr is not None
        worker = int(leader.stderr.readline())
        found = dict(stack_dumps.processes_of([rank]))
        leader.communicate()
    assert found == {leader.pid: 0} | ({worker: 0} if belongs else {})


def _thread(name: str, *calls: tuple[str, str]) -> dict[str, Any]:
    frames = [{"name": function, "filename": file, "line": 1, "locals": None} for function, file in calls]
    return {"thread_name": name, "frames": frames, "owns_gil": False, "active": False}


SCRIPT, STANDARD = "/code/train.py", "/usr/lib/python3.11/threading.py"
WORKER = "/venv/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py"
LOADER = "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"
ENGINE = "/venv/lib/python3.11/site-packages/allranks/local/forkserver/flight_recorder.py"
EXITING = _thread("MainThread", ("_shutdown", STANDARD))
LOADING = _thread("MainThread", ("_next_data", LOADER), ("<module>", SCRIPT))


@pytest.mark.parametrize(
    ("processes", "waits_for"),
    [
        (
            [[EXITING, _thread("uploader", ("wait", STANDARD), ("send", SCRIPT))]],
            "its thread uploader, which is at `` (t",
        ),
        ([[EXITING, _thread("uploader", ("wait", STANDARD))]], "its thread uploader, which is in wait"),
        ([[EXITING, _thread("Dummy-1", ("_serve", ENGINE))]], ""),
        ([[_thread("MainThread", ("main", SCRIPT)), _thread("uploader", ("send", SCRIPT))]], ""),
        (
            [[LOADING], [_thread("MainThread", ("get", STANDARD), ("_worker_loop", WORKER), ("<module>", SCRIPT))]],
            "",
        ),
        (
            [[LOADING], [_thread("MainThread", ("read", SCRIPT), ("_worker_loop", WORKER), ("<module>", SCRIPT))]],
            "a worker of its data loader, which is at `` (train.py:1)",
        ),
    ],
)
def test_what_a_rank_waits_for_in_its_own_process_or_its_workers(
    monkeypatch: pytest.MonkeyPatch, processes: list[list[dict[str, Any]]], waits_for: str
) -> None:
    dumps = iter(processes)

    def dump(spy: str, pid: int, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(["py-spy"], 0, json.dumps(next(dumps)), "")

    monkeypatch.setattr(stack_dumps, "program", lambda: "py-spy")
    monkeypatch.setattr(stack_dumps, "processes_of", lambda ranks: [(os.getpid(), 0)] * len(processes))
    monkeypatch.setattr(stack_dumps, "_dump", dump)
    (stack,) = stack_dumps.rank_stacks(make_ranks(1, 1))
    assert stack.waits_for.startswith(waits_for) if waits_for else not stack.waits_for


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("bash", "-c", "until test -e marker;\n do read end; done"),
         "its shell runs `until test -e marker; do read end; done`"),
        (("bash", "-c", "cat; true"), "its shell runs `cat; true`"),
        (("bash", "train.sh", "-v"), "it runs `bash train.sh -v`, now `cat -`"),
        (("pip", "install", "torch"), "it runs `pip install torch`"),
        (("python", "install"), None),
        (("bash", "-c", f"{sys.executable} install; true"), None),
        (("bash", "-c", f"{sys.executable} install 2>errors.txt; true"), None),
    ],
    ids=["a loop over a marker file", "a program", "a script", "pip", "Python", "in a shell", "with output elsewhere"],
)  # fmt: skip
def test_what_a_rank_runs_that_has_not_started_python(
    tmp_path: Path, arguments: tuple[str, ...], command: str | None
) -> None:
    (tmp_path / "train.sh").write_text("cat -; true\n")
    (tmp_path / "install").write_text("import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n")
    (rank,) = make_ranks(1, 1)
    rank.log = str(tmp_path / "log.txt")
    program = "/bin/bash" if arguments[0] == "bash" else sys.executable
    pipe = subprocess.PIPE
    with (
        open(rank.log, "w") as log,
        bounded.Popen(arguments, executable=program, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=log) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        if "marker" not in str(arguments):  # the innermost program has started once it answers
            process.stdin.write(b"x\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"x\n"
        stacks = stack_dumps.shell_stacks([rank])
        (tmp_path / "marker").touch()
        process.communicate()
    assert [(stack.rank, stack.command, stack.pid) for stack in stacks] == (
        [] if command is None else [(0, command, process.pid)]
    )
