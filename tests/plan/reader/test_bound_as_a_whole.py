"""Settings that are bound to an input as a whole, or have a value of another type: each is named."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from allranks.api.jobs import Checked, check
from allranks.errors import Level, Problem
from allranks.plan.graph import Sweep
from pipeline_files import write

HEAD = """
from azure.ai.ml import Input, Output, command, dsl
from azure.ai.ml.entities import *
from azure.ai.ml.parallel import RunFunction, parallel_run_function
from azure.ai.ml.sweep import *
def say():
    return command(name="say", command="echo ${{inputs.x}}", inputs={"x": "a"}, environment="azureml:base:1",
                   outputs={"out": Output(type="uri_folder")}, distribution={"type": "mpi"})()
def score():
    task = RunFunction(code="src", entry_script="score.py", environment="azureml:base:1")
    made = parallel_run_function(name="score", inputs={"data": Input(type="uri_folder")}, task=task,
                                 mini_batch_size="2", input_data="${{inputs.data}}",
                                 outputs={"out": Output(type="uri_file")})
    return made(data=data)
def tuned():
    made = command(name="tuned", command="echo ${{inputs.rate}}", inputs={"rate": 1.5}, environment="azureml:base:1")
    return made(rate=Choice([1.5])).sweep(primary_metric="m", goal="minimize", sampling_algorithm="random")
data = Input(type="uri_folder", path="data")
"""
KINDS = {
    "Command": "say()",
    "Parallel": "score()",
    "Sweep": "tuned()",
}
FORMS = ("x", "'${{parent.inputs.x}}'", "x + '1'", "['${{parent.inputs.x}}', x]", "{'a': x, x: 'a'}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "src/score.py", "def run(batch): return batch")
    write(tmp_path, "data/a.csv", "1")
    return tmp_path


def checked(folder: Path, kind: str, *statements: str, value: str = "v") -> Checked:
    """Check a pipeline with a node n, which the statements change."""
    lines = [f"n = {KINDS[kind]}", *statements]
    body = "".join(f"    {line}\n" for line in lines)
    file = write(folder, "flow.py", f"{HEAD}@dsl.pipeline(default_compute='c')\ndef flow(x: str = {value!r}):\n{body}")
    return check(f"{file}:flow")


def attributes(kind: str) -> list[str]:
    """The settings of a node, by the SDK's class: those that can be set, and those of its constructor."""
    from azure.ai.ml.entities import _builders

    sdk: Any = getattr(_builders, kind)
    settable = {name for name, member in inspect.getmembers(sdk) if isinstance(member, property) and member.fset}
    named = {
        name
        for base in sdk.__mro__
        if "__init__" in vars(base) and base.__module__.startswith("azure.ai.ml")
        for name, each in inspect.signature(base.__init__).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }
    return sorted(name for name in {*settable, *named, "unheard_of"} if not name.startswith("_"))


@pytest.mark.recipe
@pytest.mark.parametrize("kind", ["Command", "Parallel"])
def test_no_attribute_of_a_node_raises(folder: Path, kind: str) -> None:
    """All attributes, bound and in another form, each in a pipeline function of its own: none hides another."""
    forms = [(name, form) for number, name in enumerate(attributes(kind)) for form in {FORMS[0], FORMS[number % 5]}]
    functions = [
        f"@dsl.pipeline\ndef flow_{number}(x: str = 'v'):\n    n = {KINDS[kind]}\n    n.{name} = {form}\n"
        for number, (name, form) in enumerate(forms)
    ]
    found = check(write(folder, "flows.py", HEAD + "".join(functions)))
    assert isinstance(found, Checked)
    assert len(found.plans) >= 3  # some are accepted


def named(found: Checked, key: str) -> list[Problem]:
    return [each for each in found.found if f", key {key} (" in each.where or f", key {key}." in each.where]


NAMED = [
    ("Command", "n.environment_variables = x", "environment_variables", "this machine", "in place of keys and values"),
    ("Command", "n.limits = '${{parent.inputs.x}}'", "limits", "this machine", "in place of keys and values"),
    ("Command", "n.distribution = [x]", "distribution", "error", "type list"),
    ("Command", "n.environment = x", "environment", "warning", "which azure-ai-ml does not send"),
    ("Command", "n.description = x", "description", "warning", "which azure-ai-ml does not send"),
    ("Command", "n.environment_variables = {'A': x}", "environment_variables", "warning", "as an object"),
    ("Command", "n.display_name = x", "display_name", "warning", "as an object"),
    ("Command", "n.component.environment = x", "environment", "error", "in the component"),
    ("Command", "n.component.tags = x", "tags", "error", "in the component"),
    ("Command", "n.code = x", "code", "error", "in the component"),
    ("Command", "n.inputs['x'] = [x]", "inputs.x", "error", "type list"),
    ("Command", "n.outputs.out.mode = x", "outputs.out.mode", "error", "a binding"),
    ("Parallel", "n.partition_keys = x", "partition_keys", "error", "a binding"),
    ("Sweep", "n.early_termination = x", "early_termination", "error", "a binding"),
]


@pytest.mark.parametrize(("kind", "statement", "key", "level", "found"), NAMED)
def test_what_cannot_be_read_or_sent_is_named(
    folder: Path, kind: str, statement: str, key: str, level: str, found: str
) -> None:
    problems = [each for each in named(checked(folder, kind, statement), key) if found in each.found]
    assert [each.level for each in problems] == [Level(level)]


@pytest.mark.parametrize(
    ("statement", "value", "expected"),
    [
        ("n.search_space = {'rate': Uniform(min_value=x, max_value=3)}", "2", (2, 3)),
        ("n.search_space = {'rate': QUniform(1, 9, q='${{parent.inputs.x}}')}", "2", (1, 9, 2)),
    ],
)
def test_a_number_of_a_search_space_has_the_input_s_value(
    folder: Path, statement: str, value: str, expected: tuple[float, ...]
) -> None:
    found = checked(folder, "Sweep", statement, value=value)
    assert not found.problems
    assert found.plan is not None
    (tuned,) = found.plan.graph.nodes
    assert isinstance(tuned, Sweep)
    assert tuned.search_space[0].numbers == expected
