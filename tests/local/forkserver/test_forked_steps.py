"""Which ranks of a run are forked from a fork server, and what they are given."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status
from allranks.plan.graph import Code, Parallel, Step
from allranks.plan.ports import Input, Literal
from allranks.plan.ports import Path as DataPath

SCRIPT = """
import sys
forked = "torch" in sys.modules
import torch
import json, os
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS", "PWD", "SHLVL", "_", "ASSIGNED")
environment = {name: os.environ.get(name) for name in names}
print(json.dumps([forked, sys.argv, __name__, os.getcwd() == os.environ["PWD"], environment]))
"""

NAMED = """
import sys
print("torch" in sys.modules)
if len(sys.argv) > 9:
    import torch
"""
"""It names torch and does not import it, which takes a rank that is not forked three seconds."""

SCORE = """
import sys
forked = "torch" in sys.modules
import torch
import json, numpy.random
print(json.dumps([numpy.random.rand(), forked, sys.argv, __name__]))
def run(batch):
    return batch
"""


@pytest.fixture
def code(tmp_path: Path) -> Code:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "score.py").write_text(SCORE)
    return Code(str(folder), "digest")


def step(code: Code, command: str = "python train.py --text '${{inputs.text}}' $RANK") -> Step:
    text = Input("text", "string", Literal("a  b"))
    return Step("train", command, code=code, inputs=(text,), distribution=PyTorch(2), instance_count=2)


def test_ranks_of_a_python_program_are_forked_and_the_same_as_cold_ones(kind: str, code: Code, run_steps) -> None:
    seen = []
    for cold in (False, True):
        record = run_steps(step(code), instances=kind, cold=cold, force_rerun=True)
        assert record.status is Status.COMPLETED, record.verdict
        logs = [json.loads(Path(rank.log).read_text()) for rank in record.step("train").ranks]
        assert [log.pop(0) for log in logs] == [not cold] * 4
        for log in logs:
            assert log[-1].pop("PWD")  # of the run's folder
        seen.append(logs)
    assert seen[0] == seen[1]
    assert seen[0][3][0] == ["train.py", "--text", "a  b", "3"]


def test_workers_of_a_parallel_step_are_forked_and_the_same_as_cold_ones(code: Code, run_steps) -> None:
    data = Input("data", "uri_folder", DataPath(code.folder), "ro_mount")
    score = Step("score", "python score.py --x 'a  b'", code=code, inputs=(data,))
    score = replace(score, parallel=Parallel("score.py", "${{inputs.data}}", 1, max_concurrency=2))
    for cold in (False, True):
        record = run_steps(score, cold=cold, force_rerun=True)
        assert record.status is Status.COMPLETED, record.verdict
        lines = Path(record.step("score").ranks[0].log).read_text().splitlines()
        workers = [json.loads(line) for line in lines if line.startswith("[")]
        assert len({worker.pop(0) for worker in workers}) == len(workers) > 0  # random numbers
        assert all(worker == [not cold, ["score.py", "--x", "a  b"], "score"] for worker in workers)


PROGRAMS = {
    "ASSIGNED=1 python -u train.py": True,
    "python train.py \\\n  --more\n": True,
    "python train.py | cat": True,
    "cd . && python train.py 2>&1; true": True,
    "python -c 'import train'": False,
    "OMP_NUM_THREADS=$((RANK + 100)) python train.py": False,
}


def test_programs_whose_imports_read_the_same_are_forked(code: Code, run_steps) -> None:
    (Path(code.folder) / "train.py").write_text(NAMED)
    record = run_steps(*(replace(step(code, command), name=f"step_{at}") for at, command in enumerate(PROGRAMS)))
    assert record.status is Status.COMPLETED, record.verdict
    logs = {command: [Path(rank.log).read_text() for rank in each.ranks]
            for command, each in zip(PROGRAMS, record.steps, strict=True)}  # fmt: skip
    assert logs == {command: [f"{forked}\n"] * 4 for command, forked in PROGRAMS.items()}
