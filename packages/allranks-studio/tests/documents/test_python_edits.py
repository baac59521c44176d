"""Edits of pipelines in Python: text -> edit -> text, without the SDK."""

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from allranks.errors import InputError
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import Graph, InputPort, Layout, Node, OutputPort, Port
from allranks_studio.documents.edits import Edit, FromInput, FromOutput, Literal
from allranks_studio.documents.patches import applied
from allranks_studio.documents.placing import placed
from allranks_studio.documents.python import Python
from allranks_studio.documents.python_outline import Module, Pipeline

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
                "pipeline" if inner else "command",
                inputs=ports,
                outputs=tuple(Port(name, "uri_folder") for name in ("images", "model", "metrics")),
                layout=Layout("pytorch", Literal(1), Literal(1)),
                first=made.call.lineno,
                last=made.call.lineno,
            )
            nodes.append(replace(node, graph=visit(inner, node.path)) if inner else node)
        inputs = tuple(InputPort(name, "integer") for name in pipeline.parameters)
        result = pipeline.result
        outputs = (
            [
                OutputPort(str(getattr(key, "value", "")), "uri_folder", pipeline.value(value))
                for key, value in zip(result.keys, result.values, strict=True)
            ]
            if result
            else []
        )
        return Graph(inputs, tuple(outputs), tuple(nodes))

    assert module.root is not None
    return placed(visit(module.root, ""), module.outline())


def edited(text: str, edit: Edit, path: Path = Path("/project/pipelines/digits.py")) -> str:
    return applied(text, Python().patches(text, edit, graph_of(text), path))


BODIES = {
    "set a value": (
        edits.SetInput("train", "seed", Literal(7)),
        TWO,
        TWO.replace("images, seed=seed)", "images, seed=7)"),
    ),
    "set a new value": (
        edits.SetInput("train", "max_steps", Literal(-1)),
        TWO,
        TWO.replace("images, seed=seed)", "images, seed=seed, max_steps=-1)"),
    ),
    "set data": (
        edits.SetInput("train", "data", Literal("azureml:digits:1")),
        TWO,
        TWO.replace("prepare.outputs.images", 'Input(type="uri_folder", path="azureml:digits:1")'),
    ),
    "set a value in rows": (
        edits.SetInput("train", "max_steps", Literal("it's")),
        """\
    train = train_image_classifier(
        data=images,  # those of the shop
        seed=seed
    )
""",
        """\
    train = train_image_classifier(
        data=images,  # those of the shop
        seed=seed,
        max_steps="it's"
    )
""",
    ),
    "break a line that becomes too long": (
        edits.SetInput("train", "lr_scheduler_type", Literal("cosine")),
        """\
    train = train_image_classifier(data=images, num_train_epochs=epochs, learning_rate=0.1)
""",
        """\
    train = train_image_classifier(
        data=images, num_train_epochs=epochs, learning_rate=0.1, lr_scheduler_type="cosine"
    )
""",
    ),
    "connect to a later step": (
        edits.SetInput("train", "initial_model", FromOutput("other", "model")),
        """\
    # The first.
    train = train_image_classifier(data=images)
    layout(train, 2, 2)
    other = train_image_classifier(data=images)
    layout(other, 2)
    return {"model": train.outputs.model}
""",
        """\
    other = train_image_classifier(data=images)
    layout(other, 2)
    # The first.
    train = train_image_classifier(data=images, initial_model=other.outputs.model)
    layout(train, 2, 2)
    return {"model": train.outputs.model}
""",
    ),
    "connect to a step without a variable": (
        edits.SetInput("train", "data", FromOutput("step_10", "images")),
        """\
    prepare_images()
    train = train_image_classifier()
""",
        """\
    step_10 = prepare_images()
    train = train_image_classifier(data=step_10.outputs.images)
""",
    ),
    "reset": (edits.ResetInput("train", "seed"), TWO, TWO.replace("images, seed=seed)", "images)")),
    "reset in rows": (
        edits.ResetInput("train", "seed"),
        """\
    train = train_image_classifier(
        data=images,
        seed=seed,  # any
    )
""",
        """\
    train = train_image_classifier(
        data=images,
    )
""",
    ),
    "delete": (
        edits.DeleteNode("prepare"),
        TWO,
        """\
    train = train_image_classifier(seed=seed)
    return {"model": train.outputs.model}
""",
    ),
    "delete with its settings": (
        edits.DeleteNode("train"),
        """\
    prepare = prepare_images(seed=seed)

    # The training.
    train = train_image_classifier(data=prepare.outputs.images, seed=seed)
    layout(train, 2, 2)
    train.compute = "gpu"

    return {
        "model": train.outputs.model,
        "images": prepare.outputs.images,
    }
""",
        """\
    prepare = prepare_images(seed=seed)

    return {
        "images": prepare.outputs.images,
    }
""",
    ),
    "rename": (
        edits.RenameNode("train", "fit"),
        TWO,
        TWO.replace("train =", "fit =").replace("train.", "fit."),
    ),
    "rename by the name that is set": (
        edits.RenameNode("fit", "tune"),
        """\
    train = train_image_classifier()
    train.name = "fit"
""",
        """\
    train = train_image_classifier()
    train.name = "tune"
""",
    ),
    "duplicate": (
        edits.DuplicateNode("train", "train_2"),
        """\
    train = train_image_classifier(data=images)
    layout(train, 2, 2)
""",
        """\
    train = train_image_classifier(data=images)
    layout(train, 2, 2)
    train_2 = train_image_classifier(data=images)
    layout(train_2, 2, 2)
""",
    ),
    "set the layout": (
        edits.SetLayout("train", Literal(2), FromInput("epochs")),
        TWO,
        TWO.replace("    return", "    layout(train, instance_count=2, process_count_per_instance=epochs)\n    return"),
    ),
    "set the layout in its call": (
        edits.SetLayout("train", Literal(2), Literal(4)),
        "    train = layout(train_image_classifier(), 1)\n",
        "    train = layout(train_image_classifier(), 2, 4)\n",
    ),
    "set the layout by objects": (
        edits.SetLayout("train", Literal(2), Literal(4)),
        """\
    train = train_image_classifier()
    train.resources.instance_count = 1
    train.distribution = PyTorchDistribution(process_count_per_instance=1)
""",
        """\
    train = train_image_classifier()
    train.resources.instance_count = 2
    train.distribution = PyTorchDistribution(process_count_per_instance=4)
""",
    ),
    "set the compute": (
        edits.SetCompute("train", "gpu"),
        TWO,
        TWO.replace("    return", '    train.compute = "gpu"\n    return'),
    ),
    "add an output": (
        edits.AddOutput("", "images", "prepare", "images"),
        TWO,
        TWO.replace("model}", 'model, "images": prepare.outputs.images}'),
    ),
    "add the first output": (
        edits.AddOutput("", "images", "prepare", "images"),
        "    prepare = prepare_images()\n",
        '    prepare = prepare_images()\n    return {"images": prepare.outputs.images}\n',
    ),
    "delete the last output": (
        edits.DeleteOutput("", "model"),
        TWO,
        TWO.removesuffix('    return {"model": train.outputs.model}\n'),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_body(name: str) -> None:
    edit, before, after = BODIES[name]
    result = edited(HEAD + before, edit)
    assert result.partition("seed: Input")[2].partition("\n")[2] == after


def test_import_is_added_in_order() -> None:
    before = HEAD + TWO
    item = edits.AddNode("", "library:register_model", "register", {"model": FromOutput("train", "model")})
    assert edited(before, item) == before.replace(
        "import prepare_images, train", "import prepare_images, register_model, train"
    ).replace("    return", "    register = register_model(model=train.outputs.model)\n    return")


def test_imports_that_become_unused_are_removed() -> None:
    before = HEAD + TWO.replace("    return", "    layout(train, 2)\n    return")
    after = edited(before, edits.DeleteNode("train"))
    assert "import layout" not in after
    assert "from allranks.library import prepare_images\n" in after


def test_input_is_added_before_those_with_defaults() -> None:
    before = HEAD + TWO
    after = edited(before, edits.AddInput("", "images", "uri_folder"))
    assert 'def digits(\n    images: Input(type="uri_folder"),\n    epochs: Input(type="integer") = 3,\n' in after
    after = edited(before, edits.AddInput("", "name", "string", "a", enum=("a", "b")))
    assert '    seed: Input(type="integer") = 0,\n    name: Input(type="string", enum=["a", "b"]) = "a",\n):' in after
    after = edited(before, edits.AddInput("", "rate", "number", 0.5, 0, 1))
    assert 'rate: Input(type="number", min=0, max=1) = 0.5,\n):' in after


def test_input_is_deleted_with_its_uses() -> None:
    after = edited(HEAD + TWO, edits.DeleteInput("", "seed"))
    assert "seed" not in after
    assert 'def digits(epochs: Input(type="integer") = 3):' in after


def test_project_component_is_loaded_as_the_others(tmp_path: Path) -> None:
    for name in ("prepare", "train"):
        (tmp_path / "components" / name).mkdir(parents=True)
        (tmp_path / "components" / name / "component.yaml").touch()
    file = tmp_path / "pipelines" / "digits.py"
    before = dedent("""\
        from pathlib import Path

        from azure.ai.ml import load_component
        from azure.ai.ml.dsl import pipeline

        COMPONENTS = Path(__file__).parent.parent / 'components'
        prepare = load_component(COMPONENTS / 'prepare/component.yaml')


        @pipeline()
        def digits():
            points = prepare()
    """)
    after = edited(before, edits.AddNode("", "project:components/train/component.yaml", "fit"), file)
    assert "'prepare/component.yaml')\ntrain = load_component(COMPONENTS / 'train/component.yaml')\n" in after
    assert after.endswith("    points = prepare()\n    fit = train()\n")
    again = edited(before, edits.AddNode("", "project:components/prepare/component.yaml", "more"), file)
    assert again == before + "    more = prepare()\n"
    other = edited(HEAD + TWO, edits.AddNode("", "project:components/train/component.yaml", "more"), file)
    assert 'train_2 = load_component(Path(__file__).parent / "../components/train/component.yaml")' in other
    assert "from pathlib import Path\n\nfrom azure.ai.ml import Input, load_component\n" in other


def test_distribution_becomes_that_of_the_variant() -> None:
    before = (
        HEAD.replace("train_image_classifier", "run_pytorch")
        + """\
    run = run_pytorch(script="a.py")
    layout(run, 2, 4)
"""
    )
    after = edited(before, edits.SetDistribution("run", "mpi"))
    assert "from allranks.library import prepare_images, run_mpi\n" in after
    assert 'run = run_mpi(script="a.py")\n    layout(run, 2, 4)\n' in after
    after = edited(before, edits.SetDistribution("run", "ray"))
    assert 'run = run_ray(script="a.py")\n    layout(run, 2)\n' in after
    after = edited(HEAD + TWO, edits.SetDistribution("train", "mpi"))
    assert "import Input, MpiDistribution\n" in after
    assert "train.distribution = MpiDistribution(process_count_per_instance=1)\n" in after


def test_default_compute() -> None:
    after = edited(HEAD + TWO, edits.SetCompute("", "cpu"))
    assert '@pipeline(default_compute="cpu")' in after
    assert edited(after, edits.SetCompute("", "")) == HEAD + TWO


def test_wrap() -> None:
    before = HEAD + TWO.replace("    return", "    layout(train, 2, 2)\n    return")
    after = edited(before, edits.WrapNodes(("train",), "fit"))
    assert after.partition("train_image_classifier\n")[2] == dedent("""\


        @pipeline(name="fit", display_name="Fit")
        def fit_steps(images: Input(type="uri_folder"), seed: Input(type="integer")):
            train = train_image_classifier(data=images, seed=seed)
            layout(train, 2, 2)
            return {"model": train.outputs.model}


        @pipeline()
        def digits(epochs: Input(type="integer") = 3, seed: Input(type="integer") = 0):
            prepare = prepare_images(seed=seed)
            fit = fit_steps(images=prepare.outputs.images, seed=seed)
            return {"model": fit.outputs.model}
        """)
    assert edited(after, edits.RenameNode("fit.train", "learn")) == after.replace("train =", "learn =").replace(
        "layout(train", "layout(learn"
    ).replace("train.outputs", "learn.outputs")
    # Its function and imports go with the nested pipeline.
    assert "fit_steps" not in edited(after, edits.DeleteNode("fit"))


@pytest.mark.parametrize(
    ("body", "edit", "message"),
    [
        (
            "    for n in range(2):\n        train = train_image_classifier(seed=n)\n",
            edits.DeleteNode("step_11"),
            "loop",
        ),
        ("    a = train_image_classifier()\n    print(f'{a}')\n", edits.RenameNode("a", "b"), "line 11"),
        ("    a = train_image_classifier()\n    b = [a]\n", edits.DeleteNode("a"), "line 11"),
        (
            "    n = 1\n    a = train_image_classifier(seed=n)\n    n = 2\n    b = train_image_classifier(seed=n)\n",
            edits.SetInput("a", "initial_model", FromOutput("b", "model")),
            "line 12",
        ),
        ("    a = train_image_classifier()\n", edits.RenameNode("a", "layout"), "name layout"),
        ("    a = train_image_classifier(); b = 1\n", edits.DeleteNode("a"), "several statements"),
        (
            "    a = train_image_classifier()\n    layout(a)\n    layout(a)\n",
            edits.SetLayout("a", Literal(1), Literal(1)),
            "twice",
        ),
        ("    a = train_image_classifier()\n    return a.outputs\n", edits.AddOutput("", "x", "a", "model"), "line 11"),
    ],
)
def test_what_cannot_be_patched(body: str, edit: Edit, message: str) -> None:
    with pytest.raises(InputError, match=message):
        edited(HEAD + body, edit)


def test_other_characters_stay() -> None:
    body = "\tgrüße = 'ä'; # ö\n\ttrain = train_image_classifier(seed = 1 ,text='ü')\n".replace("grüße", "x")
    before = (HEAD + body.replace("; #", "  #")).replace("\n", "\r\n").removesuffix("\r\n")
    after = edited(before, edits.SetInput("train", "seed", Literal(22)))
    assert after == before.replace("seed = 1 ", "seed = 22 ")
    after = edited(before, edits.SetCompute("train", "c"))
    assert after == before + '\r\n\ttrain.compute = "c"\r\n'


def test_outline_locks_what_other_code_makes() -> None:
    body = """\
    given = {"seed": seed}
    train = train_image_classifier(**given)
    for n in range(2):
        other = train_image_classifier(seed=n)
    text = train.outputs.model
    use = prepare_images(source=text, lr=LR * 2, seed=1)
"""
    outline = Python().outline(HEAD + body)
    assert outline.nodes["train"].lock is None
    assert not outline.nodes["train"].inputs
    assert outline.nodes["@13"].lock is not None
    assert outline.nodes["@13"].lock.reason == "loop"
    values = {name: place.value for name, place in outline.nodes["use"].inputs.items()}
    expression = edits.Expression("LR * 2")
    assert values == {"source": FromOutput("train", "model"), "lr": expression, "seed": Literal(1)}
    with pytest.raises(InputError, match="line 2"):
        Python().outline("a = 1\nb = (\n")
