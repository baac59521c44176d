"""Edits of the function of a pipeline in Python: text -> edit -> text, without the SDK."""

import pytest
from python_texts import HEAD, TWO, edited

from allranks.errors import InputError
from allranks_studio.documents import edits
from allranks_studio.documents.edits import Edit, FromInput, FromOutput, Literal

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
    "set a value after a comment": (
        edits.SetInput("train", "max_steps", Literal(2)),
        """\
    train = train_image_classifier(
        data=images,
        seed=seed,  # any
    )
""",
        """\
    train = train_image_classifier(
        data=images,
        seed=seed,  # any
        max_steps=2,
    )
""",
    ),
    "set a value beside a comment": (
        edits.SetInput("train", "seed", Literal(2)),
        "    train = train_image_classifier(  # all defaults\n    )\n",
        "    train = train_image_classifier(seed=2  # all defaults\n    )\n",
    ),
    "set a value that a statement sets": (
        edits.SetInput("train", "seed", Literal(2)),
        "    train = train_image_classifier()\n    train.inputs.seed = 1\n",
        "    train = train_image_classifier()\n    train.inputs.seed = 2\n",
    ),
    "break a line that becomes too long": (
        edits.SetInput("train", "lr_scheduler_type", Literal("cosine")),
        """\
    train = train_image_classifier(data=images, num_train_epochs=epochs, learning_rate=0.1)
""",
        """\
    train = train_image_classifier(
        data=images,
        num_train_epochs=epochs,
        learning_rate=0.1,
        lr_scheduler_type="cosine",
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
    "connect steps apart": (
        edits.SetInput("train", "data", FromOutput("prepare", "images")),
        """\
    train = train_image_classifier()
    train.compute = "gpu"

    layout(train, 2)

    prepare = prepare_images()
""",
        """\
    prepare = prepare_images()
    train = train_image_classifier(data=prepare.outputs.images)
    train.compute = "gpu"

    layout(train, 2)
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
    "delete between blank lines": (
        edits.DeleteNode("prepare"),
        """\
    train = train_image_classifier()

    prepare = prepare_images()

    # Last.
    other = train_image_classifier(data=prepare.outputs.images)
    after(train, prepare, other)
    after(train, prepare)
""",
        """\
    train = train_image_classifier()

    # Last.
    other = train_image_classifier()
    after(train, other)
""",
    ),
    "delete a sweep": (
        edits.DeleteNode("tune"),
        """\
    train = train_image_classifier()
    prepare = prepare_images()
    tune = train.sweep()
    layout(tune, 2)

    return {"model": tune.outputs.model}
""",
        """\
    prepare = prepare_images()
""",
    ),
    "set an input of a sweep": (
        edits.SetInput("tune", "seed", Literal(2)),
        "    train = train_image_classifier()\n    tune = train.sweep()\n",
        "    train = train_image_classifier(seed=2)\n    tune = train.sweep()\n",
    ),
    "rename a step without a variable": (
        edits.RenameNode("step_10", "prepare"),
        "    prepare_images()\n",
        "    prepare = prepare_images()\n",
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
        "    train = layout(train_image_classifier(), 2, process_count_per_instance=4)\n",
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
    "set the layout by calls": (
        edits.SetLayout("train", Literal(2), Literal(1)),
        """\
    train = train_image_classifier()
    train.set_resources(instance_count=1, instance_type="gpu")
""",
        """\
    train = train_image_classifier()
    train.set_resources(instance_count=2, instance_type="gpu")
""",
    ),
    "set the compute before the layout": (
        edits.SetCompute("tune", "gpu"),
        "    train = train_image_classifier()\n    tune = train.sweep()\n    layout(tune, 2)\n",
        """\
    train = train_image_classifier()
    tune = train.sweep()
    tune.compute = "gpu"
    layout(tune, 2)
""",
    ),
    "remove the compute": (
        edits.SetCompute("train", ""),
        '    train = train_image_classifier()\n    train.compute = "gpu"\n',
        "    train = train_image_classifier()\n",
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
        ("    a = train_image_classifier()\n", edits.RenameNode("a", "layout"), "name layout"),
        ("    a = train_image_classifier(); b = 1\n", edits.DeleteNode("a"), "several statements"),
        ("    a = train_image_classifier().sweep()\n", edits.DuplicateNode("a", "b"), "sweep"),
        ("    prepare_images()\n", edits.RenameNode("step_10", "prepare_images"), "name prepare_images"),
        ("    a = prepare_images()\n    b = train_image_classifier(a)\n", edits.DeleteNode("a"), "line 11"),
        ("    a = train_image_classifier()\n    return a\n", edits.WrapNodes(("a",), "b"), "line 11"),
        (
            "    a = train_image_classifier()\n    if epochs:\n        layout(a, 2)\n",
            edits.DuplicateNode("a", "b"),
            "line 12",
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
