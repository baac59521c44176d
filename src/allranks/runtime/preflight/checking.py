"""What a rank does for the checks before its first step: say what it knows, hear what all found."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta

import torch
from torch import distributed
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]

from allranks.contract import variables
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError, Problem
from allranks.runtime.preflight import all_checks, clocks, facts, links, report
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.finding import FAILED, Finding

VARIABLE = "ALLRANKS_PREFLIGHT"
"""`0` leaves the checks out."""

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
        from coming up. Raise InputError if a check failed."""
        env = self._env
        self._began = time.perf_counter()
        texts = self._gathered("facts", facts.gather(env).as_text())
        offsets = clocks.offsets(env, self._store, _TIMEOUT)
        ranks = [Facts.of_text(text) for text in texts]
        self._conclude("before", all_checks.before_the_group(ranks, offsets, env) if ranks else [])

    def in_the_group(self, device: torch.device) -> None:
        """The network between the instances and a first all-reduce. Raise InputError if a check failed.

        device: of this rank's tensors
        """
        env = self._env
        self._began = time.perf_counter()
        total = links.first_sum(env, device)
        texts = self._gathered("measured", links.as_text(links.measure_links(env), total))
        measured = [links.of_text(text) for text in texts]
        self._conclude("in", all_checks.in_the_group(measured, env) if measured else [])

    def _gathered(self, key: str, text: str) -> list[bytes]:
        """Return every rank's text, on rank 0 alone."""
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
                report.tell(self._env, self._seconds, (*self.findings, *findings))
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


def wanted(env: RankEnv, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether there is anything to check between ranks, or a report is asked for, and nobody said that nothing
    is to be checked.

    Raise InputError if the variable is neither 0 nor 1.
    """
    on = variables.integer(environ, VARIABLE, below=2, default=1)
    return bool(on) and (env.world_size > 1 or bool(environ.get(report.VARIABLE)))


def _problem(finding: Finding) -> Problem:
    return Problem(
        f"preflight {finding.check}, {finding.who or 'all ranks'}", finding.found, finding.expected, finding.fix
    )
