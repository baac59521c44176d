"""A step has the environment variables that azure-ai-ml's request holds, and no others."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from allranks.azure import dry_run
from allranks.azure.workspace import NO_WORKSPACE
from allranks.checks.plan import warnings
from allranks.plan.graph import Step
from allranks.plan.ports import GraphInput, NodeOutput, Text
from allranks.plan.reader import opened
from allranks.plan.walk import steps

VALUES = ("x", "", "a b", "0", "${{parent.inputs.who}}", "a-${{parent.inputs.who}}", "${{inputs.who}}", 0, 1.5, True)
VARIABLES = st.dictionaries(st.sampled_from("AB"), st.sampled_from(VALUES), max_size=2)
KINDS = st.sampled_from(["file", "inline", "parallel", "sweep"])
NODES = st.lists(st.tuples(KINDS, VARIABLES, VARIABLES), min_size=1, max_size=3)
WHO = {"who": {"type": "string", "default": "anna"}}
BOUND = {"who": "${{parent.inputs.who}}"}
TASK = {"type": "run_function", "code": ".", "entry_script": "score.py", "environment": "azureml:base:1"}
TYPES = {"parallel": "parallel", "sweep": "sweep"}
SWEEP = {
    "search_space": {"rate": {"type": "choice", "values": [1, 2]}},
    "sampling_algorithm": "random",
    "objective": {"goal": "minimize", "primary_metric": "loss"},
    "limits": {"max_total_trials": 2},
}


def component(kind: str, own: dict[str, Any]) -> dict[str, Any]:
    if kind == "parallel":
        ports = {"inputs": {"who": {"type": "string"}, "data": {"type": "uri_folder"}}}
        data = {"input_data": "${{inputs.data}}", "mini_batch_size": "1"}
        return {"type": "parallel", "name": "score", "version": "1", **ports, **data, "task": TASK}
    command = {
        "command": "echo ${{inputs.who}}" + " ${{inputs.rate}}" * (kind == "sweep"),
        "environment": "azureml:base:1",
        "inputs": {"who": {"type": "string"}, **({"rate": {"type": "integer"}} if kind == "sweep" else {})},
    }
    return {"type": "command", "name": "say", "version": "1", "environment_variables": own, **command}


def write_yaml(folder: Path, name: str, nodes: list[Any], head: dict[str, Any]) -> None:
    jobs: dict[str, Any] = {}
    for number, (kind, own, given_variables) in enumerate(nodes):
        (folder / f"{name}{number}.yml").write_text(yaml.safe_dump(component(kind, own)))
        inputs, variables = dict(BOUND), {"environment_variables": given_variables}
        what: dict[str, Any] = {"component": f"./{name}{number}.yml"}
        if kind == "inline":
            what = {"command": "echo ${{inputs.who}}", "environment": "azureml:base:1"}
        elif kind == "sweep":  # azure-ai-ml refuses variables on its node
            what, variables = {"trial": f"./{name}{number}.yml", **SWEEP}, {}
        elif kind == "parallel":  # which takes only texts
            variables = {"environment_variables": {key: str(value) for key, value in given_variables.items()}}
            inputs["data"] = {"type": "uri_folder", "path": "data"}
        jobs[f"n{number}"] = {"type": TYPES.get(kind, "command"), **what, "inputs": inputs, **variables}
    if name == "outer":
        jobs["inner"] = {"type": "pipeline", "component": "./inner.yml", "inputs": BOUND}
    (folder / f"{name}.yml").write_text(yaml.safe_dump({"type": "pipeline", **head, "jobs": jobs}))


def write_python(folder: Path, nodes: list[Any], inner: list[Any]) -> None:
    lines = ["from azure.ai.ml import Input, command, dsl, load_component", "from azure.ai.ml.sweep import Choice"]
    for name, listed in (("inner", inner), ("outer", nodes)):
        body = [
            f"@dsl.pipeline({'default_compute=`cpu`' if name == 'outer' else ''})",
            f"def {name}(who: str = `anna`):",
        ]
        for number, (kind, own, given_variables) in enumerate(listed):
            made = f"{name}_{number} = "
            if kind != "inline":
                (folder / f"{name}{number}.yml").write_text(yaml.safe_dump(component(kind, own)))
                lines.append(f"{made}load_component(`{folder}/{name}{number}.yml`)")
            else:
                settings = f"environment=`azureml:base:1`, inputs={{`who`: `x`}}, environment_variables={own!r}"
                lines.append(f"{made}command(name=`say`, command=`echo ${{{{inputs.who}}}}`, {settings})")
            more = {
                "parallel": f", data=Input(type=`uri_folder`, path=`{folder}/data`)",
                "sweep": ", rate=Choice([1, 2])",
            }
            body.append(f"    n{number} = {name}_{number}(who=who{more.get(kind, '')})")
            if kind == "sweep":
                objective = "primary_metric=`loss`, goal=`minimize`, sampling_algorithm=`random`"
                body.append(f"    n{number}.environment_variables = {given_variables!r}")
                body.append(f"    n{number} = n{number}.sweep({objective})")
                body.append(f"    n{number}.set_limits(max_total_trials=2)")
            elif given_variables:
                body.append(f"    n{number}.environment_variables = {given_variables!r}")
        lines += [*body, *(["    inner(who=who)"] if name == "outer" else [])]
    (folder / "outer.py").write_text("\n".join(lines).replace("`", '"'))


def text(value: object) -> object:
    if isinstance(value, Text):
        return "".join(str(text(part)) for part in value.parts)
    if isinstance(value, GraphInput):
        return f"${{{{parent.inputs.{value.name}}}}}"
    assert not isinstance(value, NodeOutput)
    return value


def variables_of(jobs: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {
        name: {key: str(value) for key, value in (job.get("environment_variables") or {}).items()}
        for name, job in jobs.items()
        if job["type"] != "pipeline"
    }


@settings(phases=[Phase.explicit])
@example(
    form="outer.yml",
    nodes=[("file", {"A": "x"}, {}), ("file", {"A": "x"}, {"B": "y"})],
    inner=[("file", {"A": "x"}, {})],
)
@example(
    form="outer.py",
    nodes=[("parallel", {}, {"A": "x"}), ("sweep", {"A": "x"}, {"B": "y"})],
    inner=[("sweep", {"A": "x"}, {}), ("parallel", {}, {"B": "${{parent.inputs.who}}"})],
)
@given(form=st.sampled_from(["outer.yml", "outer.py"]), nodes=NODES, inner=NODES)
def test_a_step_has_no_others(form: str, nodes: list[Any], inner: list[Any]) -> None:
    bodies: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        answer = dry_run._answer
        patch.setattr(dry_run, "_answer", lambda *request: (bodies.append(request[3]), answer(*request))[1])
        folder = Path(name)
        (folder / "data").mkdir()
        (folder / "score.py").write_text("def run(batch): return batch")
        if form == "outer.py":
            write_python(folder, nodes, inner)
        else:
            write_yaml(folder, "inner", inner, {"name": "inner", "version": "1", "inputs": WHO})
            write_yaml(
                folder, "outer", nodes, {"inputs": {"who": "anna"}, "settings": {"default_compute": "azureml:cpu"}}
            )
        with opened(str(folder / form), {}) as job:
            plan = job.plan()
            top = dry_run.body_of(job.job, NO_WORKSPACE)["properties"]["jobs"]
    specs = [body.get("properties", {}).get("componentSpec", {}) for body in bodies]
    (nested,) = [spec["jobs"] for spec in specs if spec.get("jobs")]
    sent = variables_of(top) | {f"inner.{name}": found for name, found in variables_of(nested).items()}
    # The service gives a trial the values of the search space.
    ours = {
        path.partition(".trial[")[0]: {
            key: text(value) for key, value in step.environment_variables.items() if key != "AZUREML_SWEEP_rate"
        }
        for path, step in steps(plan.graph)
    }
    assert ours == sent


def test_a_variable_of_a_component_is_named() -> None:
    from allranks.plan.graph import Graph, Plan

    (warning,) = warnings(Plan("p", Graph((Step("say", "ls", ignored_variables=("GREETING",)),))))
    assert (warning.rule, warning.where) == ("ignored-variables", "step say, key environment_variables.GREETING")
