"""Loops: do_while repeats its body, parallel_for runs it once for each item."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from allranks.history.records import OutputRecord, Status, StepRecord, Verdict
from allranks.local.attempt.collect import save_path
from allranks.local.executor import Executor
from allranks.local.nodes.pipeline import begin, end, truth
from allranks.local.scope import Scope, text_of
from allranks.plan import digest, values
from allranks.plan.graph import DoWhile, Item, ParallelFor
from allranks.plan.ports import PRIMITIVES, Literal, Output
from allranks.plan.values import graph_output_paths
from allranks.plan.walk import as_pipeline

ITEMS = "items"

Items: TypeAlias = dict[str, dict[str, str | None]]
"""By item name, the item's values for inputs of the body, as text."""


async def run_do_while(execution: Executor, scope: Scope, node: DoWhile, record: StepRecord) -> None:
    """Run the body until its condition is false, or the limit is reached. Iterations are numbered from 0.

    The decision of an iteration is saved before the next one starts, so that a killed run resumes inside the loop.
    """
    body = as_pipeline(node.body)
    inputs = values.of_pipeline(body, scope.lookup)
    begin(execution, record, inputs)
    output_paths = scope.output_paths_of(node)
    for number in range(node.limit):
        iteration, inner = execution.iteration(record, str(number), body.graph)
        inner.inputs, inner.output_paths = inputs, graph_output_paths(body.graph, output_paths)
        await _run_iteration(execution, iteration, inner)
        record.status, record.outputs = iteration.status, iteration.outputs
        if iteration.status is not Status.COMPLETED:
            break
        written = {output.name: output for output in iteration.outputs}
        read = node.condition
        if read and not _continues(execution, record, number, written.get(read), read):
            break
        if number + 1 == node.limit:
            execution.recorder.note(record, f"stopped after {node.limit} iterations, its limit")
        feedback = {name: text_of(written[output]) for output, name in node.feedback if output in written}
        inputs = {**inputs, **feedback}
    end(execution, record)


def _continues(
    execution: Executor, record: StepRecord, number: int, output: OutputRecord | None, name: str
) -> bool | None:
    """Return whether there is another iteration. If the condition is not a boolean, set a verdict and return None."""
    key = f"continue[{number}]"
    text = execution.decision(record.name, key)
    if text is None:
        text = "" if output is None else text_of(output)
    answer = truth(text)
    if answer is None:
        record.status = Status.FAILED
        problem = f"was not written in iteration {number}" if output is None else f"is {text!r}"
        record.verdict = Verdict(record.name, f"the condition {name} {problem}; expected true or false")
        return None
    execution.decide(record.name, key, str(answer))
    return answer


async def run_parallel_for(execution: Executor, scope: Scope, node: ParallelFor, record: StepRecord) -> None:
    """Run the body for each item, concurrently if there are free slots. Each iteration is named after its item."""
    body = as_pipeline(node.body)
    inputs = values.of_pipeline(body, scope.lookup)
    begin(execution, record, inputs)
    try:
        items = _items(execution, scope, node, record)
    except ValueError as error:
        record.status, record.verdict = Status.FAILED, Verdict(record.name, str(error))
        end(execution, record)
        return
    semaphore = asyncio.Semaphore(node.max_concurrency or len(items) or 1)

    async def run_one(label: str, item: Mapping[str, str | None]) -> StepRecord:
        async with semaphore:
            iteration, inner = execution.iteration(record, label, body.graph)
            inner.inputs = {**inputs, **item}
            await _run_iteration(execution, iteration, inner)
            return iteration

    iterations = await asyncio.gather(*(run_one(label, item) for label, item in items.items()))
    states = {iteration.status for iteration in iterations}
    precedence = (Status.FAILED, Status.CANCELED, Status.NOT_STARTED)
    record.status = next((status for status in precedence if status in states), Status.COMPLETED)
    if record.status is Status.COMPLETED:
        places = ((port, scope.output_path_of(node, port)) for port in node.outputs)
        record.outputs = [_gather(port, place, record, iterations) for port, place in places]
    end(execution, record)


async def _run_iteration(execution: Executor, iteration: StepRecord, inner: Scope) -> None:
    if iteration.status in (Status.COMPLETED, Status.SKIPPED) or execution.stopped:
        return
    begin(execution, iteration, inner.inputs)
    iteration.status = await execution.run_graph(inner)
    iteration.outputs = inner.outputs()
    end(execution, iteration)


def _items(execution: Executor, scope: Scope, node: ParallelFor, record: StepRecord) -> Items:
    """Return the items by name, each with its values for inputs of the body, as text. Decided once per run.

    Raise ValueError if they are not a list or a mapping of mappings.
    """
    saved = execution.decision(record.name, ITEMS)
    if saved is not None:
        texts: Items = json.loads(saved)
        return texts
    items = node.items
    if not isinstance(items, tuple):
        items = _parse_items(values.resolve(items, scope.lookup) or "")
    texts = {item.name: {name: values.resolve(value, scope.lookup) for name, value in item.values} for item in items}
    execution.decide(record.name, ITEMS, json.dumps(texts))
    return texts


def _parse_items(text: str) -> tuple[Item, ...]:
    try:
        items = json.loads(text)
        pairs = list(items.items()) if isinstance(items, dict) else list(enumerate(items))
        return tuple(
            Item(str(name), tuple((key, Literal(value)) for key, value in item.items())) for name, item in pairs
        )
    except (ValueError, AttributeError, TypeError):
        excerpt = text if len(text) <= 80 else f"{text[:80]}..."
        raise ValueError(f"the items are {excerpt!r}; expected a list or a mapping of mappings as JSON") from None


def _gather(port: Output, user_path: str | None, record: StepRecord, iterations: list[StepRecord]) -> OutputRecord:
    """Return the collected outputs of all iterations: texts as a JSON list, data as an mltable."""
    written = [output for iteration in iterations for output in iteration.outputs if output.name == port.name]
    path = save_path(port, user_path, Path(record.folder), record.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    if port.type in PRIMITIVES:
        text = json.dumps([_literal(output) for output in written])
        path.write_text(text, encoding="utf-8")
        return OutputRecord(port.name, port.type, str(path), text, digest.of_path(path))
    path.mkdir(exist_ok=True)
    paths = [{"folder" if os.path.isdir(output.path) else "file": f"file://{output.path}"} for output in written]
    # An MLTable file is YAML, and JSON is valid YAML.
    (path / "MLTable").write_text(json.dumps({"type": "mltable", "paths": paths}, indent=2), encoding="utf-8")
    content = digest.of_text(*(output.digest for output in written))
    return OutputRecord(port.name, "mltable", str(path), digest=content)


def _literal(output: OutputRecord) -> object:
    text = output.value or ""
    if output.type == "boolean":
        return truth(text)
    try:
        return {"integer": int, "number": float}.get(output.type, str)(text)
    except ValueError:
        return text
