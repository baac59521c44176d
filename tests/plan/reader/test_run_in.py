"""How environments are realised, in allranks.yaml: of nested pipelines, loops and sweeps, by path."""

from pathlib import Path

from allranks.history import registered
from allranks.plan.graph import Plan
from allranks.plan.reader import lookup_of, opened
from allranks.plan.walk import steps
from allranks.workspace import Workspace
from pipeline_files import write, write_dsl

PIPELINE = """
from azure.ai.ml.sweep import Choice
from mldesigner.dsl import do_while

@dsl.pipeline
def inner(data: Input(type="uri_folder")):
    first = train(data=data)
    second = train(data=first.outputs.model)
    return {"model": second.outputs.model}

@dsl.pipeline
def outer(data: Input(type="uri_folder")):
    prepare = train(data=data)
    group = inner(data=data)
    again = inner(data=data)
    loop = do_while(body=again, mapping={again.outputs.model: again.inputs.data}, max_iteration_count=2, condition=None)
    trial = train(data=data, lr=Choice([0.1, 0.2]))
    tune = trial.sweep(primary_metric="loss", goal="minimize", sampling_algorithm="grid")
    tune.set_limits(max_total_trials=2)
"""


def plan(here: Path, run_in: str) -> Plan:
    write(here, "allranks.yaml", f"environments: {{torch: .venv}}\nrun_in: {run_in}\n")
    (here / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
    file = str(write_dsl(here, PIPELINE))
    with opened(file, {"data": "data"}, lookup_of(file, {}, registered.of(Workspace(here / ".allranks")))) as job:
        return job.plan()


def test_the_environment_of_a_step_is_realised_as_the_nearest_line_says(here: Path) -> None:
    read = plan(here, "{torch: conda, group: venv, group.second: auto, loop.first: host, group.frist: host}")
    found = {path: step.environment.realised for path, step in steps(read.graph)}
    assert (found["prepare"], found["group.first"], found["group.second"]) == ("conda", "venv", "auto")
    assert (found["loop[0].first"], found["loop[0].second"]) == ("host", "conda")
    (finding,) = read.findings
    assert (finding.rule, finding.found) == ("unknown-step", "there is no step group.frist")
    assert "one of prepare, group.first, group.second, loop.first, loop.second, tune" in finding.expected
    assert "group.first" in finding.fix
