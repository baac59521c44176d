"""Save every change of a run and pass it to the observer, on the engine's thread.

The states of steps are saved together, a few milliseconds later or at the next `flush`: in a chain, the end of one step
and the start of the next are one transaction, which is written while the ranks of the next step start.
"""

import asyncio
import contextlib
import json
import math
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from allranks.contract.report import truncated
from allranks.errors import InputError
from allranks.history import records, registered, usage
from allranks.history.curves import headline
from allranks.history.observer import Observer
from allranks.history.records import FaultRecord, Point, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.history.usage import Sample
from allranks.secrets import MASK, is_secret_name, redact
from allranks.text import plain
from allranks.workspace import write_file

_UNFINISHED = (Status.FAILED, Status.CANCELED, Status.INTERRUPTED)

SAVE_AFTER = 0.005
"""Maximum seconds from a change of a step to its transaction."""

PACKAGES = "packages.json"
"""The file in a run's folder with the installed packages that its steps found."""

MOST_TEXT = 8 * 1024
"""Maximum characters of each text of a verdict or a note. The log has the whole text."""

RESULTS = 3


def results_of(run: RunRecord) -> dict[str, float]:
    """Return the last values of the run's most relevant metrics."""
    results: dict[str, float] = {}
    # A sweep has its trials' best value.
    for _, name, point in headline([step for step in run.steps if not step.is_trial], RESULTS):
        if math.isfinite(point.value):
            results.setdefault(name, point.value)
    return results


def packages_of(run: RunRecord) -> dict[str, dict[str, str]]:
    """Return the versions of packages by interpreter; nothing if the run has no record of them, as on Azure ML."""
    try:
        return dict(json.loads(Path(run.folder, PACKAGES).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


class RunRecorder:
    """Save one run to the store, and pass its changes to the observer, both without secrets.

    known: the secrets of the run's plan
    """

    def __init__(
        self, run: RunRecord, store: Store, observer: Observer | None, known: frozenset[str] = frozenset()
    ) -> None:
        self.known = known
        self._run = run
        self._store = store
        self._observer = observer or Observer()
        self._unsaved: dict[str, tuple[StepRecord, str | None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        run.inputs, run.settings = self._shown(run.inputs), self._shown(run.settings)

    def started(self) -> None:
        """Record that the run starts or continues."""
        for step in records.begin_execution(self._run, time.time()):
            self._store.save_step(self._run, step)
        self._store.save_run(self._run)
        self._observer.started(self._run)

    def tracked(self, mlflow_run_id: str) -> None:
        """Record the MLflow run of the whole run."""
        if self._run.mlflow_run_id != mlflow_run_id:
            self._run.mlflow_run_id = mlflow_run_id
            self._store.save_run(self._run)

    def added(self, step: StepRecord) -> None:
        self._run.add(step)
        self._store.add_step(self._run, step)

    def decided(self, path: str, key: str, value: str) -> None:
        """Save a control node's decision before it takes effect."""
        self.flush()
        self._store.add_decision(self._run.id, path, key, value)

    def changed(self, step: StepRecord, result: str | None = None) -> None:
        """Record a step's new status. result: the key by which later runs may reuse its result"""
        if step.status in _UNFINISHED:
            step.attempts = records.attempts_of(step)
        self._hide(step)
        _, earlier = self._unsaved.get(step.name, (step, None))
        self._unsaved[step.name] = step, result or earlier
        self._flush_soon()
        self._observer.changed(self._run, step)

    def flush(self) -> None:
        """Save the pending changes of steps. If that fails, the next call tries again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unsaved:
            for step, _ in self._unsaved.values():
                self._hide(step)
            self._store.save_steps(self._run, self._unsaved.values())
            self._unsaved = {}

    def _flush_soon(self) -> None:
        if self._timer is None:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:  # outside of the engine's event loop
                self.flush()
            else:
                self._timer = loop.call_later(SAVE_AFTER, self._flush_late)

    def _flush_late(self) -> None:
        # An error here would not end the run. The next `flush` raises it again.
        with contextlib.suppress(sqlite3.Error):
            self.flush()

    def rank_changed(self, step: StepRecord) -> None:
        """Notify the observer that a rank of a step started or ended. Many ranks may do so at once, so the store is
        updated by `save` or the next change."""
        self._observer.changed(self._run, step)

    def save(self, step: StepRecord) -> None:
        """Save a step's current state."""
        self._hide(step)
        self._store.save_step(self._run, step)

    def note(self, step: StepRecord | None, text: str) -> None:
        text = self._text(text)
        if step is None:
            self._run.notes.append(text)
            self._store.save_run(self._run)
        else:
            step.notes.append(text)
            self._store.save_step(self._run, step)
        self._observer.noted(self._run, step, text)

    def remove_notes(self, beginning: str) -> None:
        """Remove the notes of the run with this beginning, because they no longer hold."""
        kept = [note for note in self._run.notes if not note.startswith(beginning)]
        if len(kept) < len(self._run.notes):
            self._run.notes = kept
            self._store.save_run(self._run)

    def announce(self, step: StepRecord, text: str) -> None:
        """Show a message to the user without recording it."""
        self._observer.announced(self._run, step, text)

    def injected(self, step: StepRecord, fault: str, effect: str) -> None:
        """Record a fault before it takes effect."""
        self._run.faults.append(FaultRecord(fault, step.name, step.attempt, time.time()))
        self._store.save_run(self._run)
        self.note(step, f"{effect} (injected by --fault {fault})")

    def register(self, step: StepRecord, output: str, kind: str, asset: str) -> None:
        """Register an output of a completed step as an asset. Note its version, or why it was not registered."""
        (path,) = (each.path for each in step.outputs if each.name == output)
        try:
            found = registered.register(self._store.connection, kind, asset, Path(path))
        except InputError as error:
            (problem,) = error.problems
            self.note(step, f"output {output} is not registered as {problem.where}: {problem.found}")
        else:
            self.note(step, f"output {output} is {kind} {found.name}:{found.version}")

    def packages(self, interpreter: str, versions: Mapping[str, str]) -> None:
        """Save the versions of the packages of a step's interpreter. Raise OSError if the file cannot be written."""
        found = {**packages_of(self._run), interpreter: dict(versions)}
        write_file(Path(self._run.folder, PACKAGES), json.dumps(found))

    def progressed(self, step: StepRecord, curves: Mapping[str, Sequence[Point]]) -> None:
        """Add the points that a step reported, and notify the observer of its progress."""
        self.add_points(step, curves)
        self._observer.progressed(self._run, step)

    def add_points(self, step: StepRecord, curves: Mapping[str, Sequence[Point]]) -> None:
        for name, points in curves.items():
            step.metrics.setdefault(name, []).extend(points)
        if curves:
            pairs = ((name, point) for name, points in curves.items() for point in points)
            self._store.add_points(self._run.id, step.name, pairs)

    def add_sample(self, step: StepRecord, instance: int, sample: Sample) -> None:
        """Add a sample of the resource usage on an instance of a step."""
        samples = step.usage.setdefault(instance, [])
        samples.append(sample)
        connection, run = self._store.connection, self._run.id
        if len(samples) < usage.MOST:
            usage.add(connection, run, step.name, instance, [sample])
        else:
            samples[:] = usage.thin(samples)
            usage.replace(connection, run, step.name, instance, samples)

    def forget_usage(self, step: StepRecord) -> None:
        """Remove the samples of a step's resource usage."""
        step.usage = {}
        usage.clear(self._store.connection, self._run.id, step.name)

    def forget_points(self, step: StepRecord) -> None:
        """Remove a step's curves."""
        if step.metrics:
            step.metrics = {}
            self._store.clear_points(self._run.id, step.name)

    def forget_result(self, step: StepRecord) -> None:
        """Remove the step's result, so that no run reuses it."""
        self.flush()
        self._store.remove_results(self._run.id, step.name)

    def recall(self, key: str) -> tuple[str, StepRecord] | None:
        """Return the run and the step, with its curves, that produced the result with this key; None if there is no
        result."""
        self.flush()
        result = self._store.result(key)
        if result is None:
            return None
        run, step = result
        step.metrics = self._store.curves(run, step.name)
        return run, step

    def ended(self) -> None:
        self.flush()
        records.end_execution(self._run)
        self._run.results = results_of(self._run)
        self._store.save_run(self._run)
        self._observer.ended(self._run)

    def _shown(self, values: Mapping[str, str]) -> dict[str, str]:
        return {name: MASK if is_secret_name(name) else redact(value, self.known) for name, value in values.items()}

    def _text(self, text: str, most: int = MOST_TEXT) -> str:
        """Return a text from a report or a log without secrets and control characters, cut to `most` characters."""
        return truncated(redact(plain(text.replace("\r", "\n")), self.known), most) if text else ""

    def _hide(self, step: StepRecord) -> None:
        """Mask the secrets in a step's inputs and texts, and limit the length of its texts."""
        step.inputs = self._shown(step.inputs)
        step.result = self._text(step.result)
        if step.verdict is not None:
            verdict = step.verdict
            step.verdict = replace(
                verdict,
                reason=self._text(verdict.reason),
                tail=tuple(self._text("\n".join(verdict.tail), 2 * MOST_TEXT).split("\n")) if verdict.tail else (),
                traceback=self._text(verdict.traceback),
                consequences=tuple(map(self._text, verdict.consequences)),
            )
