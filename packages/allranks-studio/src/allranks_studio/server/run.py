"""One run with its steps: what the views of a run show, except its curves and logs."""

import os
import time
from collections.abc import Mapping
from typing import Any

from starlette.responses import FileResponse

from allranks.errors import InputError, Problem
from allranks.history import formatting
from allranks.history.nested import walk
from allranks.history.page.graphs import branches
from allranks.history.page.items import Item, items_of
from allranks.history.records import RankRecord, RunRecord, Verdict, earlier_attempts, pauses
from allranks_studio.server.answers import finite
from allranks_studio.server.folders import Folder
from allranks_studio.server.positions import STEP, Positions, laid_out
from allranks_studio.server.store_watch import log_size


def run(folder: Folder, record: RunRecord) -> dict[str, Any]:
    """Answer GET /api/runs/RUN."""
    now = time.time()
    with folder.store() as store:
        values = store.last_values(record.id)
    roots = items_of(record.steps)
    items = list(walk(roots))
    parents = {child.place: item.record.name for item in items for child in item.children}
    edges, positions = list[dict[str, str]](), Positions()
    for scope in (roots, *(item.children for item in items if item.children)):
        outcomes = branches(scope)
        names = {item.record.name for item in scope}
        needs = {item.record.name: [need for need in item.record.needs if need in names] for item in scope}
        positions |= laid_out(needs, STEP)
        for pair in ((need, name) for name, sources in needs.items() for need in sources):
            label = outcomes[pair].outcome if pair in outcomes else ""
            edges.append({"from": pair[0], "to": pair[1], "label": label})
    return {
        **_picked(record, "id", "status", "created", "ended", "inputs", "notes"),
        "name": record.display_name or record.name,
        "source": folder.shown(record.target or record.source),
        "started": min((step.started for step in record.steps if step.started), default=None),
        "seconds": formatting.elapsed(record, now),
        "outputs": formatting.outputs_of(record),
        "verdict": record.verdict and {**vars(record.verdict), "reason": _reason(record.verdict)},
        "steps": [_step(item, parents.get(item.place, ""), values.get(item.record.name, {})) for item in items],
        "edges": edges,
        "positions": positions,
        "pauses": pauses(record, now),
        "models": [vars(model) for step in record.steps for model in step.models],
        "page": bool(_page_of(record, folder)),
    }


def page(folder: Folder, record: RunRecord) -> FileResponse:
    """Answer GET /api/page: the HTML file of a run, to be saved. Its scripts are inline, so it is not shown here."""
    if not (path := _page_of(record, folder)):
        raise InputError(Problem(f"run {record.id}", "it has no page", "", code="unknown-run"))
    return FileResponse(path, filename=f"{record.id}.html", media_type="application/octet-stream")


def _page_of(record: RunRecord, folder: Folder) -> str:
    path = os.path.realpath(record.page)
    return path if record.page and os.path.isfile(path) and folder.owns(path) else ""


def _step(item: Item, parent: str, values: Mapping[str, float | None]) -> dict[str, Any]:
    step = item.record
    return {
        **_picked(step, "kind", "component", "status", "started", "ended", "inputs"),
        "path": step.name,
        "name": item.name,
        "parent": parent,
        "attempts": step.attempt + 1 if step.started else 0,
        "earlier": [vars(attempt) for attempt in earlier_attempts(step)],
        "layout": item.layout,
        "reused_from": step.reused_from or "",
        "progress": formatting.progress(step),
        "ranks": list(map(_rank, step.ranks)),
        "outputs": [
            {"name": each.name, "type": each.type, "value": each.path if each.value is None else each.value}
            for each in step.outputs
        ],
        "metrics": {name: finite(value) for name, value in values.items()},
        "notes": [*step.notes, *filter(None, (step.straggler, step.result))],
    }


def _rank(rank: RankRecord) -> dict[str, Any]:
    end = "" if rank.exit_code is None else f"exit code {rank.exit_code}"
    return {
        **_picked(rank, "rank", "status", "started", "ended"),
        "instance": rank.instance_rank,
        "host": rank.hostname,
        "exit": f"ended by {rank.signal}" if rank.signal else end,
        "bytes": log_size(rank.log),
    }


def _reason(verdict: Verdict) -> str:
    return "; ".join(filter(None, (formatting.cause(verdict, whole=True), formatting.reason(verdict)))) or "failed"


def _picked(record: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}
