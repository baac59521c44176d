"""What runs before the script: it finds the process of a rank, hides nothing, and holds the time-outs of torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from allranks.local.debugging import in_rank


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python train.py --rank 3", "train.py --rank 3"),
        ("python -u -X dev -W error train.py", "train.py"),
        ("python -m package.train", "-m package.train"),
        ("python /env/bin/mldesigner execute", "/env/bin/mldesigner execute"),
        ("python -c pass", ""),
        ("python", ""),
        ("python /env/bin/torchrun train.py", ""),
        ("python -m torch.distributed.run train.py", ""),
        ("python -u -m deepspeed.launcher.launch train.py", ""),
        ("python -m pip install x", ""),
        ("python /env/lib/python3.11/site-packages/ray/_private/workers/default_worker.py", ""),
    ],
)
def test_the_commands_that_run_a_program_of_the_user(command: str, expected: str) -> None:
    words = command.split()
    start = in_rank.program_of(words)
    assert " ".join(words[start:] if start else []) == expected


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({"RANK": "3", "ALLRANKS_REPORT": "/r/0_rank_1.jsonl"}, 3),
        ({"ALLRANKS_REPORT": "/r/0_rank_12.jsonl"}, 12),
        ({}, None),
    ],
)
def test_the_rank_of_a_process(variables: dict[str, str], rank: int | None) -> None:
    assert in_rank.own_rank(variables) == rank


SCRIPT = """
import sys
from datetime import timedelta
import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=3))
for group in (None, dist.new_group(timeout=timedelta(seconds=3))):
    group = group or dist.distributed_c10d._get_default_group()
    print(group._get_backend(torch.device("cpu")).options._timeout.days)
print(sys.modules["sitecustomize"].own)
"""


@pytest.mark.slow
def test_the_other_ranks_wait_and_a_users_sitecustomize_is_imported(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    session, own = tmp_path / "session", tmp_path / "own"
    for folder in (session, own):
        folder.mkdir()
    shutil.copy(in_rank.__file__, session / "sitecustomize.py")
    (session / "settings.json").write_text(json.dumps({"ranks": [1]}))
    (own / "sitecustomize.py").write_text("own = 'mine'\n")
    (tmp_path / "train.py").write_text(SCRIPT)
    variables = {**os.environ, "RANK": "0", in_rank.VARIABLE: str(session), "PYTHONPATH": f"{session}:{own}"}
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.stdout.split() == ["30", "30", "mine"], done.stderr
