"""The launch of a step on emulated instances, and the variables of its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allranks.contract import job as jobs
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.job import Job
from allranks.contract.launch import Launch, Process
from allranks.contract.variables import elastic_instances
from allranks.local.instances.kinds import Instance, InstanceKind
from allranks.local.scope import Scope
from allranks.plan import values
from allranks.plan.graph import Step


def rank_variables(
    variables: Mapping[str, str], job: Job, launch: Launch, process: Process, kind: InstanceKind
) -> dict[str, str]:
    """Return Azure ML's variables, those of this kind of instances, and the step's own, which take precedence.

    variables: the step's own
    """
    return {**jobs.environment(job, launch, process), **kind.environment(), **variables}


def variables_of(step: Step, scope: Scope) -> dict[str, str]:
    """Return the step's environment variables with their bindings resolved."""
    return {name: values.resolve(value, scope.lookup) or "" for name, value in step.environment_variables.items()}


def minimum_instances(step: Step, scope: Scope) -> int:
    """Return the least number of instances on which a step continues: all, unless it is elastic. Raise InputError for a
    range that is none."""
    limits = elastic_instances(variables_of(step, scope))
    return step.instance_count if limits is None else min(limits[0], step.instance_count)


def launch_of(step: Step, instances: Sequence[Instance], kind: InstanceKind) -> Launch:
    processes = DISTRIBUTIONS[step.distribution.type].module.processes(step.distribution, len(instances))
    return Launch(
        step.distribution,
        tuple(instance.address for instance in instances),
        tuple(instance.hostname for instance in instances),
        kind.master_port(instances[0]),
        kind.ports(len(processes)),
    )
