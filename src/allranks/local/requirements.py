"""Check everything that a plan requires to run on this machine."""

from allranks import packages
from allranks.checks.plan import findings
from allranks.errors import InputError, Problem
from allranks.images import rootfs
from allranks.local import capacity, interpreters, machine
from allranks.local.instances.instance import InstanceKind
from allranks.local.options import Options
from allranks.plan.graph import Plan
from allranks.plan.ports import MOUNTED
from allranks.plan.walk import steps


def require(plan: Plan) -> tuple[Problem, ...]:
    """Return the warnings of a plan. Raise InputError with everything that prevents it from running, before anything is
    started: problems of the plan itself, and of this machine."""
    found = findings(plan)
    of_plan = (*found.errors, *found.machine)
    if problems := (*of_plan, *machine_problems(plan, is_possible=not of_plan)):
        raise InputError(*problems, *found.warnings)
    return (*found.warnings, *capacity.warnings(plan))


def warnings(plan: Plan) -> tuple[Problem, ...]:
    """Return the warnings of a plan that has been checked."""
    return (*findings(plan).warnings, *capacity.warnings(plan))


def machine_problems(plan: Plan, *, is_possible: bool = True) -> list[Problem]:
    """Return the plan's requirements that this machine lacks: launchers, packages, memory and processes for all ranks.

    is_possible: whether the plan itself can run, so that the memory and processes it needs are known
    """
    return [*(capacity.problems(plan) if is_possible else ()), *machine.problems(plan)]


def instance_problems(plan: Plan, options: Options, kind: InstanceKind) -> list[Problem]:
    """Return a problem if the plan needs containers, or injects a fault, that this kind of instances lacks."""
    if options.faults and (problems := packages.faults(options.faults).problems(plan, kind)):
        return list(problems)
    if not kind.isolated:
        for path, step in steps(plan.graph):
            if rootfs.of(interpreters.find(step.environment, plan.source)):
                found = f"step {path} runs in a container, which instances of the kind {kind.name} do not support"
                fix = "omit --instances loopback; without user namespaces: --environment venv"
                return [Problem("--environment", found, "instances of the rack", fix, code="no-user-namespaces")]
    return []


def unprotected_inputs(plan: Plan, kind: InstanceKind) -> list[str]:
    """Return a note if a process can write to inputs, because instances of this kind cannot mount; else nothing."""
    mounted = any(port.mode in MOUNTED for _, step in steps(plan.graph) for port in step.inputs)
    text = "inputs are not protected on loopback: a process can write to them; on Azure ML and in the rack it cannot"
    return [text] if mounted and not kind.isolated else []
