"""All checks before the first step, over all ranks."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import distributed
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]

from allranks.contract import size, variables
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError, Problem
from allranks.runtime.preflight import clocks, facts, judging, links
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.finding import FAILED, OK, Finding
from allranks.runtime.preflight.table import table

if TYPE_CHECKING:
    from allranks.hardware.sizes import Size

VARIABLE = "ALLRANKS_PREFLIGHT"
"""`0` leaves the checks out."""

REPORT = "ALLRANKS_PREFLIGHT_REPORT"
"""A file into which rank 0 writes what was found, as JSON, also where a check failed."""

_TIMEOUT = timedelta(seconds=60)
"""How long a rank may take over its part: it is milliseconds where nothing is wrong."""

_LAST = timedelta(seconds=10)
"""How long the ranks that are well wait for the end that the failed one brings to all, and that one for their having
heard why."""


class Preflight:
    """The checks of one job. Each method has to be called by every rank.

    findings: what was found so far, the same on every rank
    """

    def __init__(self, env: RankEnv, store: Store) -> None:
        self._env = env
        self._store = PrefixStore("preflight", store)
        self._seconds = 0.0  # of the checks that are over
        self._began = 0.0
        self.findings: tuple[Finding, ...] = ()

    def before_the_group(self) -> None:
        """Names, clocks, shared memory, GPUs and versions: what is known without a process group, and would keep it
        from coming up. Raises InputError where a check failed."""
        env = self._env
        self._began = time.perf_counter()
        texts = self._gathered("facts", facts.gather(env).as_text())
        offsets = clocks.offsets(env, self._store, _TIMEOUT)
        self._conclude("before", _before([Facts.of_text(text) for text in texts], offsets, env) if texts else [])

    def in_the_group(self, device: torch.device) -> None:
        """The network between the instances and a first all-reduce. Raises InputError where a check failed.

        device: of this rank's tensors
        """
        env = self._env
        self._began = time.perf_counter()
        total = links.first_sum(env, device)
        texts = self._gathered("measured", links.as_text(links.measure_links(env), total))
        measured = [links.of_text(text) for text in texts]
        self._conclude("in", _in(measured, env) if texts else [])

    def _gathered(self, key: str, text: str) -> list[bytes]:
        """Every rank's text, on rank 0 alone."""
        self._store.set(f"{key}/{self._env.rank}", text)
        if self._env.rank != 0:
            return []
        keys = [f"{key}/{rank}" for rank in range(self._env.world_size)]
        self._store.wait(keys, _TIMEOUT)
        return list(self._store.multi_get(keys))

    def _conclude(self, part: str, findings: list[Finding]) -> None:
        """Tell every rank what rank 0 found. Where a check failed, the rank that it is about raises, and at last every
        other one."""
        if self._env.rank == 0:
            self._seconds += time.perf_counter() - self._began
            # Told before anybody can fail, and end this rank with it.
            if part == "in" or any(finding.state == FAILED for finding in findings):
                self._tell((*self.findings, *findings))
            self._store.set(part, json.dumps([asdict(finding) for finding in findings]))
        self._store.wait([part], _TIMEOUT * 2)
        self.findings += tuple(Finding(**record) for record in json.loads(self._store.get(part)))
        failed = [finding for finding in self.findings if finding.state == FAILED]
        if not failed:
            return
        heard = f"{part}/heard"
        self._store.set(f"{heard}/{self._env.rank}", "")
        if self._env.rank == next((finding.rank for finding in failed if finding.rank is not None), 0):
            # Its end ends all, and where it is rank 0 the store too: what still reads there would fail without a word
            # of why.
            with suppress(distributed.DistStoreError):
                self._store.wait([f"{heard}/{rank}" for rank in range(self._env.world_size)], _LAST)
        else:
            # The platform ends them for it. What fails by itself would be taken for a cause, by its time: and clocks
            # are among what may be wrong.
            time.sleep(_LAST.total_seconds())
        raise InputError.of(_problem(finding) for finding in failed)

    def _tell(self, findings: Sequence[Finding]) -> None:
        env = self._env
        instances = f"{env.instance_count} instance{'s' * (env.instance_count != 1)}"
        title = f"preflight: {env.world_size} ranks on {instances}, {self._seconds:.2f} s"
        report = os.environ.get(REPORT)
        if report:
            record = {
                "world_size": env.world_size,
                "instance_count": env.instance_count,
                "seconds": round(self._seconds, 3),
                "findings": [asdict(finding) for finding in findings],
            }
            Path(report).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        if all(finding.state == OK for finding in findings):
            print(f"allranks: {title}: {len(findings)} checks, all well", file=sys.stderr, flush=True)
        else:
            print(table(title, findings), file=sys.stderr, flush=True)


def wanted(env: RankEnv, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether there is anything to check between ranks, or a report is asked for, and nobody said that nothing is to be
    checked.

    Raises InputError where the variable is neither 0 nor 1.
    """
    on = variables.integer(environ, VARIABLE, below=2, default=1)
    return bool(on) and (env.world_size > 1 or bool(environ.get(REPORT)))


def _before(ranks: list[Facts], offsets: list[float], env: RankEnv) -> list[Finding]:
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


def _in(measured: list[tuple[list[links.Link], links.Sum]], env: RankEnv) -> list[Finding]:
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


def _ports(ranks: list[Facts]) -> str:
    rates = ranks[0].infiniband
    return f"{len(rates)} ports of {min(rates):g} Gbit/s on every instance" if rates else "none here, none promised"


def _size() -> Size | None:
    name = variables.text(os.environ, size.VARIABLE)
    if name is None or name == size.NONE:
        return None
    from allranks.hardware.sizes import known

    return known(name)


def _problem(finding: Finding) -> Problem:
    return Problem(
        f"preflight {finding.check}, {finding.who or 'all ranks'}", finding.found, finding.expected, finding.fix
    )
