"""Warn of a launcher inside a launch that has already started the ranks, and of DeepSpeed's launcher on instances."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.contract.distributions import processes_per_instance
from allranks.contract.mpi import Mpi
from allranks.contract.shell_commands import SimpleCommand, simple_commands
from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step

NESTED = Rule(
    "nested-launcher",
    Level.WARNING,
    "The command starts a launcher (`torchrun`, `accelerate launch`, `deepspeed`, `mpirun`), and Azure ML starts it "
    "once for each rank. Under MPI, a launcher of the ranks of an instance also needs the rank of the instance.",
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
    "use the distribution pytorch with a process for each GPU, and start the script with python",
)

_MODULES = {
    "accelerate.commands.launch": "accelerate launch",
    "deepspeed.launcher.runner": "deepspeed",
    "torch.distributed.launch": "torch.distributed.launch",
    "torch.distributed.run": "torchrun",
}
_PROGRAMS = frozenset({"deepspeed", "horovodrun", "mpiexec", "mpirun", "torchrun"})
_OF_ALL_INSTANCES = frozenset({"deepspeed", "horovodrun", "mpiexec", "mpirun"})
"""Launchers that start the ranks of all instances from the first one; the others start those of their own instance."""

_JOINS = re.compile(r"--(?:node|machine)[_-]rank\b|--rdzv|--config_file\b|\bPET_")
"""What tells a launcher of one instance how to join those of the others."""


def launcher_of(command: str) -> str:
    """Return the launcher that a command starts, such as ``accelerate launch``; "" if it starts none."""
    return next((name for simple in simple_commands(command) if (name := _launcher(simple))), "")


def _launcher(simple: SimpleCommand) -> str:
    if simple.name == "accelerate":
        return "accelerate launch" if simple.arguments[:1] == ("launch",) else ""
    if simple.name.startswith("python") and "-m" in simple.arguments[:-1]:
        return _MODULES.get(simple.arguments[simple.arguments.index("-m") + 1], "")
    return simple.name if simple.name in _PROGRAMS else ""


def of_step(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning about the launcher of a step's command."""
    launcher = launcher_of(step.command)
    processes = processes_per_instance(step.distribution)
    if not launcher:
        return
    if isinstance(step.distribution, Mpi):
        yield from _in_mpi(step, launcher)
    elif processes > 1:
        found = f"{_inside(step, launcher)}: each of the {processes} ranks of an instance starts its own"
        yield NESTED.problem("command", found, _ONE)
    elif launcher == "deepspeed" and step.instance_count > 1:
        found = f"the launcher of DeepSpeed on {step.instance_count} instances: it starts ranks on the first one only"
        yield DEEPSPEED.problem("command", found, "a launch that does not need a hostfile")


_ONE = "one launcher: Azure ML's, or that of the command"


def _in_mpi(step: Step, launcher: str) -> Iterator[Problem]:
    """Yield a warning, but not of a per-node launch, which Azure ML documents with one MPI process per instance."""
    processes = processes_per_instance(step.distribution)
    by_python = "start the script with python, and set process_count_per_instance to the number of GPUs"
    if processes > 1:
        found = f"{_inside(step, launcher)}: each of the {processes} ranks of an instance starts its own"
        yield NESTED.problem("command", found, _ONE, "start the script with python: mpirun has started every rank")
    elif launcher in _OF_ALL_INSTANCES:
        found = f"{_inside(step, launcher)}: each rank starts its own"
        yield NESTED.problem("command", found, _ONE, f"{by_python}: Azure ML's mpirun starts every rank")
    elif step.instance_count > 1 and not _JOINS.search(step.command):
        found = f"{_inside(step, launcher)}: without the rank of its instance, each instance trains alone"
        fix = f"{by_python}, or use the distribution pytorch; or give {launcher} the rank: $OMPI_COMM_WORLD_RANK"
        yield NESTED.problem("command", found, "one launch of all instances", fix)


def _inside(step: Step, launcher: str) -> str:
    return f"{launcher} in a step of distribution {step.distribution.type}"
