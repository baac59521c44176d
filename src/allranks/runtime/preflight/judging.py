"""Evaluate the facts and measurements of all ranks. One pure function per check.

Arguments: `size` is the size of every instance of the job, None if unknown; `instances` are the facts of the first
rank of each instance.
"""

import os
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from allranks.contract import variables, world
from allranks.contract.rank_env import RankEnv
from allranks.hardware import recognition, sizes
from allranks.hardware import shared_memory as memory
from allranks.hardware.sizes import Size
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.findings import FAILED, OK, WARNING, Finding
from allranks.runtime.preflight.links import SLOW_BYTES_PER_SECOND, Link, Sum

CLOCK_SECONDS = 5.0
"""Difference between clocks that causes a warning. A training does not depend on clocks, but logs and first failures
are then in a wrong order, and tokens and certificates may be invalid."""

SUM_SECONDS = 2.0


def before_the_group(ranks: Sequence[Facts], offsets: Sequence[float], env: RankEnv) -> list[Finding]:
    """Return the findings of the checks that need no process group, at least one per check.

    ranks:   facts of each rank
    offsets: offset of each instance's clock in seconds
    env:     of any rank
    """
    size, instances = _job_size(), first_ranks(ranks)
    gpu_count = sum(rank.gpu is not None for rank in ranks)
    rates = ranks[0].infiniband
    ports = f"{len(rates)} ports of {min(rates):g} Gbit/s on every instance" if rates else "none here, none promised"
    plural = "s" * (env.instance_count > 1)
    return [
        *_with_ok(
            "world size",
            f"{env.world_size} ranks on {env.instance_count} instance{plural}, as declared",
            world_size(ranks, env, world.instances(env), elastic=world.elastic()),
        ),
        *_with_ok("names", f"all resolve, and {env.master_addr} answers" if ranks[1:] else "none needed", names(ranks)),
        *_with_ok("clocks", f"within {(max(offsets) - min(offsets)) * 1000:.0f} ms", clocks(ranks, offsets)),
        *_with_ok("/dev/shm", f"at least {min(rank.shm_bytes for rank in ranks) >> 20} MiB", shared_memory(ranks)),
        *_with_ok("GPUs", f"{gpu_count}, each rank its own" if gpu_count else "none: training on the CPU", gpus(ranks)),
        *_with_ok("InfiniBand", ports, infiniband(ranks, size)),
        *_with_ok("links", ports, port_rates(instances, size)),
        *_with_ok("topology", topology_text(instances), topology(instances, size)),
        *_with_ok("versions", f"torch {ranks[0].versions['torch']} and all else the same", versions(ranks)),
    ]


def in_the_group(measured: Sequence[tuple[list[Link], Sum]], env: RankEnv) -> list[Finding]:
    """Return the findings of the checks on measurements in the process group, at least one per check.

    measured: per rank, the links that it measured, from its instance, and its first all-reduce
    env:      of any rank
    """
    ring = [link for links, _ in measured for link in links]
    totals = [total for _, total in measured]
    slowest = max(total.seconds for total in totals)
    rate = min((min(link.there, link.back) for link in ring), default=0.0) * 8e-9
    speed = f"{len(ring)} between instances, the slowest {rate:.1f} Gbit/s" if ring else "none: one instance"
    right = f"right on every rank, 1 MiB in {slowest * 1000:.0f} ms"
    return [
        *_with_ok("network", speed, network(ring, env.local_world_size)),
        *_with_ok("all-reduce", right, sums(totals, env.local_world_size)),
    ]


def _with_ok(check: str, text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of a check, or one "ok" finding with this text if there are none."""
    return list(findings) or [Finding(check, OK, text)]


def _job_size() -> Size | None:
    name = variables.text(os.environ, variables.SIZE)
    if name == variables.NO_SIZE:
        return None
    return recognition.recognise().size if name is None else sizes.known(name)


def first_ranks(facts: Sequence[Facts]) -> list[Facts]:
    """Return the facts of the first rank of each instance."""
    return list({rank.instance: rank for rank in reversed(facts)}.values())[::-1]


def world_size(facts: Sequence[Facts], env: RankEnv, declared_instances: int, *, elastic: bool) -> Iterable[Finding]:
    """Check that all ranks count the same world, on all instances.

    env: of any rank; declared_instances: number of instances of the job; elastic: whether fewer are allowed
    """
    fix = "start every rank by the same launcher, with the same number of instances and processes"
    for rank in facts:
        if rank.world_size != facts[0].world_size:
            found = f"counts {rank.world_size} ranks on {rank.host}"
            expected = f"{facts[0].world_size}, as on rank {facts[0].rank}"
            yield Finding("world size", FAILED, found, expected, fix, *rank.place)
    if (problem := world.smaller(env, declared_instances)) is not None:
        state = WARNING if elastic else FAILED
        yield Finding("world size", state, problem.found, problem.expected, problem.fix)


def names(facts: Sequence[Facts]) -> Iterable[Finding]:
    expected = "an address for the name of every instance of the job"
    fix = "use names for the instances that all of them know (/etc/hosts or the virtual network's DNS)"
    for rank in first_ranks(facts):
        for name in rank.unresolved:
            yield Finding("names", FAILED, f"{name} does not resolve on {rank.host}", expected, fix, *rank.place)


def clocks(facts: Sequence[Facts], offsets: Sequence[float]) -> Iterable[Finding]:
    # The majority is right, even if instance 0's clock is wrong. Of two clocks, the first is right.
    reference = min(offsets, key=lambda offset: abs(offset - statistics.median(offsets)))
    expected = f"clocks within {CLOCK_SECONDS:g} s"
    fix = "synchronise it (chrony, systemd-timesyncd), or replace the instance"
    for rank in first_ranks(facts):
        difference = offsets[rank.instance] - reference
        if abs(difference) > CLOCK_SECONDS:
            direction = "ahead of" if difference > 0 else "behind"
            found = f"the clock of {rank.host} is {abs(difference):.1f} s {direction} the others'"
            yield Finding("clocks", WARNING, found, expected, fix, *rank.place)


def shared_memory(facts: Sequence[Facts]) -> Iterable[Finding]:
    for rank in first_ranks(facts):
        has_gpu = rank.gpu is not None
        count = sum(other.instance == rank.instance for other in facts)
        if problem := memory.problem(rank.shm_bytes, count, gpus=has_gpu):
            # Ranks without GPUs need it only for data loader workers, and may have none.
            state = FAILED if has_gpu or rank.shm_bytes < memory.A_RANK else WARNING
            found = f"{problem.found} on {rank.host}"
            yield Finding("/dev/shm", state, found, problem.expected, problem.fix, *rank.place)


def infiniband(facts: Sequence[Facts], size: Size | None) -> Iterable[Finding]:
    instances = first_ranks(facts)
    if size and size.infiniband:
        ports, source = size.infiniband_ports or 0, f"as {size.name} has"
    else:
        ports, source = max(len(rank.infiniband) for rank in instances), "as the others have"
    for rank in instances:
        if len(rank.infiniband) < ports:
            found = f"{len(rank.infiniband)} ports that NCCL can use on {rank.host}"
            fix = (
                "look at ibv_devinfo there: if a port is not ACTIVE, replace the instance; if there is none, the "
                "image lacks rdma-core, or the container lacks /dev/infiniband"
            )
            yield Finding("InfiniBand", FAILED, found, f"{ports}, {source}", fix, *rank.place)
        elif ports and rank.infiniband_off:
            found = f"NCCL_IB_DISABLE leaves {ports} ports on {rank.host} without use"
            yield Finding("InfiniBand", WARNING, found, "NCCL over InfiniBand", "unset NCCL_IB_DISABLE", *rank.place)


def port_rates(instances: Sequence[Facts], size: Size | None) -> Iterable[Finding]:
    """Yield a warning for each instance with an InfiniBand port slower than the size's, or than other instances'."""
    promised = (size.infiniband_gbit_s or 0) if size and size.infiniband else 0
    fastest = max((rate for rank in instances for rate in rank.infiniband), default=0.0)
    expected, source = (promised, f"as {size.name} has") if size and promised else (fastest, "as the others have")
    fix = "every collective waits for the slowest port: run ibv_devinfo there, and replace the instance"
    for rank in instances:
        # A rate of 0 is one that the kernel does not report.
        if slow := [rate for rate in rank.infiniband if 0 < rate < expected]:
            count = f"{len(slow)} of {len(rank.infiniband)}"
            found = f"{count} InfiniBand ports on {rank.host} run at {min(slow):g} Gbit/s"
            yield Finding("links", WARNING, found, f"{expected:g} Gbit/s, {source}", fix, *rank.place)


def topology(instances: Sequence[Facts], size: Size | None) -> Iterable[Finding]:
    """Yield a warning for each instance with GPUs of another size than the job's, or without a PCI topology."""
    for rank in instances:
        if rank.gpu is None:
            continue
        if size is not None and rank.sizes and size.name not in rank.sizes:
            found = f"{rank.host} has the hardware of {' or '.join(rank.sizes)}"
            expected = f"{size.name}, the size of the job"
            fix = "set ALLRANKS_SIZE to the size of the cluster, or unset it"
        elif rank.topology_file and not rank.topology_exists:
            found = f"NCCL_TOPO_FILE={rank.topology_file} does not exist on {rank.host}, and NCCL continues without it"
            expected = "a file of the image"
            fix = "use an image that has it, or unset NCCL_TOPO_FILE"
        elif rank.family and not rank.topology_file:
            found = f"NCCL knows no PCI topology on {rank.host}, and the virtual machine does not show it"
            expected = f"NCCL_TOPO_FILE with Azure's file for {rank.family}"
            fix = f"put {rank.family}-topo.xml of Azure/azhpc-images into /opt/microsoft, as allranks's images do"
        else:
            continue
        yield Finding("topology", WARNING, found, expected, fix, *rank.place)


def topology_text(instances: Sequence[Facts]) -> str:
    """Return the text of an "ok" finding."""
    first = instances[0]
    if first.gpu is None:
        return "no GPUs"
    name = " or ".join(first.sizes) or "hardware of no known size"
    return f"{name}, {first.topology_file or 'which needs no topology file'}"


def gpus(facts: Sequence[Facts]) -> Iterable[Finding]:
    owners: dict[tuple[int, str], Facts] = {}
    fix = (
        "set process_count_per_instance to the number of GPUs of the size, and CUDA_VISIBLE_DEVICES to all of them or "
        "to none"
    )
    for rank in facts:
        if rank.gpu is None or rank.gpu_shared:
            continue
        owner = owners.setdefault((rank.instance, rank.gpu), rank)
        if owner is not rank:
            found = f"has GPU {rank.gpu}, which is rank {owner.rank}'s"
            yield Finding("GPUs", FAILED, found, "a GPU of its own for each rank", fix, *rank.place)
    without = [rank for rank in facts if rank.gpu is None]
    fix = "run nvidia-smi there: if a GPU has fallen off the bus, replace the instance"
    for rank in without if len(without) < len(facts) else ():
        found = f"finds no GPU on {rank.host}, and others have one"
        yield Finding("GPUs", FAILED, found, "a GPU for each rank, or for none", fix, *rank.place)


def versions(facts: Sequence[Facts]) -> Iterable[Finding]:
    fix = "run every instance with the same environment; check whether a start script installs packages"
    for name in dict.fromkeys(name for rank in facts for name in rank.versions):
        by_rank = [rank.versions.get(name, "none") for rank in facts]
        usual = Counter(by_rank).most_common(1)[0][0]
        expected = f"{name} {usual}, as on rank {by_rank.index(usual)}"
        for rank, version in zip(facts, by_rank, strict=True):
            if version != usual:
                yield Finding("versions", WARNING, f"{name} {version} on {rank.host}", expected, fix, *rank.place)


def sums(results: Sequence[Sum], local_world_size: int) -> Iterable[Finding]:
    for rank, result in enumerate(results):
        if not result.right:
            fix = "try the job without this instance: memory, a GPU or its link is broken"
            found, expected = "the sum over the ranks is wrong", "the sum of the ranks' values"
            yield Finding("all-reduce", FAILED, found, expected, fix, rank // local_world_size, rank)
    slowest = max(results, key=lambda result: result.seconds)
    if slowest.seconds > SUM_SECONDS:
        rank = results.index(slowest)
        found, expected = f"1 MiB took {slowest.seconds:.1f} s", f"at most {SUM_SECONDS:g} s"
        fix = "check whether other jobs use the same cores"
        yield Finding("all-reduce", WARNING, found, expected, fix, rank // local_world_size, rank)


def network(links: Sequence[Link], local_world_size: int) -> Iterable[Finding]:
    slow = [link for link in links if link.slow]
    # An instance with only slow links is the cause. Each of its neighbours has one good link.
    slow_counts = Counter(end for link in slow for end in (link.one, link.other))
    link_counts = Counter(end for link in links for end in (link.one, link.other))
    culprits = {end for end, count in slow_counts.items() if count == link_counts[end] and len(links) > 1}
    expected = f"at least {SLOW_BYTES_PER_SECOND * 8e-6:g} Mbit/s"
    fix = "replace the instance, or find what else uses its network"
    for link in slow:
        suspects = [end for end in (link.one, link.other) if end in culprits]
        instance = suspects[0] if len(suspects) == 1 else link.other
        peer = link.one if instance == link.other else link.other
        rate = min(link.there, link.back) * 8e-6
        found = f"{rate:.1f} Mbit/s between instance {instance} and instance {peer}"
        yield Finding("network", FAILED, found, expected, fix, instance, instance * local_world_size)
