"""A step's launch on emulated instances."""

from __future__ import annotations

from collections.abc import Sequence

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.launch import Launch
from allranks.local.instances.kinds import Instance, InstanceKind
from allranks.plan.graph import Step


def launch_of(step: Step, instances: Sequence[Instance], kind: InstanceKind) -> Launch:
    """Return the launch of a step on these instances of that kind."""
    processes = DISTRIBUTIONS[step.distribution.type].module.processes(step.distribution, len(instances))
    return Launch(
        step.distribution,
        tuple(instance.address for instance in instances),
        tuple(instance.hostname for instance in instances),
        kind.master_port(instances[0]),
        kind.ports(len(processes)),
    )
