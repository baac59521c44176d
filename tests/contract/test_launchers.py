"""Commands with a launcher, as they are typed at a terminal."""

from __future__ import annotations

import argparse
import importlib
import shlex
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from allranks.contract import launchers
from allranks.contract.launchers import ACCELERATE, DEEPSPEED, TORCHRUN, Launcher, Pasted, read, start_command
from allranks.contract.layout import Layout
from allranks.errors import InputError


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("train.py --epochs 3 -m x", Pasted(("train.py", "--epochs", "3", "-m", "x"))),
        ("A=1 B=x=y python3 -u train.py", Pasted(("train.py",), {"A": "1", "B": "x=y"})),
        (
            "torchrun --nnodes 2 --nproc-per-node=4 --tee 3 --rdzv_endpoint=a:1 --standalone train.py --nnodes 9",
            Pasted(
                ("train.py", "--nnodes", "9"),
                name="torchrun",
                program=("torchrun",),
                options=("--tee", "3"),
                dropped=("--rdzv_endpoint=a:1", "--standalone"),
                instances=("--nnodes 2", 2),
                each=("--nproc-per-node 4", 4),
            ),
        ),
        (
            "python -m torch.distributed.launch --use_env --nproc_per_node gpu --node_rank 1 train.py",
            Pasted(
                ("train.py",),
                name="torch.distributed.launch",
                program=("python", "-m", "torch.distributed.launch"),
                dropped=("--node_rank 1",),
            ),
        ),
        (
            "/opt/bin/accelerate launch --multi_gpu --num_machines=2 --num_processes 8 --mixed_precision bf16 train.py",
            Pasted(
                ("train.py",),
                name="accelerate launch",
                program=("/opt/bin/accelerate", "launch"),
                options=("--mixed_precision", "bf16"),
                dropped=("--multi_gpu",),
                instances=("--num_machines 2", 2),
                total=("--num_processes 8", 8),
            ),
        ),
        (
            "deepspeed --hostfile=h --num_nodes 2 --num_gpus 4 --no_local_rank train.py --deepspeed",
            Pasted(
                ("train.py", "--deepspeed"),
                name="deepspeed",
                program=("deepspeed",),
                options=("--no_local_rank",),
                dropped=("--hostfile=h",),
                instances=("--num_nodes 2", 2),
                each=("--num_gpus 4", 4),
            ),
        ),
        (
            "mpirun -np 4 -N 2 -x A=1 -x B --mca btl tcp,self --allow-run-as-root python train.py -n 3",
            Pasted(
                ("train.py", "-n", "3"),
                {"A": "1"},
                "mpirun",
                ("mpirun",),
                dropped=("-x B", "--mca btl tcp,self", "--allow-run-as-root"),
                each=("-N 2", 2),
                total=("-np 4", 4),
            ),
        ),
    ],
)
def test_a_command_is_read(command: str, expected: Pasted) -> None:
    assert read(shlex.split(command)) == expected


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "no script"),
        ("A=1", "no script"),
        ("torchrun --nproc-per-node 4", "torchrun: no script"),
        ("python -c pass", "-c in place of a script"),
        ("torchrun -m train", "-m of torchrun: it starts something else"),
        ("torchrun --nnodes 1:4 train.py", "--nnodes 1:4 of torchrun"),
        ("mpirun -n many train.py", "-n many of mpirun"),
        ("mpirun -n 0 train.py", "-n 0 of mpirun"),
    ],
)
def test_a_command_that_starts_no_script_is_refused(command: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        read(shlex.split(command))


def test_accelerate_starts_several_processes_only_as_it_may() -> None:
    several = start_command(ACCELERATE, "accelerate launch", Layout(2, 2))
    assert "--num_machines 2 --machine_rank $NODE_RANK --num_processes 4 --multi_gpu" in several
    assert "--multi_gpu" not in start_command(ACCELERATE, "accelerate launch", Layout(1, 1))
    assert "--multi_gpu" not in start_command(ACCELERATE, "accelerate launch", Layout(2, 2), "--config_file c.yaml")


def test_torchrun_starts_ranks_again_with_another_rendezvous() -> None:
    again = start_command(TORCHRUN, "torchrun", Layout(2, 1), "--max_restarts 2")
    assert "--rdzv-backend c10d" in again
    assert "--node-rank" not in again
    assert "c10d" not in start_command(TORCHRUN, "torchrun", Layout(1, 2), "--max_restarts 2")


def _parser_of_deepspeed(module: Any) -> argparse.ArgumentParser:
    made = []
    with (
        patch.object(argparse.ArgumentParser, "parse_args", lambda self, **_: made.append(self)),
    ):
        module.parse_args()
    return made[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "module", "parser_of"),
    [
        (TORCHRUN, "torch.distributed.run", lambda module: module.get_args_parser()),
        (ACCELERATE, "accelerate.commands.launch", lambda module: module.launch_command_parser()),
        (DEEPSPEED, "deepspeed.launcher.runner", _parser_of_deepspeed),
    ],
    ids=["torchrun", "accelerate", "deepspeed"],
)
def test_the_options_are_those_of_the_installed_launcher(
    launcher: Launcher, module: str, parser_of: Callable[[Any], argparse.ArgumentParser]
) -> None:
    """Every option without a value is known as such, and no other; and the launcher has each option that is named."""
    pytest.importorskip(module.partition(".")[0])
    actions = parser_of(importlib.import_module(module))._actions
    names = {
        option.lstrip("-").replace("-", "_"): action.nargs == 0
        for action in actions
        for option in action.option_strings
    }
    flags = {name for name, is_flag in names.items() if is_flag} - {"h", "help"}
    assert flags - launcher.flags == set()
    assert {name for name in launcher.flags if names.get(name) is False} == set()
    told = launcher.instances | launcher.each | launcher.total | launcher.by_platform
    assert told - names.keys() == set()
    assert launchers.find(["python", "-m", module]) is not None
