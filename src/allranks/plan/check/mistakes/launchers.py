"""Warn of a launcher inside a launch that has already started the ranks, and of DeepSpeed's launcher on instances."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.contract.distributions import processes_per_instance
from allranks.contract.launchers import OF_ALL_INSTANCES, find
from allranks.contract.mpi import Mpi
from allranks.contract.shell_commands import simple_commands
from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
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


def launcher_of(command: str) -> str:
    """Return the launcher that a command starts, such as ``accelerate launch``; "" if it starts none."""
    simple = (find((each.program, *each.arguments)) for each in simple_commands(command))
    return next((found[0] for found in simple if found), "")


def of_step(_scope: Scope, step: Step) -> Iterator[Problem]:
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
