"""The preflight checks on a rank: send its facts to rank 0, and receive the findings about all ranks."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]

from allranks.contract import variables, world
from allranks.contract.rank_env import RankEnv
from allranks.errors import Problem, raise_any
from allranks.runtime.preflight import facts, judging, links
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.findings import FAILED, REPORT_VARIABLE, Finding, print_findings
from allranks.runtime.preflight.links import Link, Sum

VARIABLE = "ALLRANKS_PREFLIGHT"
"""`0` disables the checks."""

_TIMEOUT = timedelta(seconds=60)
"""Time limit for a rank's part of the checks, which takes milliseconds if nothing is wrong."""

_READ_WAIT = timedelta(seconds=10)
"""Time that rank 0, or the rank that failed a check, waits for the others to read the findings, and that these then
wait for the platform to end them."""


class Preflight:
    """The preflight checks of one job. Every rank must call each method.

    findings: the findings so far, the same on every rank
    """

    def __init__(self, env: RankEnv, store: Store) -> None:
        self._env = env
        self._store = PrefixStore("preflight", store)
        self._seconds = 0.0  # duration of the completed checks
        self._started_at = 0.0
        self.findings: tuple[Finding, ...] = ()

    def before_the_group(self) -> None:
        """Check the world size, names, clocks, shared memory, GPUs, InfiniBand and versions, because faults may prevent
        the initialisation of the process group. Raise InputError if a check failed."""
        env = self._env
        self._started_at = time.perf_counter()
        found = self._gather("facts", asdict(facts.gather(env)))
        offsets = clock_offsets(env, self._store, _TIMEOUT)
        ranks = [Facts(**each) for each in found]
        self._conclude("before", judging.before_the_group(ranks, offsets, env) if ranks else [])

    def in_the_group(self, device: torch.device) -> None:
        """Check the network between the instances and a first all-reduce. Raise InputError if a check failed.

        device: device of this rank's tensors
        """
        env = self._env
        self._started_at = time.perf_counter()
        total = links.first_sum(env, device)
        found = self._gather("measured", [[asdict(link) for link in links.measure_links(env)], asdict(total)])
        measured = [([Link(**link) for link in of_rank], Sum(**total)) for of_rank, total in found]
        self._conclude("in", judging.in_the_group(measured, env) if measured else [])

    def _gather(self, key: str, value: Any) -> list[Any]:
        """Return every rank's value, which is sent as JSON, on rank 0, [] on other ranks."""
        self._store.set(f"{key}/{self._env.rank}", json.dumps(value))
        if self._env.rank != 0:
            return []
        keys = [f"{key}/{rank}" for rank in range(self._env.world_size)]
        self._store.wait(keys, _TIMEOUT)
        return [json.loads(text) for text in self._store.multi_get(keys)]

    def _conclude(self, part: str, findings: list[Finding]) -> None:
        """Send rank 0's findings to all ranks. Raise InputError if a check failed, first on the rank that caused it."""
        if self._env.rank == 0:
            self._seconds += time.perf_counter() - self._started_at
            # Printed first, because the failure of another rank may end this rank.
            if part == "in" or any(finding.state == FAILED for finding in findings):
                print_findings(self._env, self._seconds, (*self.findings, *findings))
            self._store.set(part, json.dumps([asdict(finding) for finding in findings]))
        self._store.wait([part], _TIMEOUT * 2)
        self.findings += tuple(Finding(**record) for record in json.loads(self._store.get(part)))
        heard = [f"{part}/heard/{rank}" for rank in range(self._env.world_size)]
        self._store.set(heard[self._env.rank], "")
        failed = [finding for finding in self.findings if finding.state == FAILED]
        if self._env.rank == next((finding.rank for finding in failed if finding.rank is not None), 0):
            # The end of a failed rank ends the others, and that of rank 0 the store. A rank that has not read the
            # findings by then would fail without the reason, or although all is well.
            with suppress(distributed.DistStoreError):
                self._store.wait(heard, _READ_WAIT)
        elif failed:
            # The platform ends these ranks. A rank that fails by itself could be taken for the first failure, which is
            # found by its time, and the clocks may be wrong.
            time.sleep(_READ_WAIT.total_seconds())
        raise_any(_problem(finding) for finding in failed)


def is_enabled(env: RankEnv, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether to run the checks: they are not disabled, and several ranks are running or declared, or a report
    is requested.

    Raise InputError if the variable is neither 0 nor 1.
    """
    enabled = variables.integer(environ, VARIABLE, below=2, default=1)
    several = env.world_size > 1 or world.instances(env, environ) > env.instance_count
    return bool(enabled) and (several or bool(environ.get(REPORT_VARIABLE)))


def _problem(finding: Finding) -> Problem:
    where = f"preflight {finding.check}, {finding.who or 'all ranks'}"
    return Problem(where, finding.found, finding.expected, finding.fix, code="preflight")


def clock_offsets(env: RankEnv, store: Store, timeout: timedelta) -> list[float]:
    """Return, on rank 0, how many seconds each instance's clock is ahead of instance 0's; [] on other ranks. Every rank
    must call it. The values are accurate to half a round trip.

    Rank 0 requests the time from one rank of each instance, one instance after another.
    """
    if env.rank == 0:
        ahead = [0.0]
        for instance in range(1, env.instance_count):
            before = time.time()
            store.set(f"clock/ask/{instance}", "")
            store.wait([f"clock/{instance}"], timeout)
            after = time.time()
            ahead.append(float(store.get(f"clock/{instance}")) - (before + after) / 2)
        return ahead
    if env.local_rank == 0:
        store.wait([f"clock/ask/{env.instance_rank}"], timeout)
        store.set(f"clock/{env.instance_rank}", repr(time.time()))
    return []
