"""Warn of launchers inside a launch that has started the ranks, or on instances that do not find each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.contract.commands import simple_commands
from allranks.contract.distributions import processes_per_instance
from allranks.contract.launchers import OF_ALL_INSTANCES, find
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.errors import Problem
from allranks.plan.graph import Step

NESTED = Rule(
    "nested-launcher",
    Level.WARNING,
    "The command starts a launcher (`torchrun`, `accelerate launch`, `deepspeed`, `mpirun`), and Azure ML starts it "
    "once for each rank.",
    'huggingface/accelerate#3494; Microsoft Learn, "Distributed GPU training guide": one process per instance for a '
    "launcher, and no mpirun or DeepSpeed launcher in an MPI job",
    "set process_count_per_instance to 1, or start the script with python",
)
DEEPSPEED = Rule(
    "deepspeed-launcher",
    Level.WARNING,
    "The `deepspeed` launcher runs on several instances. It reaches them through ssh and a hostfile, which Azure ML "
    "does not give.",
    "deepspeedai/DeepSpeed#759 and #2535; Azure/azureml-examples#2077 and #2103",
    "use the distribution pytorch with a process for each GPU, and start the script with python; or give the launcher "
    "--no_ssh, --node_rank and a hostfile",
)
INSTANCES_APART = Rule(
    "instances-apart",
    Level.WARNING,
    "A launcher (`torchrun`, `accelerate launch`) runs on several instances and is not told the rank of its own. Each "
    "instance trains alone.",
    "https://docs.pytorch.org/docs/stable/elastic/run.html: torchrun starts one node by default; Microsoft Learn, "
    '"Distributed GPU training guide", per-node launch',
    "give the launcher the rank of the instance, or set process_count_per_instance and start the script with python",
)
_JOINS = re.compile(r"--(?:node|machine)[_-]rank\b|--rdzv|--config_file\b|\bPET_")
"""What tells a launcher how to join those of the other instances."""


def launcher_of(command: str) -> str:
    """Return the launcher that a command starts, such as ``accelerate launch``; "" if it starts none."""
    simple = (find((each.program, *each.arguments)) for each in simple_commands(command))
    return next((found[0] for found in simple if found), "")


def of_nested(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning about the launcher of a step's command."""
    launcher = launcher_of(step.command)
    processes = processes_per_instance(step.distribution)
    if not launcher:
        return
    by_ssh = launcher in OF_ALL_INSTANCES and "--no_ssh" not in step.command
    if processes > 1 or (isinstance(step.distribution, Mpi) and by_ssh):
        ranks = "rank" if processes == 1 else f"of the {processes} ranks of an instance"
        found = f"{launcher} in a step of distribution {step.distribution.type}: each {ranks} starts its own"
        yield NESTED.problem("command", found, "one launcher: Azure ML's, or that of the command", _fix(step))
    elif launcher == "deepspeed" and by_ssh and step.instance_count > 1:
        found = f"the launcher of DeepSpeed on {step.instance_count} instances: it starts ranks on the first one only"
        yield DEEPSPEED.problem("command", found, "a launch that does not need a hostfile")


def _fix(step: Step) -> str:
    if not isinstance(step.distribution, Mpi):
        return NESTED.fix
    if processes_per_instance(step.distribution) > 1:
        return "start the script with python: mpirun has started every rank"
    return "start the script with python, and set process_count_per_instance to the ranks that mpirun shall start"


def of_instances_apart(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if the launcher of a step's command starts a world on each instance."""
    launcher = launcher_of(step.command)
    by_node = isinstance(step.distribution, (Mpi, PyTorch)) and processes_per_instance(step.distribution) == 1
    if not launcher or launcher in OF_ALL_INSTANCES or not by_node or step.instance_count == 1:
        return
    if not _JOINS.search(step.command):
        rank, distribution = "$NODE_RANK", ""
        if isinstance(step.distribution, Mpi):
            rank, distribution = "$OMPI_COMM_WORLD_RANK", ", or use the distribution pytorch"
        option = "--machine_rank" if launcher == "accelerate launch" else "--node-rank"
        yield INSTANCES_APART.problem(
            "command",
            f"{launcher} on {step.instance_count} instances, without the rank of its own: each instance trains alone",
            "one launch of all instances",
            f"start the script with python, and set process_count_per_instance to the number of GPUs{distribution}; "
            f"or give {launcher} {option} {rank}, the number of instances and the address of the first",
        )
