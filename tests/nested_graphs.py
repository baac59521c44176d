"""A component, the steps that run it, and how graphs of Python's DSL and of YAML are compared."""

from dataclasses import replace

from allranks.plan.environment import registered
from allranks.plan.graph import DoWhile, Graph, Node, ParallelFor, Pipeline, Step
from allranks.plan.ports import Input, Literal, Output

TRAIN = """\
type: command
name: train
version: "1"
inputs:
  data: {type: uri_folder, optional: true}
  lr: {type: number}
outputs:
  model: {type: uri_folder}
  again: {type: boolean}
  next: {type: number}
environment: azureml:cpu:1
command: echo $[[${{inputs.data}}]] ${{inputs.lr}} ${{outputs.model}} ${{outputs.again}} ${{outputs.next}}
"""

HEAD = """\
from azure.ai.ml import Input, MpiDistribution, dsl, load_component
from azure.ai.ml.dsl._condition import condition
from azure.ai.ml.dsl._do_while import do_while
from azure.ai.ml.dsl._parallel_for import parallel_for
from azure.ai.ml.entities import JobResourceConfiguration

train = load_component(source="./train.yml")

"""

OUTPUTS = (Output("model", "uri_folder", "rw_mount"), Output("again", "boolean"), Output("next", "number"))


def train(name: str, **changes: object) -> Step:
    """A step that runs the component, with its learning rate left to the caller."""
    step = Step(
        name,
        "echo $[[${{inputs.data}}]] ${{inputs.lr}} ${{outputs.model}} ${{outputs.again}} ${{outputs.next}}",
        component="train",
        version="1",
        environment=registered("azureml:cpu:1"),
        inputs=(Input("data", "uri_folder", None, "ro_mount", optional=True), Input("lr", "number", Literal(0.5))),
        outputs=OUTPUTS,
    )
    return replace(step, **changes)  # type: ignore[arg-type]


def with_inputs(step: Step, **values: object) -> Step:
    """The step with these values bound to its inputs."""
    ports = (replace(port, value=values.get(port.name, port.value)) for port in step.inputs)  # type: ignore[arg-type]
    return replace(step, inputs=tuple(ports))


def bare(graph: Graph) -> Graph:
    """The graph without names of components, versions and places in files, in which Python and YAML differ."""
    return replace(graph, nodes=tuple(map(_bare, graph.nodes)))


def _bare(node: Node) -> Node:
    if isinstance(node, Pipeline):
        return replace(node, graph=bare(node.graph), component="", version="", location=None)
    if isinstance(node, (DoWhile, ParallelFor)):
        body = _bare(node.body)
        assert isinstance(body, (Step, Pipeline))
        return replace(node, body=body, location=None)
    if isinstance(node, Step):
        return replace(node, display_name="", component="train", version="1", location=None)
    return replace(node, location=None)
