"""All checks, in the order in which they are shown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from allranks.contract import own_variables, variables
from allranks.contract.rank_env import RankEnv
from allranks.runtime.preflight import judging
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.finding import Finding
from allranks.runtime.preflight.links import Link, Sum

if TYPE_CHECKING:
    from allranks.hardware.sizes import Size


def before_the_group(ranks: Sequence[Facts], offsets: Sequence[float], env: RankEnv) -> list[Finding]:
    """One finding or more for each check that needs no process group.

    ranks: the facts of each rank; offsets: in s, of each instance's clock; env: of any rank
    """
    well = judging.said_well
    gpus = sum(rank.gpu is not None for rank in ranks)
    torch_version = ranks[0].versions["torch"]
    apart = max(offsets) - min(offsets)
    return [
        *well(
            "names", f"all resolve, and {env.master_addr} answers" if ranks[1:] else "none needed", judging.names(ranks)
        ),
        *well("clocks", f"within {apart * 1000:.0f} ms", judging.clocks(ranks, offsets)),
        *well("/dev/shm", f"at least {min(rank.shm_bytes for rank in ranks) >> 20} MiB", judging.shared_memory(ranks)),
        *well("GPUs", f"{gpus}, each rank its own" if gpus else "none: training on the CPU", judging.gpus(ranks)),
        *well("InfiniBand", _ports(ranks), judging.infiniband(ranks, _size())),
        *well("versions", f"torch {torch_version} and all else the same", judging.versions(ranks)),
    ]


def in_the_group(measured: Sequence[tuple[list[Link], Sum]], env: RankEnv) -> list[Finding]:
    """Return the same for what the ranks measured within it.

    measured: by each rank, the links from its instance, if it measured any, and the first all-reduce
    """
    well = judging.said_well
    ring = [link for of_rank, _ in measured for link in of_rank]
    sums = [total for _, total in measured]
    each = env.local_world_size
    slowest = max(total.seconds for total in sums)
    rate = min((min(link.there, link.back) for link in ring), default=0.0) * 8e-9
    network = f"{len(ring)} between instances, the slowest {rate:.1f} Gbit/s" if ring else "none: one instance"
    return [
        *well("network", network, judging.network(ring, each)),
        *well("all-reduce", f"right on every rank, 1 MiB in {slowest * 1000:.0f} ms", judging.sums(sums, each)),
    ]


def _ports(ranks: Sequence[Facts]) -> str:
    rates = ranks[0].infiniband
    return f"{len(rates)} ports of {min(rates):g} Gbit/s on every instance" if rates else "none here, none promised"


def _size() -> Size | None:
    name = variables.text(os.environ, own_variables.SIZE)
    if name is None or name == own_variables.NO_SIZE:
        return None
    from allranks.hardware.sizes import known

    return known(name)
