"""Pipelines in Python as texts, and their graphs without the SDK: for tests of edits."""

import ast
from dataclasses import replace
from pathlib import Path

from allranks_studio.documents.canvas import Graph, InputPort, Layout, Node, OutputPort, Port
from allranks_studio.documents.edits import Edit, Literal
from allranks_studio.documents.placing import placed
from allranks_studio.documents.python import Python
from allranks_studio.documents.python_outline import Module, Pipeline, root_of

HEAD = """\
from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.library import prepare_images, train_image_classifier


@pipeline()
def digits(epochs: Input(type="integer") = 3, seed: Input(type="integer") = 0):
"""

TWO = """\
    prepare = prepare_images(seed=seed)
    train = train_image_classifier(data=prepare.outputs.images, seed=seed)
    return {"model": train.outputs.model}
"""


def graph_of(text: str) -> Graph:
    """Return the graph of a text as far as the text tells it. Each step has the inputs that it sets."""
    module = Module(text)

    def visit(pipeline: Pipeline, path: str) -> Graph:
        nodes = []
        for made in pipeline.made:
            key = made.key if not made.key.startswith("@") else f"step_{made.call.lineno}"
            inner = module.nested(made)
            kinds = {"data": "uri_folder", "images": "uri_folder"}
            ports = tuple(
                InputPort(name, kinds.get(name, "integer"), value=pipeline.value(code))
                for name, code in made.inputs.items()
            )
            node = Node(
                f"{path}.{key}".lstrip("."),
                key,
                "pipeline" if inner else "sweep" if "sweep" in ast.dump(made.statement) else "command",
                component=f"allranks_{root_of(made.call.func)}",
                inputs=ports,
                outputs=tuple(Port(name, "uri_folder") for name in ("images", "model", "metrics")),
                layout=Layout("pytorch", Literal(1), Literal(1)),
                first=made.call.lineno,
                last=made.call.lineno,
            )
            nodes.append(replace(node, graph=visit(inner, node.path)) if inner else node)
        inputs = tuple(InputPort(name, "integer") for name in pipeline.parameters)
        outputs = [OutputPort(name, "uri_folder", pipeline.value(code)) for name, code in pipeline.outputs.items()]
        return Graph(inputs, tuple(outputs), tuple(nodes))

    assert module.root is not None
    return placed(visit(module.root, ""), module.outline())


def edited(text: str, edit: Edit, path: Path = Path("/project/pipelines/digits.py")) -> str:
    return Python().edited(text, edit, graph_of(text), path)
