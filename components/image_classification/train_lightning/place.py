"""The processes of a training, started by the platform, torchrun, mpirun, or Lightning itself."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from allranks.contract import world
from allranks.runtime import detect
from allranks_steps.messages import bad_input

STARTED = "ALLRANKS_LIGHTNING_INSTANCES"
"""Set if Lightning starts processes: they have no launcher's variables, and read the instance count from it."""


@dataclass(frozen=True)
class Place:
    """The processes of a training: `devices` processes on each of `instance_count` instances.

    per_node: whether the platform started one process per instance, and Lightning starts the rest
    """

    instance_count: int
    devices: int
    per_node: bool


def find(devices: int | None, num_nodes: int | None, environ: Mapping[str, str] = os.environ) -> Place:
    """Return the processes of the training.

    devices:   processes on each instance; None for those of the launch
    num_nodes: instances; None for those of the launch

    Raise InputError if they do not match the launch: Lightning would wait for missing processes, or train on each
    instance separately. Also raise it if an elastic job continues on fewer instances.
    """
    if STARTED in environ:
        return Place(int(environ[STARTED]), devices or 1, per_node=True)
    env = detect(environ)
    world.require_all(env, environ)
    if num_nodes is not None and num_nodes != env.instance_count:
        raise bad_input(
            "num_nodes",
            f"{num_nodes} on a launch of {env.instance_count} instance{'s' * (env.instance_count > 1)}",
            str(env.instance_count),
            "leave num_nodes out, or set resources.instance_count to it",
        )
    if env.local_world_size > 1 and devices not in (None, env.local_world_size):
        raise bad_input(
            "devices",
            f"{devices}, while {env.launcher} started {env.local_world_size} processes on each instance",
            f"{env.local_world_size}, or none",
            "leave devices out, or set distribution.process_count_per_instance to 1: Lightning starts the rest",
        )
    process_count = devices or env.local_world_size
    return Place(env.instance_count, process_count, per_node=env.local_world_size == 1 and process_count > 1)
