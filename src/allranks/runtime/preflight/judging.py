"""Evaluate the facts and measurements of all ranks. One pure function per check."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from allranks.contract import world
from allranks.contract.rank_env import RankEnv
from allranks.hardware import shared_memory as memory
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.finding import FAILED, OK, WARNING, Finding
from allranks.runtime.preflight.links import SLOW_BYTES_PER_SECOND, Link, Sum

if TYPE_CHECKING:
    from allranks.hardware.sizes import Size

CLOCK_SECONDS = 5.0
"""Difference between clocks from which there is a warning. A training does not depend on them, but the ranks' logs and
first failures are then in a wrong order, and tokens and certificates, which are valid for a limited time, begin to
fail."""

SUM_SECONDS = 2.0


def world_size(facts: Sequence[Facts], env: RankEnv, declared_instances: int, *, elastic: bool) -> Iterable[Finding]:
    """env: of any rank; declared_instances: number of instances of the job; elastic: whether fewer are allowed"""
    for rank in facts:
        if rank.world_size != facts[0].world_size:
            yield Finding(
                "world size",
                FAILED,
                f"counts {rank.world_size} ranks on {rank.host}",
                f"{facts[0].world_size}, as on rank {facts[0].rank}",
                "start every rank by the same launcher, with the same number of instances and processes",
                rank.instance,
                rank.rank,
            )
    if (problem := world.smaller(env, declared_instances)) is not None:
        state = WARNING if elastic else FAILED
        yield Finding("world size", state, problem.found, problem.expected, problem.fix)


def names(facts: Sequence[Facts]) -> Iterable[Finding]:
    for rank in first_ranks(facts):
        for name in rank.unresolved:
            yield Finding(
                "names",
                FAILED,
                f"{name} does not resolve on {rank.host}",
                "an address for the name of every instance of the job",
                "give the instances names that they all know (/etc/hosts or the virtual network's DNS)",
                rank.instance,
                rank.rank,
            )


def clocks(facts: Sequence[Facts], offsets: Sequence[float]) -> Iterable[Finding]:
    by_instance = {rank.instance: rank for rank in first_ranks(facts)}
    # The majority is right, even if instance 0's clock is wrong. Of two clocks, the first is right.
    reference = min(offsets, key=lambda offset: abs(offset - statistics.median(offsets)))
    for instance, offset in enumerate(offsets):
        difference = offset - reference
        if abs(difference) > CLOCK_SECONDS:
            direction = "ahead of" if difference > 0 else "behind"
            yield Finding(
                "clocks",
                WARNING,
                f"the clock of {by_instance[instance].host} is {abs(difference):.1f} s {direction} the others'",
                f"clocks within {CLOCK_SECONDS:g} s",
                "synchronise it (chrony, systemd-timesyncd), or replace the instance",
                instance,
                by_instance[instance].rank,
            )


def shared_memory(facts: Sequence[Facts]) -> Iterable[Finding]:
    for rank in first_ranks(facts):
        gpus = rank.gpu is not None
        count = sum(other.instance == rank.instance for other in facts)
        problem = memory.problem(rank.shm_bytes, count, gpus=gpus)
        if problem:
            # Ranks without GPUs need it only for data loader workers, and may have none.
            fatal = gpus or rank.shm_bytes < memory.A_RANK
            yield Finding(
                "/dev/shm",
                FAILED if fatal else WARNING,
                f"{problem.found} on {rank.host}",
                problem.expected,
                problem.fix,
                rank.instance,
                rank.rank,
            )


def infiniband(facts: Sequence[Facts], size: Size | None) -> Iterable[Finding]:
    """size: the size of every instance of the job; None if it is unknown"""
    instances = first_ranks(facts)
    expected_ports = (
        (size.infiniband_ports or 0) if size and size.infiniband else max(len(rank.infiniband) for rank in instances)
    )
    source = f"as {size.name} has" if size and size.infiniband else "as the others have"
    for rank in instances:
        if len(rank.infiniband) < expected_ports:
            yield Finding(
                "InfiniBand",
                FAILED,
                f"{len(rank.infiniband)} ports that NCCL can use on {rank.host}",
                f"{expected_ports}, {source}",
                "look at ibv_devinfo there: a port that is not ACTIVE is mended by another instance; with none at all "
                "the image lacks rdma-core, or the container /dev/infiniband",
                rank.instance,
                rank.rank,
            )
        elif expected_ports and rank.infiniband_off:
            yield Finding(
                "InfiniBand",
                WARNING,
                f"NCCL_IB_DISABLE leaves {expected_ports} ports on {rank.host} without use",
                "NCCL over InfiniBand",
                "unset NCCL_IB_DISABLE",
                rank.instance,
                rank.rank,
            )


def gpus(facts: Sequence[Facts]) -> Iterable[Finding]:
    owners: dict[tuple[int, str], Facts] = {}
    for rank in facts:
        if rank.gpu is None or rank.gpu_shared:
            continue
        owner = owners.setdefault((rank.instance, rank.gpu), rank)
        if owner is not rank:
            yield Finding(
                "GPUs",
                FAILED,
                f"has GPU {rank.gpu}, which is rank {owner.rank}'s",
                "a GPU of its own for each rank",
                "set process_count_per_instance to the number of GPUs of the size, and CUDA_VISIBLE_DEVICES to all of "
                "them or to none",
                rank.instance,
                rank.rank,
            )
    if 0 < sum(rank.gpu is None for rank in facts) < len(facts):
        for rank in facts:
            if rank.gpu is None:
                yield Finding(
                    "GPUs",
                    FAILED,
                    f"finds no GPU on {rank.host}, and others have one",
                    "a GPU for each rank, or for none",
                    "look at nvidia-smi there: a GPU that fell off the bus is mended by another instance",
                    rank.instance,
                    rank.rank,
                )


def versions(facts: Sequence[Facts]) -> Iterable[Finding]:
    for name in dict.fromkeys(name for rank in facts for name in rank.versions):
        by_rank = [rank.versions.get(name, "none") for rank in facts]
        (usual, _), *others = Counter(by_rank).most_common()
        if not others:
            continue
        for rank, version in zip(facts, by_rank, strict=True):
            if version != usual:
                yield Finding(
                    "versions",
                    WARNING,
                    f"{name} {version} on {rank.host}",
                    f"{name} {usual}, as on rank {by_rank.index(usual)}",
                    "run every instance with the same environment; does a start script install anything?",
                    rank.instance,
                    rank.rank,
                )


def sums(results: Sequence[Sum], local_world_size: int) -> Iterable[Finding]:
    for rank, result in enumerate(results):
        if not result.right:
            yield Finding(
                "all-reduce",
                FAILED,
                "the sum over the ranks is wrong",
                "the sum of what the ranks gave",
                "try the job without this instance: memory, a GPU or its link is broken",
                rank // local_world_size,
                rank,
            )
    slowest = max(results, key=lambda result: result.seconds)
    if slowest.seconds > SUM_SECONDS:
        rank = results.index(slowest)
        yield Finding(
            "all-reduce",
            WARNING,
            f"1 MiB took {slowest.seconds:.1f} s",
            f"at most {SUM_SECONDS:g} s",
            "do other jobs use the same cores?",
            rank // local_world_size,
            rank,
        )


def network(links: Sequence[Link], local_world_size: int) -> Iterable[Finding]:
    slow = [link for link in links if link.slow]
    # An instance with only slow links is the cause. Each of its neighbours has one good link.
    slow_counts = Counter(end for link in slow for end in (link.one, link.other))
    link_counts = Counter(end for link in links for end in (link.one, link.other))
    culprits = {end for end, count in slow_counts.items() if count == link_counts[end] and len(links) > 1}
    for link in slow:
        suspects = [end for end in (link.one, link.other) if end in culprits]
        instance = suspects[0] if len(suspects) == 1 else link.other
        peer = link.one if instance == link.other else link.other
        rate = min(link.there, link.back) * 8e-6
        yield Finding(
            "network",
            FAILED,
            f"{rate:.1f} Mbit/s between instance {instance} and instance {peer}",
            f"at least {SLOW_BYTES_PER_SECOND * 8e-6:g} Mbit/s",
            "replace the instance, or look for what else uses its network",
            instance,
            instance * local_world_size,
        )


def said_well(check: str, text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of a check, or one "ok" finding with this text if there are none."""
    return list(findings) or [Finding(check, OK, text)]


def first_ranks(facts: Sequence[Facts]) -> list[Facts]:
    """Return the facts of the first rank of each instance."""
    first: dict[int, Facts] = {}
    for rank in facts:
        first.setdefault(rank.instance, rank)
    return list(first.values())
