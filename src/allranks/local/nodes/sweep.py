"""Sweeps: run the body as trials with values from the search space, and return the outputs of the best one."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from allranks.contract.templating import wire
from allranks.local.attempt.collect import place_of
from allranks.local.attempt.copying import copy
from allranks.local.nodes.early_termination import reason_to_stop
from allranks.local.nodes.execution import Execution
from allranks.local.nodes.graph import begin, end, inputs_of
from allranks.local.nodes.sampling import Sampler, Units
from allranks.local.scope import Scope
from allranks.plan import digest
from allranks.plan.graph import Sweep
from allranks.plan.ports import Output
from allranks.runs import trials
from allranks.runs.formatting import count, number
from allranks.runs.records import OutputRecord, Point, Progress, Status, StepRecord, Verdict

POLL = 0.5
"""Seconds between two looks at the metrics of running trials, if a policy may stop them."""

_TRIAL, _STOPPED = "trial", "stopped"
"""Decisions: the values of a trial, and the reason why a policy stops it."""


async def run(execution: Execution, scope: Scope, node: Sweep, record: StepRecord) -> None:
    """Run trials until the search space or a limit is exhausted. The outputs of the best one become the sweep's.

    The values of a trial, and that a policy stops it, are saved before they take effect, so that a resumed run
    continues with the same trials.
    """
    inputs = inputs_of(node.trial(0), scope)
    objective = f"{'maximize' if node.maximize else 'minimize'} {node.metric}"
    space = {f"{trials.SPACE}{parameter.name}": str(parameter) for parameter in node.search_space}
    begin(execution, record, {**inputs, **space, trials.OBJECTIVE: objective})
    # In a thread, because importing Optuna or SciPy takes a second.
    sampler = await asyncio.to_thread(Sampler, node) if node.sampling.module else Sampler(node)
    search = _Search(execution, node, record, inputs, sampler)
    await search.run()
    search.judge(scope)
    end(execution, record)


class _Search:
    """One execution of a sweep. inputs: of the trials, without the search space's values"""

    def __init__(
        self,
        execution: Execution,
        node: Sweep,
        record: StepRecord,
        inputs: Mapping[str, str | None],
        sampler: Sampler,
    ) -> None:
        self._execution = execution
        self._node = node
        self._record = record
        self._inputs = inputs
        self._sampler = sampler
        self._total = int(min(node.limits.total, sampler.size))
        self._scopes: list[Scope] = []
        self._running: dict[asyncio.Task[None], int] = {}
        self._curves: dict[int, list[float]] = {}
        self._intervals: dict[int, int] = {}
        self._cancellations: list[asyncio.Task[None]] = []
        self._best: int | None = None
        self._exhausted = self._overdue = False

    async def run(self) -> None:
        """Start trials while there may be more, and wait for all of them."""
        node, loop = self._node, asyncio.get_running_loop()
        due = math.inf if node.limits.timeout is None else loop.time() + node.limits.timeout
        at_once = self._execution.at_once(node.body)
        at_once = min(at_once, node.limits.concurrent or at_once)
        while True:
            while len(self._running) < at_once and self._may_start():
                self._start(len(self._scopes))
            if not self._running:
                break
            wait = POLL if node.early_termination is not None else None
            if due < math.inf:
                wait = min(max(due - loop.time(), 0.0), POLL if wait is not None else math.inf)
            done, _ = await asyncio.wait(self._running, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                number = self._running.pop(task)
                task.result()  # raises an error that ends the whole run
                self._ended(number)
            if loop.time() >= due and not self._overdue:
                self._overdue = True
                for number in self._running.values():
                    self._cancel(number)
            await self._apply_policy()
        await asyncio.gather(*self._cancellations)

    def _may_start(self) -> bool:
        execution = self._execution
        if self._exhausted or self._overdue or len(self._scopes) >= self._total:
            return False
        if execution.stopped or execution.is_canceled(self._record.name):
            return False
        # If no trial has logged the metric, others will not log it either.
        return bool(self._curves) or all(record.status is not Status.COMPLETED for record in self._records())

    def _start(self, trial: int) -> None:
        units = self._units(trial)
        if units is None:
            self._exhausted = True
            return
        graph = self._node.trial(trial).graph
        values = {name: wire(value) for name, value in self._sampler.values(units).items()}
        scope = Scope(graph, f"{self._record.name}.", {**self._inputs, **values}, tolerates_failures=True)
        self._scopes.append(scope)
        self._running[asyncio.create_task(self._run_trial(scope))] = trial

    def _units(self, trial: int) -> Units | None:
        key = f"{_TRIAL}[{trial}]"
        saved = self._execution.decision(self._record.name, key)
        if saved is not None:
            units: Units = tuple(json.loads(saved))
            self._sampler.add(trial, units)
            return units
        sampled = self._sampler.sample(trial)
        if sampled is not None:
            self._execution.decide(self._record.name, key, json.dumps(sampled))
        return sampled

    async def _run_trial(self, scope: Scope) -> None:
        await self._execution.run_graph(scope)

    def _records(self) -> list[StepRecord]:
        """Return the records of the trials that have started."""
        return [record for scope in self._scopes for record in scope.records.values()]

    def _trial(self, number: int) -> StepRecord:
        (record,) = self._scopes[number].records.values()
        return record

    def _ended(self, trial: int) -> None:
        """Add the result of a trial, and update the sweep's progress and its curve of the best value."""
        record, metric = self._trial(trial), self._node.metric
        curve = self._signed(record.metrics.get(metric, ()))
        if curve:
            self._curves[trial] = curve
        value = max(curve, default=None) if record.status is Status.COMPLETED else None
        self._sampler.ended(trial, None if value is None else self._sign * value)
        if value is not None and (self._best is None or value > max(self._curves[self._best])):
            self._best = trial
        points = {}
        if value is not None and self._best is not None:
            best = self._sign * max(self._curves[self._best])
            known = self._record.metrics.get(metric, ())
            if all(point.step != trial for point in known):
                points = {metric: [Point(trial, best, record.ended or time.time())]}
        ended = sum(record.status.ended for record in self._records())
        self._record.progress = Progress(ended, self._total)
        self._execution.progressed(self._record, points)

    @property
    def _sign(self) -> int:
        return 1 if self._node.maximize else -1

    def _signed(self, points: Iterable[Point]) -> list[float]:
        """Return the finite values of a curve, with a sign that makes larger ones better."""
        return [self._sign * point.value for point in points if math.isfinite(point.value)]

    async def _apply_policy(self) -> None:
        """Stop running trials that the policy does not let continue."""
        policy = self._node.early_termination
        if policy is None:
            return
        for trial in list(self._running.values()):
            record = self._trial(trial) if self._scopes[trial].records else None
            if record is None or record.status is not Status.RUNNING:
                continue
            if curve := self._signed(await self._execution.curve(record, self._node.metric)):
                self._curves[trial] = curve
        ended = self._curves.keys() - self._running.values()
        for trial in list(self._running.values()):
            first = self._intervals.get(trial, 0) + 1
            last = self._intervals[trial] = len(self._curves.get(trial, ()))
            for interval in range(first, last + 1):
                if reason := reason_to_stop(policy, self._curves, trial, interval, ended):
                    self._stop(trial, f"stopped by {policy.policy} after {count(interval, 'interval')}: {reason}")
                    break

    def _stop(self, trial: int, reason: str) -> None:
        self._execution.decide(self._record.name, f"{_STOPPED}[{trial}]", reason)
        self._execution.note(self._trial(trial), reason)
        self._cancel(trial)

    def _cancel(self, trial: int) -> None:
        path = f"{self._record.name}.trial[{trial}]"
        self._cancellations.append(asyncio.create_task(self._execution.cancel(path)))

    def judge(self, scope: Scope) -> None:
        """Set the sweep's status, outputs and result after all trials have ended."""
        record, records = self._record, self._records()
        statuses = Counter(trial.status for trial in records)
        if self._execution.stopped or self._execution.is_canceled(record.name):
            record.status = Status.CANCELED
        elif self._overdue:
            record.status = Status.CANCELED
            seconds = f"{self._node.limits.timeout:g} s"
            self._execution.note(record, f"canceled after {seconds}, its limits.timeout, as on Azure ML")
        elif self._best is None:
            record.status, record.verdict = Status.FAILED, self._why_none(records, statuses)
        else:
            record.status = Status.COMPLETED
            best = {output.name: output for output in self._scopes[self._best].outputs()}
            record.outputs = [
                _output(best[port.name], port, scope.output_path_of(self._node, port), record)
                for port in self._node.outputs
                if port.name in best
            ]
        if self._best is not None:
            value = self._sign * max(self._curves[self._best])
            values = self._scopes[self._best].inputs
            shown = ", ".join(f"{each.name} {values[each.name]}" for each in self._node.search_space)
            record.result = f"trial {self._best} is the best: {self._node.metric} {number(value)}, {shown}"

    def _why_none(self, records: list[StepRecord], statuses: Counter[Status]) -> Verdict:
        metric = self._node.metric
        if statuses[Status.COMPLETED]:
            logged = sorted({name for trial in records for name in trial.metrics})
            known = f"they logged {', '.join(logged)}" if logged else "they logged no metrics to MLflow"
            return Verdict(
                self._record.name, f"no trial that finished has logged {metric}, the primary metric; {known}"
            )
        ended = ", ".join(f"{amount} {status}" for status, amount in statuses.items())
        reason = f"none of {count(len(records), 'trial')} finished: {ended}"
        first = next((trial.verdict for trial in records if trial.verdict), None)
        if first is None:
            return Verdict(self._record.name, reason)
        return replace(first, step=self._record.name, reason=f"{reason}; {first.step}: {first.reason}")


def _output(best: OutputRecord, port: Output, wanted: str | None, record: StepRecord) -> OutputRecord:
    """Return the sweep's output: that of the best trial, or a copy of it at the path that the user set."""
    if wanted is None or "://" in wanted:
        return best
    place = place_of(port, wanted, Path(record.folder), record.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    copy(Path(best.path), place)
    return replace(best, path=str(place), digest=digest.of_path(place))


def settled_trials(steps: Iterable[StepRecord], decisions: Mapping[tuple[str, str], str]) -> set[str]:
    """Return the paths of the trials that a resumed run does not repeat: those that failed or that a policy stopped.

    If a sweep failed because none of its trials finished, all of them run again.
    """
    by_path = {step.name: step for step in steps}
    settled = set()
    for trial in by_path.values():
        path, _, number = trial.name.rpartition(".trial[") if trial.is_trial else ("", "", "")
        stopped = trial.status is Status.CANCELED and (path, f"{_STOPPED}[{number}") in decisions
        if path and by_path[path].status is not Status.FAILED and (stopped or trial.status is Status.FAILED):
            settled.add(trial.name)
    return settled
