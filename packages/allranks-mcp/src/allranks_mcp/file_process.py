"""The process that reads a user's file, to check, plan or run it.

A file is a program: it may print, crash, or never end, which must neither reach the protocol nor end the server. A new
process also imports the user's modules as they are now, where the server would still have those of its first call.

The process reads the function and its arguments from standard input, and writes the answer as JSON.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from allranks.api import jobs
from allranks.cli.commands.check import result_of
from allranks.cli.views.plan import expression, step_layout
from allranks.errors import InputError, Problem, raise_any
from allranks.local.options import Options
from allranks.plan import codec
from allranks.plan.graph import Step
from allranks.plan.walk import walk
from allranks.workspace import Workspace
from allranks_mcp.results import MOST, CheckResult, PlannedStep, PlanResult


def check(file: str, inputs: dict[str, Any], strict: bool) -> dict[str, Any]:
    """Return the findings of `allranks check`, the most serious first."""
    found = result_of(file, jobs.texts_of(inputs), strict).findings
    problems = (*found.errors, *found.machine, *found.warnings)
    return asdict(CheckResult(not found.errors, problems[:MOST], len(problems)))


def plan(file: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of a pipeline before it runs. Raise InputError if it cannot run on any machine."""
    found = jobs.check(file, inputs)
    raise_any(found.errors)
    if found.plan is None:
        names = ", ".join(f"{file}:{plan.name}" for plan in found.plans)
        raise InputError(Problem(file, f"it has {len(found.plans)} jobs", "one of them", f"name it: {names}"))
    nodes = list(walk(found.plan.graph))
    steps = []
    for path, node, around in nodes[:MOST]:
        facts = (step_layout(node), str(node.environment), node.command) if isinstance(node, Step) else ("", "", "")
        values = {port.name: expression(port.value) for port in node.inputs}
        outputs = [port.name for port in node.outputs]
        component = getattr(node, "component", "") or node.kind
        steps.append(PlannedStep(path, component, *facts, [*around.needs(node)], values, outputs))
    values = {port.name: expression(port.value) for port in found.plan.graph.inputs}
    warnings = list(map(str, (*found.machine, *found.warnings)))[:MOST]
    return asdict(PlanResult(found.plan.name, values, steps, len(nodes), warnings))


def read(file: str, inputs: dict[str, Any], folder: str) -> dict[str, Any]:
    """Return the plan to run, with its code copied into a workspace, the options of the run, and the warnings."""
    found: list[Problem] = []
    texts, job = jobs.texts_of(inputs), jobs.resolved(file)
    options = {"target": os.path.abspath(job), "settings": texts}
    plan = jobs.read(job, texts, Workspace(Path(folder)), Options(**options), warn=found.extend)
    return {"plan": codec.dumps(plan), "options": options, "warnings": list(map(str, found))}


def main() -> None:
    """Answer one request."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the file prints is not an answer
    name, *arguments = json.loads(sys.stdin.readline())
    try:
        answer: dict[str, Any] = {"result": globals()[name](*arguments)}
    except InputError as error:
        answer = {"problems": [asdict(problem) for problem in error.problems]}
    with answers:
        json.dump(answer, answers)
    os._exit(0)  # threads of the file may never end


if __name__ == "__main__":
    main()
