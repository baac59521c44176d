"""What runs before the script: it finds the process of a rank, and hides nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from allranks_lab.debugging import in_rank


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
    start = in_rank.program_index(words)
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
    assert in_rank.find_rank(variables) == rank


def test_a_users_sitecustomize_is_imported(tmp_path: Path) -> None:
    session, own = tmp_path / "session", tmp_path / "own"
    for folder in (session, own):
        folder.mkdir()
    shutil.copy(in_rank.__file__, session / "sitecustomize.py")
    (session / "settings.json").write_text(json.dumps({"ranks": [1]}))
    (own / "sitecustomize.py").write_text("own = 'mine'\n")
    (tmp_path / "train.py").write_text("import sys\nprint(sys.modules['sitecustomize'].own)\n")
    variables = {**os.environ, "RANK": "0", in_rank.VARIABLE: str(session), "PYTHONPATH": f"{session}:{own}"}
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.stdout == "mine\n", done.stderr
