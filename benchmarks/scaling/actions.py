"""Measure one action of allranks on a plan of many steps: python actions.py ACTION SHAPE COUNT FOLDER.

Print one line of JSON: the seconds of the action, and the megabytes (10^6 bytes) that it needed in addition to the
process's memory before. The action runs once with few steps first, so that imports and caches do not count.
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

from allranks.checks.plan import warnings
from allranks.cli.views.runs import print_run, print_runs
from allranks.history import stored
from allranks.history.page import page
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store
from allranks.history.workspace import Workspace
from allranks.local import engine, requirements
from allranks.local.options import Options
from allranks.plan.graph import Graph, Node, Pipeline, Plan, Step
from allranks.plan.node_records import graph_records
from allranks.plan.ports import Input, NodeOutput, Output
from allranks.plan.ports import Path as PathValue

FEW = 10
"""Steps of the warm-up, which does not count."""

WIDTH = 10
"""Nodes of each graph in a nested pipeline."""

QUICK = 3
"""Number of repetitions of an action without processes. The fastest counts."""


def chain(count: int) -> Graph:
    """Return steps that each wait for the previous one."""
    return Graph(
        tuple(replace(_step(number), after=(f"step_{number - 1}",) if number else ()) for number in range(count))
    )


def fan(count: int) -> Graph:
    """Return steps between a first step and a last step, which waits for all of them."""
    middle = tuple(replace(_step(number), after=("step_0",)) for number in range(1, count - 1))
    last = replace(_step(count - 1), after=tuple(step.name for step in middle))
    return Graph((_step(0), *middle, last))


def nested(count: int) -> Graph:
    """Return nested pipeline components. Each has WIDTH nodes, one after another."""
    if count <= WIDTH:
        return chain(count)
    inner = nested(count // WIDTH)
    nodes: list[Node] = []
    for number in range(WIDTH):
        after = (f"part_{number - 1}",) if number else ()
        nodes.append(Pipeline(f"part_{number}", inner, after=after))
    return Graph(tuple(nodes))


def shared(count: int, path: Path) -> Graph:
    """Return steps that all read the same file."""
    port = Input("data", "uri_file", PathValue(str(path)))
    return Graph(tuple(replace(_step(number), inputs=(port,)) for number in range(count)))


def bound(count: int) -> Graph:
    """Return steps that each read the output of the previous one, for `check`."""
    output = Output("out", "uri_folder")
    steps = [Step("step_0", "true", outputs=(output,))]
    for number in range(1, count):
        port = Input("data", "uri_folder", NodeOutput(f"step_{number - 1}", "out"))
        steps.append(Step(f"step_{number}", "true", inputs=(port,), outputs=(output,)))
    return Graph(tuple(steps))


SHAPES: dict[str, Callable[[int], Graph]] = {"chain": chain, "fan": fan, "nested": nested, "bound": bound}


def _step(number: int) -> Step:
    # Every step has a different command, so that none is reused within its run.
    return Step(f"step_{number}", f": {number}")


def check(plan: Plan, _: Workspace) -> None:
    """Check a plan as `allranks check` does after azure-ai-ml has read the file."""
    if problems := requirements.problems(plan):
        sys.exit(f"the plan has problems: {problems[0]}")
    list(warnings(plan, date.today()))


def run(plan: Plan, workspace: Workspace, *, reuse: bool = False) -> None:
    """Run a plan with the engine, without the page."""
    _completed(engine.run(plan, workspace, Options(instances="loopback", force_rerun=not reuse)))


def resume(_: Plan, workspace: Workspace) -> None:
    """Resume a run whose last tenth has not run, without the page."""
    _completed(engine.resume("latest", workspace, Options(instances="loopback", force_rerun=True)))


def show(_: Plan, workspace: Workspace) -> None:
    """Print what `allranks show` prints."""
    with _console() as console:
        print_run(console, stored.run(workspace, "latest"))


def runs(plan: Plan, workspace: Workspace) -> None:
    """Print what `allranks runs` prints for all runs."""
    with _console() as console:
        print_runs(console, stored.runs(workspace, len(plan.graph.nodes), steps=False))


def write_page(_: Plan, workspace: Workspace) -> None:
    """Write the HTML page of a run."""
    PAGE(stored.run(workspace, "latest"), workspace.root / "run.html")


PAGE = page.write_page


def interrupt(workspace: Workspace) -> None:
    """Change the latest run to one whose last tenth has not run."""
    with Store(workspace.database) as store:
        record = store.run("latest")
        commands = [step for step in record.steps if step.kind == "command"]
        not_run = {step.name for step in commands[-max(len(commands) // 10, 1) :]}
        for step in record.steps:
            prefix = f"{step.name}."
            if step.name in not_run or any(name.startswith(prefix) for name in not_run if step.kind == "pipeline"):
                step.status, step.started, step.ended = Status.NOT_STARTED, None, None
                store.save_step(record, step)
        record.status = Status.INTERRUPTED
        store.save_run(record)


def add_runs(count: int, workspace: Workspace) -> None:
    """Add completed runs of few steps to a workspace."""
    workspace.make()
    with Store(workspace.database) as store:
        for number in range(count):
            run_id = f"{number:08x}"
            steps = list(graph_records(chain(FEW), workspace.run_folder(run_id)))
            record = RunRecord(run_id, "chain", "chain", "", "loopback", Status.COMPLETED, number, number + 1)
            store.add_run(replace(record, steps=steps), "{}")


def measured(action: Callable[[], None], times: int) -> dict[str, float]:
    """Return the seconds of the fastest repetition, and the megabytes of the first."""
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
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
        # The whole run, including its page.
        for workspace, amount in ((few, FEW), (many, count)):
            run(_plan(shape, amount), workspace)
            run(_plan(shape, amount), workspace, reuse=True)
        return measured(lambda: run(_plan(shape, count), many, reuse=True), 1)
    page.write_page = lambda *_, **__: None  # measured separately
    perform = {"check": check, "run": run, "resume": resume, "show": show, "runs": runs, "page": write_page}[action]
    if action == "runs":
        add_runs(FEW, few)
        add_runs(count, many)
    elif action not in ("run", "check"):
        run(_plan(shape, FEW), few)
    if action == "resume":
        interrupt(few)
        interrupt(many)
    perform(_plan(shape, FEW), few)
    plan = _plan(shape, count)
    return measured(lambda: perform(plan, many), 1 if action in ("run", "resume") else QUICK)


def _shared(count: int, folder: Path) -> dict[str, float]:
    """Measure a run whose steps share a file. Add `times`: bytes read by this process, divided by the file's size."""
    file = folder / "shared.bin"
    size = file.stat().st_size
    before = _read_bytes()
    figures = measured(lambda: run(Plan("shared", shared(count, file)), Workspace(folder / "many"), reuse=True), 1)
    return {**figures, "times": (_read_bytes() - before) / size}


def _read_bytes() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))))
