"""Sweeps: run the body as trials with values from the search space, and return the outputs of the best one."""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

from allranks.contract.templating import wire
from allranks.history.nested import OBJECTIVE, SPACE
from allranks.history.records import OutputRecord, Point, Progress, Status, StepRecord, Verdict
from allranks.local.attempt.collect import save_path
from allranks.local.attempt.copying import copy
from allranks.local.executor import Executor
from allranks.local.nodes.pipeline import begin, end
from allranks.local.nodes.trial_sampling import Sampler, Units
from allranks.local.scope import Scope
from allranks.local.tracking.tracked_runs import why_no_metrics
from allranks.plan import digest
from allranks.plan.graph import Sweep
from allranks.plan.ports import Output
from allranks.plan.sweep import EarlyTermination
from allranks.plan.values import of_pipeline
from allranks.plan.walk import as_trial
from allranks.text import count, number

POLL = 0.5
"""Seconds between two checks of the metrics of running trials, if a policy may stop them."""

_TRIAL, _STOPPED = "trial", "stopped"
"""Decisions: the values of a trial, and the reason why a policy stops it."""


async def run(execution: Executor, scope: Scope, node: Sweep, record: StepRecord) -> None:
    """Run trials until the search space or a limit is exhausted. The outputs of the best one become the sweep's.

    The values of a trial, and the decision to stop it, are saved before they take effect, so that a resumed run
    continues with the same trials.
    """
    inputs = of_pipeline(as_trial(node, 0), scope.lookup)
    objective = f"{'maximize' if node.maximize else 'minimize'} {node.metric}"
    space = {f"{SPACE}{parameter.name}": str(parameter) for parameter in node.search_space}
    begin(execution, record, {**inputs, **space, OBJECTIVE: objective})
    # In a thread, because importing Optuna or SciPy takes a second.
    sampler = await asyncio.to_thread(Sampler, node) if node.sampling.module else Sampler(node)
    search = _Search(execution, node, record, inputs, sampler)
    await search.run()
    search.judge()
    if record.status is Status.COMPLETED:
        record.outputs = await asyncio.to_thread(search.outputs, scope)
    end(execution, record)


@dataclass(eq=False)
class _Search:
    """One execution of a sweep.

    inputs:    the inputs of the trials, without the search space's values
    scopes:    the scopes of the trials, in the order of their numbers
    curves:    by trial, the values of the primary metric, with the sign that makes larger values better
    intervals: by trial, the number of values to which the policy has been applied
    """

    execution: Executor
    node: Sweep
    record: StepRecord
    inputs: Mapping[str, str | None]
    sampler: Sampler
    scopes: list[Scope] = field(default_factory=list)
    running: dict[asyncio.Task[Status], int] = field(default_factory=dict)
    curves: dict[int, list[float]] = field(default_factory=dict)
    intervals: dict[int, int] = field(default_factory=dict)
    cancellations: list[asyncio.Task[None]] = field(default_factory=list)
    best: int | None = None
    overdue: bool = False

    def __post_init__(self) -> None:
        self.total = int(min(self.node.limits.total, self.sampler.size))
        self.sign = 1 if self.node.maximize else -1

    async def run(self) -> None:
        """Start trials while there may be more, and wait for all of them."""
        limits, clock = self.node.limits, asyncio.get_running_loop().time
        due = math.inf if limits.timeout is None else clock() + limits.timeout
        at_once = min(self.execution.at_once(self.node.body), limits.concurrent or self.total)
        poll = math.inf if self.node.early_termination is None else POLL
        while True:
            while len(self.running) < at_once and self._may_start():
                self._start(len(self.scopes))
            if not self.running:
                break
            wait = min(poll, max(due - clock(), 0.0))
            ended, _ = await asyncio.wait(
                self.running, timeout=wait if wait < math.inf else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in ended:
                task.result()  # raises an error that ends the whole run
                self._add_result(self.running.pop(task))
            if clock() >= due and not self.overdue:
                self.overdue, due = True, math.inf
                for trial in self.running.values():
                    self._cancel(trial)
            await self._apply_policy()
        await asyncio.gather(*self.cancellations)

    def _may_start(self) -> bool:
        if self.overdue or len(self.scopes) >= self.total or self._is_canceled():
            return False
        # If the trials that finished have not logged the metric, others will not log it either.
        return bool(self.curves) or Status.COMPLETED not in {trial.status for trial in self._trials()}

    def _is_canceled(self) -> bool:
        return self.execution.stopped or self.execution.is_canceled(self.record.name)

    def _start(self, trial: int) -> None:
        units = self._units(trial)
        if units is None:
            self.total = trial
            return
        values = {name: wire(value) for name, value in self.sampler.values(units).items()}
        graph, path = as_trial(self.node, trial).graph, f"{self.record.name}."
        self.scopes.append(Scope(graph, path, {**self.inputs, **values}, tolerates_failures=True))
        self.running[asyncio.create_task(self.execution.run_graph(self.scopes[-1]))] = trial

    def _units(self, trial: int) -> Units | None:
        key = f"{_TRIAL}[{trial}]"
        saved = self.execution.decision(self.record.name, key)
        units = self.sampler.sample(trial) if saved is None else self.sampler.add(trial, tuple(json.loads(saved)))
        if units is not None:
            self.execution.decide(self.record.name, key, json.dumps(units))
        return units

    def _trials(self) -> list[StepRecord]:
        """Return the records of the trials, in the order of their numbers; the last ones may have none yet."""
        return [record for scope in self.scopes for record in scope.records.values()]

    def _add_result(self, trial: int) -> None:
        """Add the result of a trial, and update the sweep's progress and its curve of the best value."""
        record, metric = self._trials()[trial], self.node.metric
        if curve := self._signed(record.metrics.get(metric, ())):
            self.curves[trial] = curve
        value = max(curve, default=None) if record.status is Status.COMPLETED else None
        self.sampler.add_result(trial, None if value is None else self.sign * value)
        points = {}
        if value is not None:
            if self.best is None or value > max(self.curves[self.best]):
                self.best = trial
            if all(point.step != trial for point in self.record.metrics.get(metric, ())):
                best = self.sign * max(self.curves[self.best])
                points = {metric: [Point(trial, best, record.ended or time.time())]}
        self.record.progress = Progress(sum(each.status.ended for each in self._trials()), self.total)
        self.execution.recorder.progressed(self.record, points)

    def _signed(self, points: Iterable[Point]) -> list[float]:
        return [self.sign * point.value for point in points if math.isfinite(point.value)]

    async def _apply_policy(self) -> None:
        """Stop the running trials that the policy terminates."""
        policy = self.node.early_termination
        if policy is None:
            return
        running = {number: record for number, record in enumerate(self._trials()) if record.status is Status.RUNNING}
        for trial, record in running.items():
            if curve := self._signed(await self.execution.steps.curve(record, self.node.metric)):
                self.curves[trial] = curve
        ended = self.curves.keys() - self.running.values()
        for trial, record in running.items():
            first = self.intervals.get(trial, 0) + 1
            last = self.intervals[trial] = len(self.curves.get(trial, ()))
            for interval in range(first, last + 1):
                if why := reason_to_stop(policy, self.curves, trial, interval, ended):
                    reason = f"stopped by {policy.policy} after {count(interval, 'interval')}: {why}"
                    self.execution.decide(self.record.name, f"{_STOPPED}[{trial}]", reason)
                    self.execution.recorder.note(record, reason)
                    self._cancel(trial)
                    break

    def _cancel(self, trial: int) -> None:
        canceling = self.execution.cancel(f"{self.record.name}.trial[{trial}]")
        self.cancellations.append(asyncio.create_task(canceling))

    def judge(self) -> None:
        """Set the sweep's status and result after all trials have ended."""
        record = self.record
        if self._is_canceled():
            record.status = Status.CANCELED
        elif self.overdue:
            record.status = Status.CANCELED
            seconds = f"{self.node.limits.timeout:g} s"
            self.execution.recorder.note(record, f"canceled after {seconds}, its limits.timeout, as on Azure ML")
        elif self.best is None:
            record.status, record.verdict = Status.FAILED, self._why_none()
        else:
            record.status = Status.COMPLETED
        if self.best is not None:
            value, inputs = self.sign * max(self.curves[self.best]), self.scopes[self.best].inputs
            values = (f"{each.name} {inputs[each.name]}" for each in self.node.search_space)
            reached = f"{self.node.metric} {number(value)}"
            record.result = f"trial {self.best} is the best: {', '.join((reached, *values))}"

    def _why_none(self) -> Verdict:
        name, records = self.record.name, self._trials()
        statuses = Counter(record.status for record in records)
        if statuses[Status.COMPLETED]:
            logged = ", ".join(sorted({metric for record in records for metric in record.metrics}))
            reason = f"no trial that finished has logged {self.node.metric}, the primary metric; they logged "
            completed = [record for record in records if record.status is Status.COMPLETED]
            cause = "" if logged else why_no_metrics(self.node.body, completed)
            return Verdict(name, f"{reason}{logged or 'no metrics to MLflow'}{': ' if cause else ''}{cause}")
        ended = ", ".join(f"{amount} {status}" for status, amount in statuses.items())
        reason = f"none of {count(len(records), 'trial')} finished: {ended}"
        first = next((record.verdict for record in records if record.verdict), None)
        return Verdict(name, reason) if first is None else replace(first, step=name, reason=f"{reason}; {first.reason}")

    def outputs(self, scope: Scope) -> list[OutputRecord]:
        """Return the outputs of the best trial. Copy an output to the path that the user set for it."""
        assert self.best is not None
        outputs = {output.name: output for output in self.scopes[self.best].outputs()}
        ports = (port for port in self.node.outputs if port.name in outputs)
        return [self._copy_output(outputs[port.name], port, scope.output_path_of(self.node, port)) for port in ports]

    def _copy_output(self, output: OutputRecord, port: Output, user_path: str | None) -> OutputRecord:
        if user_path is None or "://" in user_path:
            return output
        place = save_path(port, user_path, Path(self.record.folder), self.record.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        copy(Path(output.path), place)
        return replace(output, path=str(place), digest=digest.of_path(place))


def finished_trials(steps: Iterable[StepRecord], decisions: Mapping[tuple[str, str], str]) -> set[str]:
    """Return the paths of the trials that a resumed run does not repeat: those that failed or that a policy stopped.

    If a sweep failed because none of its trials finished, all of them run again.
    """
    steps = list(steps)
    again = {step.name for step in steps if step.kind == "sweep" and step.status is Status.FAILED}
    settled = {step.name for step in steps if step.is_trial and step.status is Status.FAILED}
    settled |= {f"{path}.{key.replace(_STOPPED, _TRIAL)}" for path, key in decisions if key.startswith(_STOPPED)}
    return {path for path in settled if path.rpartition(".trial[")[0] not in again}


Curves = Mapping[int, Sequence[float]]
"""The values of the primary metric that each trial has logged, by its number; larger is better."""


def reason_to_stop(
    policy: EarlyTermination, curves: Curves, trial: int, interval: int, ended: Container[int] = ()
) -> str:
    """Return why a policy stops a trial at an interval that it has reached; "" if it continues.

    An interval is one value of the primary metric that a trial has logged. A trial is compared with the others at the
    same number of intervals, and with those that ended before it, as Azure ML documents it ("Hyperparameter tuning a
    model (v2)").

    ended: the trials that have ended, which are compared even if they ended before that interval
    """
    if interval < policy.delay or interval % policy.interval:
        return ""
    reached = {
        number: curve[:interval] for number, curve in curves.items() if len(curve) >= interval or number in ended
    }
    return _POLICIES[policy.policy](policy, reached, trial)


def _bandit(policy: EarlyTermination, curves: Curves, trial: int) -> str:
    best, own = max(map(max, curves.values())), max(curves[trial])
    factor = policy.slack_factor or 0.0
    # For a positive metric to maximize, this is best / (1 + factor); for one to minimize, best * (1 + factor).
    share = factor / (1 + factor) if best > 0 else factor
    least = best - abs(best) * share - (policy.slack_amount or 0.0)
    return "it is outside of the slack around the best trial" if own < least else ""


def _median_stopping(_: EarlyTermination, curves: Curves, trial: int) -> str:
    is_worse = max(curves[trial]) < median(map(fmean, curves.values()))
    return "its best value is worse than the median of the trials' averages" if is_worse else ""


def _truncation_selection(policy: EarlyTermination, curves: Curves, trial: int) -> str:
    order = sorted(curves, key=lambda number: (curves[number][-1], -number))
    stopped = order[: len(order) * policy.percentage // 100]
    return f"it is among the worst {policy.percentage} % of the trials" if trial in stopped else ""


_POLICIES: dict[str, Callable[[EarlyTermination, Curves, int], str]] = {
    "bandit": _bandit,
    "median_stopping": _median_stopping,
    "truncation_selection": _truncation_selection,
}
