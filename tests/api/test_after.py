"""`allranks.after`: the order in the plan and in the request. tests/bad_inputs has the calls that it refuses."""

from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.plan.graph import Graph
from allranks.plan.ports import GraphInput, Input, NodeOutput
from allranks.plan.reader import opened
from pipeline_files import read, write, write_dsl

AFTER = Input("after", "uri_folder", NodeOutput("first", "model"), "direct", optional=True)
SILENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
name: silent
type: command
environment: azureml:torch@latest
command: echo
"""
HEAD = """
import allranks
from mldesigner.dsl import do_while, parallel_for
silent = load_component(source='./silent.yml')
"""


@pytest.fixture
def here(here: Path) -> Path:
    """The project of other tests of the reader, and a component without ports."""
    write(here, "silent.yml", SILENT)
    return here


def graph(here: Path, body: str) -> Graph:
    return read(write_dsl(here, HEAD + body)).graph


def needs(found: Graph) -> dict[str, tuple[str, ...]]:
    return {node.name: found.needs(node) for node in found.nodes}


STEPS = """
@dsl.pipeline
def two(data: Input(type="uri_folder", path="data")):
    first = train(data=data)
    second = silent()
    third = silent()
    allranks.after(second, first)
    allranks.after(third, first, second)
    fourth = silent()
"""


def test_steps(here: Path) -> None:
    found = graph(here, STEPS)
    assert needs(found) == {"first": (), "second": ("first",), "third": ("first", "second"), "fourth": ()}
    second, third, fourth = (found.by_name[name] for name in ("second", "third", "fourth"))
    assert second.inputs == (AFTER,)
    assert [port.value for port in third.inputs] == [AFTER.value, NodeOutput("second", "ended")]
    assert (fourth.inputs, fourth.outputs) == ((), ())


NESTED = """
@dsl.pipeline
def inner(data: Input(type="uri_folder")):
    a = train(data=data)
    b = silent()
    c = train(data=a.outputs.model)
    return {"model": c.outputs.model, "score": c.outputs.score}

@dsl.pipeline
def outer(data: Input(type="uri_folder", path="data")):
    begin = silent()
    sub = inner(data=data)
    allranks.after(sub, begin)
    end = silent()
    allranks.after(end, sub)
"""


def test_the_first_steps_of_a_pipeline_component_wait(here: Path) -> None:
    found = graph(here, NESTED.replace("b = silent()", ""))
    assert needs(found) == {"begin": (), "sub": ("begin",), "end": ("sub",)}
    sub = found.by_name["sub"]
    inner = sub.graph
    waits = {node.name: [port.value for port in node.inputs if port.name == "after"] for node in inner.nodes}
    assert waits == {"a": [GraphInput("after")], "c": []}


def test_a_pipeline_component_that_returns_nothing_of_its_last_step(here: Path) -> None:
    with pytest.raises(InputError, match=r"inner returns no output of its step b, which no other step of it reads"):
        graph(here, NESTED)


LOOP = """
@dsl.pipeline
def body(data: Input(type="uri_folder")):
    made = train(data=data)
    return {"model": made.outputs.model}

@dsl.pipeline
def outer(data: Input(type="uri_folder", path="data")):
    begin = silent()
    again = body(data=data)
    loop = do_while(body=again, mapping={again.outputs.model: again.inputs.data}, max_iteration_count=2, condition=None)
    allranks.after(loop, begin)
    end = silent()
    allranks.after(end, loop)
    each = parallel_for(body=silent(), items=[{}, {}])
    allranks.after(end, each)
"""


def test_loops_wait_and_are_waited_for(here: Path) -> None:
    found = graph(here, LOOP)
    assert needs(found) == {"begin": (), "loop": ("begin",), "each": (), "end": ("loop", "each")}
    ends = {port.name: (port.type, port.value) for port in found.by_name["end"].inputs}
    assert ends == {
        "after": ("uri_folder", NodeOutput("loop", "model")),
        "after_2": ("mltable", NodeOutput("each", "ended")),
    }


def test_the_request_has_declared_ports(here: Path) -> None:
    """The service takes optional inputs that a command does not name. The mode keeps it from mounting an empty path."""
    write_dsl(here, HEAD + STEPS)
    with opened(str(here / "pipeline.py"), {}) as file:
        nodes = file.job._to_rest_object().properties.jobs
        third = file.job.jobs["third"]
        ports = third.component._to_rest_object().properties.component_spec
    reference = "${{parent.jobs.second.outputs.ended}}"
    assert nodes["third"]["inputs"]["after_2"] == {"job_input_type": "literal", "value": reference, "mode": "Direct"}
    assert ports["inputs"]["after_2"] == {"type": "uri_folder", "optional": True}
