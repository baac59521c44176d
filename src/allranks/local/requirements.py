"""Check everything that a plan requires to run on this machine."""

from __future__ import annotations

from pathlib import Path

from allranks.checks.plan import check
from allranks.contract.mpi import Mpi
from allranks.errors import Problem
from allranks.local import capacity, machine
from allranks.local.instances.kinds import InstanceKind
from allranks.local.launchers import mpi_ssh
from allranks.plan.graph import Plan, steps


def problems(plan: Plan, *, track: bool = True, mpi: str = "rsh") -> list[Problem]:
    """Return everything that prevents the plan from running: problems of the plan itself, of this machine, and, without
    MLflow (`track`), of steps that use its model registry.

    mpi: how mpirun reaches the instances, a key of the launchers of mpi
    """
    of_plan, of_machine = of_plan_and_machine(plan, mpi)
    return [*of_plan, *of_machine, *([] if track else machine.untracked(plan))]


def of_plan_and_machine(plan: Plan, mpi: str = "rsh") -> tuple[list[Problem], list[Problem]]:
    """Return the problems of the plan itself, and what this machine lacks to run it: launchers, packages, and memory
    and processes for all ranks."""
    of_plan = check(plan)
    # A count that no cluster has is one mistake, not two.
    return of_plan, [*(() if of_plan else capacity.problems(plan)), *machine.problems(plan, mpi)]


def of_instances(plan: Plan, mpi: str, kind: InstanceKind, folder: Path) -> list[Problem]:
    """Return what this kind of instances lacks for the plan: an sshd. folder: of the run"""
    if mpi != "ssh" or all(step.distribution.type != Mpi.type for _, step in steps(plan.graph)):
        return []
    problem = mpi_ssh.unfit(kind, folder)
    return [problem] if problem else []
