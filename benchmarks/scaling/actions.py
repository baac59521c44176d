"""One thing that allranks does with a plan of many steps: python actions.py ACTION SHAPE COUNT FOLDER.

Prints one line of JSON: the seconds that it took and the megabytes (10^6 bytes) that it needed on top of what the
process had before. It is done once with few steps before, so that imports and caches do not count.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

from rich.console import Console

from allranks.cli.views.tables import print_run, print_runs
from allranks.local import engine, requirements
from allranks.local.engine import Options
from allranks.plan.check import warnings
from allranks.plan.graph import Graph, Node, Pipeline, Plan, Step
from allranks.plan.node_records import graph_records
from allranks.plan.ports import Input, NodeOutput, Output
from allranks.plan.ports import Path as PathValue
from allranks.runs import history
from allranks.runs.page import page
from allranks.runs.records import RunRecord, Status
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

FEW = 10
"""Steps of the first time, which does not count."""

WIDTH = 10
"""Nodes of each graph of a nested pipeline."""

QUICK = 3
"""How often an action without processes is done; the fastest counts."""


def chain(count: int) -> Graph:
    """Steps that each wait for the one before."""
    return Graph(
        tuple(replace(_step(number), after=(f"step_{number - 1}",) if number else ()) for number in range(count))
    )


def fan(count: int) -> Graph:
    """Steps between a first one and a last one that waits for all of them."""
    middle = tuple(replace(_step(number), after=("step_0",)) for number in range(1, count - 1))
    last = replace(_step(count - 1), after=tuple(step.name for step in middle))
    return Graph((_step(0), *middle, last))


def nested(count: int) -> Graph:
    """Pipeline components within each other, each of WIDTH nodes that have an order."""
    if count <= WIDTH:
        return chain(count)
    inner = nested(count // WIDTH)
    nodes: list[Node] = []
    for number in range(WIDTH):
        after = (f"part_{number - 1}",) if number else ()
        nodes.append(Pipeline(f"part_{number}", inner, after=after))
    return Graph(tuple(nodes))


def shared(count: int, path: Path) -> Graph:
    """Steps that all read one file."""
    port = Input("data", "uri_file", PathValue(str(path)))
    return Graph(tuple(replace(_step(number), inputs=(port,)) for number in range(count)))


def bound(count: int) -> Graph:
    """Steps that each read what the one before has written, to be checked."""
    output = Output("out", "uri_folder")
    steps = [Step("step_0", "true", outputs=(output,))]
    for number in range(1, count):
        port = Input("data", "uri_folder", NodeOutput(f"step_{number - 1}", "out"))
        steps.append(Step(f"step_{number}", "true", inputs=(port,), outputs=(output,)))
    return Graph(tuple(steps))


SHAPES: dict[str, Callable[[int], Graph]] = {"chain": chain, "fan": fan, "nested": nested, "bound": bound}


def _step(number: int) -> Step:
    # Each is another command, so that none is reused within its run.
    return Step(f"step_{number}", f": {number}")


def check(plan: Plan, _: Workspace) -> None:
    """Everything that `allranks check` does with a plan, once azure-ai-ml has read the file."""
    if problems := requirements.problems(plan):
        sys.exit(f"the plan has problems: {problems[0]}")
    list(warnings(plan, date.today()))


def run(plan: Plan, workspace: Workspace, *, reuse: bool = False) -> None:
    """The engine's run, without the page."""
    _completed(engine.run(plan, workspace, Options(instances="loopback", force_rerun=not reuse)))


def resume(_: Plan, workspace: Workspace) -> None:
    """The engine's resume of a run of which the last tenth has not run, without the page."""
    _completed(engine.resume("latest", workspace, Options(instances="loopback", force_rerun=True)))


def show(_: Plan, workspace: Workspace) -> None:
    """What `allranks show` prints."""
    with _console() as console:
        print_run(console, history.run(workspace, "latest"))


def runs(plan: Plan, workspace: Workspace) -> None:
    """What `allranks runs` prints where all are to be listed."""
    with _console() as console:
        print_runs(console, history.runs(workspace, len(plan.graph.nodes), steps=False))


def write_page(_: Plan, workspace: Workspace) -> None:
    """The HTML page of a run."""
    PAGE(history.run(workspace, "latest"), workspace.root / "run.html")


PAGE = page.write_page


def interrupt(workspace: Workspace) -> None:
    """Make the latest run one whose last tenth has not run."""
    with Store(workspace.database) as store:
        record = store.run("latest")
        commands = [step for step in record.steps if step.kind == "command"]
        missing = {step.name for step in commands[-max(len(commands) // 10, 1) :]}
        for step in record.steps:
            held = f"{step.name}."
            if step.name in missing or any(name.startswith(held) for name in missing if step.kind == "pipeline"):
                step.status, step.started, step.ended = Status.NOT_STARTED, None, None
                store.save_step(record, step)
        record.status = Status.INTERRUPTED
        store.save_run(record)


def add_runs(count: int, workspace: Workspace) -> None:
    """Add completed runs of few steps to a workspace."""
    workspace.make()
    with Store(workspace.database) as store:
        for number in range(count):
            identity = f"{number:08x}"
            steps = list(graph_records(chain(FEW), workspace.run_folder(identity)))
            record = RunRecord(identity, "chain", "chain", "", "loopback", Status.COMPLETED, number, number + 1)
            store.add_run(replace(record, steps=steps), "{}")


def measured(action: Callable[[], None], times: int) -> dict[str, float]:
    """The seconds of the fastest time, and the megabytes of the first."""
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    seconds, megabytes = [], []
    for _ in range(times):
        started = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - started)
        megabytes.append(_memory("VmHWM") - before)
    return {"seconds": min(seconds), "megabytes": megabytes[0]}


def _memory(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:")) * 1024 / 1e6


def _completed(record: RunRecord) -> None:
    if record.status is not Status.COMPLETED:
        sys.exit(f"the run ended {record.status}: {record.verdict}")


def _plan(name: str, count: int) -> Plan:
    return Plan(name, SHAPES[name](count))


@contextlib.contextmanager
def _console() -> Iterator[Console]:
    with open("/dev/null", "w", encoding="utf-8") as nowhere:
        yield Console(file=nowhere, width=120)


def main(action: str, shape: str, count: int, folder: Path) -> dict[str, float]:
    few, many = Workspace(folder / f"before-{action}"), Workspace(folder / "many")
    if action == "shared":
        return _shared(count, folder)
    if action == "reuse":
        # The whole of it, with its page.
        for workspace, amount in ((few, FEW), (many, count)):
            run(_plan(shape, amount), workspace)
            run(_plan(shape, amount), workspace, reuse=True)
        return measured(lambda: run(_plan(shape, count), many, reuse=True), 1)
    page.write_page = lambda *_: None  # it is measured by itself
    act = {"check": check, "run": run, "resume": resume, "show": show, "runs": runs, "page": write_page}[action]
    if action == "runs":
        add_runs(FEW, few)
        add_runs(count, many)
    elif action not in ("run", "check"):
        run(_plan(shape, FEW), few)
    if action == "resume":
        interrupt(few)
        interrupt(many)
    act(_plan(shape, FEW), few)
    plan = _plan(shape, count)
    return measured(lambda: act(plan, many), 1 if action in ("run", "resume") else QUICK)


def _shared(count: int, folder: Path) -> dict[str, float]:
    """How often the bytes of a file were read that all steps share."""
    file = folder / "shared.bin"
    size = file.stat().st_size
    before = _read_bytes()
    found = measured(lambda: run(Plan("shared", shared(count, file)), Workspace(folder / "many"), reuse=True), 1)
    return {**found, "times": (_read_bytes() - before) / size}


def _read_bytes() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))))
