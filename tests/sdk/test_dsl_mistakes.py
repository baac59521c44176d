"""Mistakes in a pipeline function have their line, what was expected, and a fix, whatever azure-ai-ml says of them."""

from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.plan.reader import read_plan
from pipeline_files import write_dsl

STEP = "    step = train(data=data)\n"
COMPONENT = """\
import mldesigner
@mldesigner.command_component(environment="azureml:x:1"{})
def made(data: mldesigner.Input(type="uri_folder"), out: mldesigner.Output({})):
    pass
"""
READS = "the function reads the value of an input of the pipeline"
DECIDE = "decide while the pipeline runs"

BODIES = {
    "output": (f"{STEP}    train(data=step.outputs.modle)\n", 8, "there is no output modle", "did you mean model?"),
    "by key": (f"{STEP}    train(data=step.outputs['scor'])\n", 8, "there is no output scor", "did you mean score?"),
    "input": (f"{STEP}    step.inputs.lrr = 3\n", 8, "there is no input lrr", "did you mean lr?"),
    "argument": ("    train(data=data, epoch=3)\n", 7, "there is no input epoch", "did you mean epochs?"),
    "no names": ("    train(data)\n", 7, "train is called with arguments that have no names", "write train(data="),
    "data": ("    train(data=3)\n", 7, "3 is bound to an input of data", "write Input(type=TYPE, path=PATH)"),
    "a step": (f"{STEP}    train(data=step)\n", 8, "a step with 2 outputs", "write .outputs.NAME"),
    "if": ("    if n > 2:\n        pass\n", 7, READS, DECIDE),
    "if of an output": (f"{STEP}    if step.outputs.score:\n        pass\n", 8, "the function reads the value", DECIDE),
    "name": (f"{STEP}    step.name = 'My Step'\n", 8, "'my step' cannot be the name of a step", "rename it: my_step"),
    "same": (f"{STEP}    b = train(data=data)\n    b.name = 'step'\n", 7, "two steps have the name step", "rename one"),
    "setting": (f"{STEP}    step.distribution = {{'type': 'pytorhc'}}\n", 8, "azure-ai-ml refuses type", ""),
}  # fmt: skip


def problem(folder: Path, code: str) -> tuple[str, str, str, str]:
    write_dsl(folder, code)
    with pytest.raises(InputError) as caught:
        read_plan("pipeline.py", {"data": "data"}, folder / "snapshots")
    (found,) = caught.value.problems
    return found.where, found.found, found.expected, found.fix


@pytest.mark.parametrize(("body", "line", "found", "fix"), BODIES.values(), ids=BODIES)
def test_a_mistake_in_the_function(here: Path, body: str, line: int, found: str, fix: str) -> None:
    function = "@dsl.pipeline()\ndef digits(data: Input(type='uri_folder'), n: int = 3):\n"
    where, what, expected, advice = problem(here, function + body)
    assert where == f"pipeline.py:{line}"
    assert what.startswith(found)
    assert expected
    assert advice.startswith(fix)
    assert "azure.ai.ml.entities" not in f"{what} {expected} {advice}"


@pytest.mark.parametrize(
    ("decorator", "output", "found", "fix"),
    [
        ("", "type='uri_folder', path='x'", "the component declares path of out", "set path where"),
        (", name='My Step'", "type='uri_folder'", "'My Step' cannot be the name of a component", "rename it: my_step"),
        ("", "type='uri_fold'", "azure-ai-ml refuses outputs.out.type", ""),
    ],
)
def test_a_mistake_in_a_component(here: Path, decorator: str, output: str, found: str, fix: str) -> None:
    where, what, _, advice = problem(here, COMPONENT.format(decorator, output))
    assert where.startswith("pipeline.py:")
    assert what == found
    assert advice.startswith(fix)
