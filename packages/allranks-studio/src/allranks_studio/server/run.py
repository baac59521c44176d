"""One run with its steps: what the views of a run show, except its curves and logs."""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import FileResponse

from allranks.errors import InputError, Problem
from allranks.history import formatting, stored
from allranks.history.nested import walk
from allranks.history.page.graphs import branches
from allranks.history.page.items import Item, items_of
from allranks.history.records import RankRecord, RunRecord, StepRecord, earlier_attempts, pauses
from allranks.history.store import Store
from allranks_studio.server.answers import Call, finite
from allranks_studio.server.folders import Folder
from allranks_studio.server.positions import STEP, Positions, laid_out


def run(call: Call) -> dict[str, Any]:
    """Answer GET /api/runs/RUN."""
    folder = call.folder
    record = stored.run(folder.workspace, call.text("run"), curves=False)
    with Store(folder.workspace.database, reads=True) as store:
        values = {step.name: call.studio.last_values(folder).read(store, record.id, step) for step in record.steps}
    roots = items_of(record.steps)
    items = list(walk(roots))
    scopes = [roots, *(item.children for item in items if item.children)]
    parents = {child.place: item for item in items for child in item.children}
    steps = [
        _step(item, parents[item.place].record.name if item.place in parents else "", values.get(item.record.name, {}))
        for item in items
    ]
    return {
        "id": record.id,
        "name": record.display_name or record.name,
        "status": str(record.status),
        "source": folder.shown(record.target or record.source),
        "created": record.created,
        "started": min((step.started for step in record.steps if step.started), default=None),
        "ended": record.ended,
        "seconds": formatting.elapsed(record, time.time()),
        "inputs": record.inputs,
        "outputs": formatting.outputs_of(record),
        "verdict": _verdict(record),
        "steps": steps,
        "edges": [edge for scope in scopes for edge in _edges(scope)],
        "positions": {name: place for scope in scopes for name, place in _positions(scope).items()},
        "pauses": pauses(record, time.time()),
        "models": [{"name": each.name, "version": each.version} for step in record.steps for each in step.models],
        "notes": record.notes,
        "page": bool(_page_of(record, folder)),
    }


def page(call: Call) -> FileResponse:
    """Answer GET /api/page: the HTML file of a run, to be saved. Its scripts are inline, so it is not shown here."""
    record = stored.run(call.folder.workspace, call.text("run"), curves=False)
    if not (path := _page_of(record, call.folder)):
        raise InputError(Problem(f"run {record.id}", "it has no page", "", code="unknown-run"))
    return FileResponse(path, filename=f"{record.id}.html", media_type="application/octet-stream")


def _page_of(record: RunRecord, folder: Folder) -> str:
    path = os.path.realpath(record.page)
    return path if record.page and os.path.isfile(path) and folder.owns(path) else ""


def _step(item: Item, parent: str, values: Mapping[str, float | None]) -> dict[str, Any]:
    step = item.record
    return {
        "path": step.name,
        "name": item.name,
        "kind": step.kind,
        "parent": parent,
        "component": step.component,
        "status": str(step.status),
        "started": step.started,
        "ended": step.ended,
        "attempts": step.attempt + 1 if step.started else 0,
        "earlier": [
            {"status": str(each.status), "started": each.started, "ended": each.ended}
            for each in earlier_attempts(step)
        ],
        "layout": item.layout,
        "reused_from": step.reused_from or "",
        "progress": formatting.progress(step),
        "ranks": [_rank(rank) for rank in step.ranks],
        "inputs": step.inputs,
        "outputs": [
            {"name": each.name, "type": each.type, "value": each.path if each.value is None else each.value}
            for each in step.outputs
        ],
        "metrics": {name: finite(value) for name, value in values.items()},
        "notes": [*step.notes, *([step.straggler] if step.straggler else []), *([step.result] if step.result else [])],
    }


def _rank(rank: RankRecord) -> dict[str, Any]:
    end = "" if rank.exit_code is None else f"exit code {rank.exit_code}"
    try:
        size = os.lstat(rank.log).st_size
    except (OSError, ValueError):
        size = 0
    return {
        "rank": rank.rank,
        "instance": rank.instance_rank,
        "status": str(rank.status),
        "started": rank.started,
        "ended": rank.ended,
        "host": rank.hostname,
        "exit": f"ended by {rank.signal}" if rank.signal else end,
        "bytes": size,
    }


def _verdict(record: RunRecord) -> dict[str, Any] | None:
    verdict = record.verdict
    if verdict is None:
        return None
    reasons = filter(None, (formatting.cause(verdict, whole=True), formatting.reason(verdict)))
    return {
        "step": verdict.step,
        "rank": verdict.rank,
        "reason": "; ".join(reasons) or "failed",
        "where": verdict.where,
        "advice": verdict.advice,
        "code": verdict.code,
        "traceback": verdict.traceback,
        "tail": list(verdict.tail),
        "consequences": list(verdict.consequences),
    }


def _positions(items: Sequence[Item]) -> Positions:
    names = {item.record.name for item in items}
    needs = {item.record.name: [need for need in item.record.needs if need in names] for item in items}
    return laid_out(needs, STEP)


def _edges(items: Sequence[Item]) -> list[dict[str, str]]:
    """Return the edges of a scope. An edge of a branch has its outcome as label."""
    names = {item.record.name for item in items}
    outcomes = branches(items)
    return [
        {
            "from": need,
            "to": step.name,
            "label": outcomes[need, step.name].outcome if (need, step.name) in outcomes else "",
        }
        for step in _records(items)
        for need in step.needs
        if need in names
    ]


def _records(items: Sequence[Item]) -> list[StepRecord]:
    return [item.record for item in items]
