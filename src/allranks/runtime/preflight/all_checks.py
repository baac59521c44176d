"""All preflight checks, in the order of the table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from allranks.contract import own_variables, variables, world
from allranks.contract.rank_env import RankEnv
from allranks.runtime.preflight import hardware_checks, judging
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.finding import Finding
from allranks.runtime.preflight.links import Link, Sum

if TYPE_CHECKING:
    from allranks.hardware.sizes import Size


def before_the_group(ranks: Sequence[Facts], offsets: Sequence[float], env: RankEnv) -> list[Finding]:
    """Return the findings of the checks that need no process group, at least one per check.

    ranks:   facts of each rank
    offsets: offset of each instance's clock in seconds
    env:     of any rank
    """
    outcome = judging.said_well
    gpus = sum(rank.gpu is not None for rank in ranks)
    torch_version = ranks[0].versions["torch"]
    spread = max(offsets) - min(offsets)
    size = _size()
    instances = judging.first_ranks(ranks)
    return [
        *outcome(
            "world size",
            f"{env.world_size} ranks on {env.instance_count} instance{'s' * (env.instance_count > 1)}, as declared",
            judging.world_size(ranks, env, world.instances(env), elastic=world.elastic()),
        ),
        *outcome(
            "names", f"all resolve, and {env.master_addr} answers" if ranks[1:] else "none needed", judging.names(ranks)
        ),
        *outcome("clocks", f"within {spread * 1000:.0f} ms", judging.clocks(ranks, offsets)),
        *outcome(
            "/dev/shm", f"at least {min(rank.shm_bytes for rank in ranks) >> 20} MiB", judging.shared_memory(ranks)
        ),
        *outcome("GPUs", f"{gpus}, each rank its own" if gpus else "none: training on the CPU", judging.gpus(ranks)),
        *outcome("InfiniBand", _ports_text(ranks), judging.infiniband(ranks, size)),
        *outcome("links", _ports_text(ranks), hardware_checks.links(instances, size)),
        *outcome("topology", hardware_checks.topology_text(instances), hardware_checks.topology(instances, size)),
        *outcome("versions", f"torch {torch_version} and all else the same", judging.versions(ranks)),
    ]


def in_the_group(measured: Sequence[tuple[list[Link], Sum]], env: RankEnv) -> list[Finding]:
    """Return the findings of the checks on measurements in the process group, at least one per check.

    measured: per rank, the links that it measured, from its instance, and its first all-reduce
    env:      of any rank
    """
    outcome = judging.said_well
    ring = [link for links, _ in measured for link in links]
    sums = [total for _, total in measured]
    per_instance = env.local_world_size
    slowest = max(total.seconds for total in sums)
    rate = min((min(link.there, link.back) for link in ring), default=0.0) * 8e-9
    network = f"{len(ring)} between instances, the slowest {rate:.1f} Gbit/s" if ring else "none: one instance"
    return [
        *outcome("network", network, judging.network(ring, per_instance)),
        *outcome(
            "all-reduce", f"right on every rank, 1 MiB in {slowest * 1000:.0f} ms", judging.sums(sums, per_instance)
        ),
    ]


def _ports_text(ranks: Sequence[Facts]) -> str:
    rates = ranks[0].infiniband
    return f"{len(rates)} ports of {min(rates):g} Gbit/s on every instance" if rates else "none here, none promised"


def _size() -> Size | None:
    name = variables.text(os.environ, own_variables.SIZE)
    if name == own_variables.NO_SIZE:
        return None
    if name is None:
        from allranks.hardware import recognition

        return recognition.recognise(recognition.hardware()).size
    from allranks.hardware.sizes import known

    return known(name)
