"""Warn of a launcher on several instances that is not told of the others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.contract.distributions import processes_per_instance
from allranks.contract.launchers import OF_ALL_INSTANCES
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.errors import Problem
from allranks.plan.check.mistakes.launchers import launcher_of
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step

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


def of_step(_scope: Scope, step: Step) -> Iterator[Problem]:
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
