"""Find earlier results that a step of a run may reuse, by a digest of everything that a result depends on."""

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from allranks.history.records import RunRecord, Status, StepRecord
from allranks.local import installed, interpreters
from allranks.local.attempt.digests import Digests
from allranks.local.attempt.running_steps import StepStops
from allranks.local.rank_environment import variables_of
from allranks.local.run_context import RunContext
from allranks.local.scope import Scope
from allranks.local.selection import Mode
from allranks.plan import digest, values
from allranks.plan.digest import KnownDigests
from allranks.plan.file_tree import Stop
from allranks.plan.graph import Step


def key(step: Step, inputs: Mapping[str, str | None], variables: Mapping[str, str]) -> str:
    """Return a digest of the step's code, command, layout, environment, outputs, and inputs.

    inputs:    the value of each port as text or, for data, the digest of its content
    variables: the step's environment variables
    """
    mini_batches = [asdict(step.parallel)] if step.parallel else []
    return digest.of_text(
        step.code.digest if step.code else "",
        step.command,
        json.dumps(
            [step.distribution.type, asdict(step.distribution), step.instance_count, *mini_batches], sort_keys=True
        ),
        str(step.environment),
        json.dumps(dict(variables), sort_keys=True),
        json.dumps([[output.name, output.type, output.path] for output in step.outputs]),
        json.dumps(dict(inputs), sort_keys=True),
    )


def is_intact(step: StepRecord, stop: Stop | None = None, digests: KnownDigests | None = None) -> bool:
    """Return whether the step's outputs still exist unchanged. Raise StoppedError once `stop` is set.

    digests: saved digests, with which unchanged files need not be read again
    """
    try:
        return all(digest.of_path(Path(output.path), stop, digests) == output.digest for output in step.outputs)
    except OSError:
        return False


@dataclass(frozen=True)
class EarlierResult:
    """A completed step of a run. run: the id of the run"""

    run: str
    step: StepRecord


Keys = tuple[str, str | None]
"""The keys of a step's result. The first is valid within the run: a digest of the step and its inputs. The second is
valid in other runs: a digest of the installed packages too; None if no other run may reuse the result."""


class EarlierResults:
    """The earlier results for the steps of one run."""

    def __init__(self, context: RunContext, digests: Digests) -> None:
        self._context = context
        self._digests = digests
        self._keys: dict[str, Keys] = {}
        # Cached for the run, because it reads several folders.
        self._installed = functools.cache(installed.fingerprint)
        self._save_packages = functools.cache(
            lambda text, path: context.recorder.packages(text, installed.versions(path))
        )

    async def find(
        self, scope: Scope, step: Step, record: StepRecord, mode: Mode, stops: StepStops
    ) -> EarlierResult | None:
        """Return the result that the step may reuse, or None."""
        context = self._context
        if mode is Mode.REUSE and context.origin is not None:
            return _result(context.origin, record.name)
        in_run, shared = await self._keys_of(scope, step, record, stops)
        self._keys[record.name] = in_run, shared
        if context.earlier and (own := _result(context.earlier, record.name)) and own.step.key == in_run:
            return own
        forced = context.options.force_rerun or context.plan.force_rerun
        is_ignored = mode is Mode.FRESH or (forced and mode is not Mode.REUSE)
        if is_ignored or shared is None:
            return None
        earlier = context.recorder.recall(shared)
        return None if earlier is None else EarlierResult(*earlier)

    def pop_keys(self, record: StepRecord) -> Keys:
        return self._keys.pop(record.name, ("", None))

    def reason_not_reused(self, step: Step, result: EarlierResult | None) -> str:
        """Return the reason why a step in mode REUSE cannot reuse a result. result: one that has changed, or None"""
        if result is not None:
            return f"its outputs in run {result.run} have changed or are gone, so they cannot be reused"
        if self._context.origin is not None:
            return f"it did not complete in run {self._context.origin.id}, so there is no result to reuse"
        if not step.deterministic:
            return "its component is not deterministic, so its earlier results are not reused; select this step too"
        return "no earlier run has a result for the same code and inputs; to run it first: --until"

    async def _keys_of(self, scope: Scope, step: Step, record: StepRecord, stops: StepStops) -> Keys:
        """Return the keys of a step's result. Record the digests of its data, its interpreter, and the packages."""
        ports = values.resolved_inputs(step.inputs, scope.lookup)
        # No other run reuses the result of a step that is not deterministic, so its data need not be read.
        inputs = await self._digests.read(ports, stops.staging) if step.deterministic else self._digests.peek(ports)
        record.data = {port.name: found for port in ports if (found := inputs[port.name]) and found != port.value}
        interpreter = interpreters.find(step.environment, self._context.plan.source)
        record.interpreter = interpreters.describe(interpreter)
        self._save_packages(record.interpreter, interpreter)
        own = key(step, inputs, variables_of(step, scope))
        if not step.deterministic:
            return own, None
        # An upgraded package is a different environment.
        return own, digest.of_text(own, self._installed(interpreter))


def _result(run: RunRecord, path: str) -> EarlierResult | None:
    """Return the result of a run's node at a path, if it has completed."""
    step = run.find(path)
    if step is None or step.status is not Status.COMPLETED:
        return None
    return EarlierResult(step.reused_from or run.id, step)
