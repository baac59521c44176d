"""Commands with a launcher, as they are typed at a terminal."""

import argparse
import importlib
import shlex
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from allranks.contract.launchers import Pasted, read, start_command
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
                launcher="torchrun",
                program=("torchrun",),
                options=("--tee", "3"),
                dropped=("--rdzv_endpoint=a:1", "--standalone"),
                counts={"instances": ("--nnodes 2", 2), "each": ("--nproc-per-node 4", 4)},
            ),
        ),
        (
            "python -m torch.distributed.launch --use_env --nproc_per_node gpu --node_rank 1 train.py",
            Pasted(
                ("train.py",),
                launcher="torch.distributed.launch",
                program=("python", "-m", "torch.distributed.launch"),
                options=("--use_env",),
                dropped=("--node_rank 1",),
                counts={"each": ("--nproc_per_node gpu", 0)},
            ),
        ),
        (
            "/opt/bin/accelerate launch --multi_gpu --num_machines=2 --num_processes 8 --mixed_precision bf16 train.py",
            Pasted(
                ("train.py",),
                launcher="accelerate launch",
                program=("/opt/bin/accelerate", "launch"),
                options=("--mixed_precision", "bf16"),
                dropped=("--multi_gpu",),
                counts={"instances": ("--num_machines 2", 2), "total": ("--num_processes 8", 8)},
            ),
        ),
        (
            "deepspeed --hostfile=h --num_nodes 2 --num_gpus 4 --no_local_rank train.py --deepspeed",
            Pasted(
                ("train.py", "--deepspeed"),
                launcher="deepspeed",
                program=("deepspeed",),
                options=("--no_local_rank",),
                dropped=("--hostfile=h",),
                counts={"instances": ("--num_nodes 2", 2), "each": ("--num_gpus 4", 4)},
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
                counts={"each": ("-N 2", 2), "total": ("-np 4", 4)},
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
        ("python -c pass", "no script"),
        ("torchrun -m train", "torchrun: no script"),
        ("torchrun --nnodes 1:4 train.py", "--nnodes 1:4 of torchrun"),
        ("mpirun -n many train.py", "-n many of mpirun"),
        ("mpirun -n 0 train.py", "-n 0 of mpirun"),
    ],
)
def test_a_command_that_starts_no_script_is_refused(command: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        read(shlex.split(command))


def test_accelerate_starts_several_processes_only_as_it_may() -> None:
    several = start_command("accelerate", "accelerate launch", Layout(2, 2))
    assert "--num_machines 2 --machine_rank $NODE_RANK --num_processes 4 --multi_gpu" in several
    assert "--multi_gpu" not in start_command("accelerate", "accelerate launch", Layout(1, 1))
    assert "--multi_gpu" not in start_command("accelerate", "accelerate launch", Layout(2, 2), "--config_file c.yaml")


def test_torchrun_starts_ranks_again_with_another_rendezvous() -> None:
    again = start_command("torchrun", "torchrun", Layout(2, 1), "--max_restarts 2")
    assert "--rdzv-backend c10d" in again
    assert "--node-rank" not in again
    assert "c10d" not in start_command("torchrun", "torchrun", Layout(1, 2), "--max_restarts 2")


def _parser_of_deepspeed(module: Any) -> argparse.ArgumentParser:
    made: list[argparse.ArgumentParser] = []
    with patch.object(argparse.ArgumentParser, "parse_args", lambda self, **_: made.append(self)):
        module.parse_args()
    return made[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launch", "module", "parser_of", "kept"),
    [
        ("torchrun", "torch.distributed.run", lambda module: module.get_args_parser(), "--max-restarts 1 --tee 3"),
        (
            "accelerate",
            "accelerate.commands.launch",
            lambda module: module.launch_command_parser(),
            "--mixed_precision bf16 --use_fsdp --config_file c.yaml",
        ),
        ("deepspeed", "deepspeed.launcher.runner", _parser_of_deepspeed, "--no_local_rank --bind_cores_to_rank"),
    ],
)
def test_the_installed_launcher_has_every_option(
    launch: str, module: str, parser_of: Callable[[Any], argparse.ArgumentParser], kept: str
) -> None:
    """Those that start it, and those that are kept of a pasted one; and it has a number for each part of a layout."""
    pytest.importorskip(module.partition(".")[0])
    actions = parser_of(importlib.import_module(module))._actions
    options = {option for action in actions for option in action.option_strings}
    start = shlex.split(start_command(launch, f"python -m {module}", Layout(2, 2), kept).rpartition("; ")[2])
    assert {word for word in start if word.startswith("--")} - options == set()
    pasted = read(["python", "-m", module, *kept.split(), "train.py"])
    assert " ".join(pasted.options) == kept
