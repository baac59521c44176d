"""Which processes belong to a rank."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
