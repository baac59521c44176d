"""What edits of pipelines in Python change around the function: imports, components, signatures, other functions.

Text -> edit -> text, without the SDK.
"""

from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from python_texts import HEAD, TWO, edited

from allranks.errors import InputError
from allranks_studio.documents import edits
from allranks_studio.documents.edits import FromOutput, Literal
from allranks_studio.documents.python import Python


def test_import_is_added_in_order() -> None:
    before = HEAD + TWO
    item = edits.AddNode("", "library:register_model", "register", {"model": FromOutput("train", "model")})
    assert edited(before, item) == before.replace(
        "import prepare_images, train", "import prepare_images, register_model, train"
    ).replace("    return", "    register = register_model(model=train.outputs.model)\n    return")


def test_import_that_is_too_long_gets_rows() -> None:
    before = HEAD.replace("import prepare_images,", "import evaluate_image_classifier, prepare_images, register_model,")
    after = edited(before + TWO, edits.AddNode("", "library:sample_text", "sample"))
    names = ("evaluate_image_classifier", "prepare_images", "register_model", "sample_text", "train_image_classifier")
    rows = "".join(f"    {name},\n" for name in names)
    assert f"from allranks.library import (\n{rows})\n" in after
    back = edited(after, edits.DeleteNode("prepare")).partition("library import (\n")[2]
    assert back.startswith(rows.replace("    prepare_images,\n", ""))


def test_imports_of_groups() -> None:
    before = "from azure.ai.ml.dsl import pipeline\n\n\n@pipeline()\ndef digits():\n    pass\n"
    after = edited(before, edits.AddInput("", "seed", "integer", 1))
    assert after.startswith("from azure.ai.ml import Input\nfrom azure.ai.ml.dsl import pipeline\n\n\n@pipeline")
    after = edited(f"# Azure ML\n{before}", edits.AddNode("", "library:prepare_images", "prepare"))
    assert after.startswith(
        "# Azure ML\nfrom allranks.library import prepare_images\nfrom azure.ai.ml.dsl import pipeline\n"
    )
    after = edited(f"import os\n\n{before}", edits.AddNode("", "library:prepare_images", "prepare"))
    assert after.startswith(f"import os\n\nfrom allranks.library import prepare_images\n{before[:36]}")
    assert after.endswith("def digits():\n    prepare = prepare_images()\n")


def test_a_name_that_hides_the_function_is_refused() -> None:
    with pytest.raises(InputError, match="name register_model"):
        edited(HEAD + TWO, edits.AddNode("", "library:register_model", "register_model"))


def test_import_does_not_move_a_step_without_a_variable() -> None:
    before = HEAD.replace("import Input\n", "import load_component\n").replace(': Input(type="integer")', "")
    after = edited(before + "    prepare_images(data=1)\n", edits.SetInput("step_10", "data", Literal("./d")))
    assert after.endswith('    prepare_images(data=Input(type="uri_folder", path="./d"))\n')
    assert "import Input, load_component\n" in after


def test_registered_component_is_loaded_by_a_client(tmp_path: Path) -> None:
    (tmp_path / "fit.yaml").touch()
    (tmp_path / "allranks.yaml").write_text("components:\n  acme_fit: fit.yaml\n")
    edit, file = edits.AddNode("", "registered:acme_fit", "fit"), tmp_path / "digits.py"
    after = edited(HEAD + TWO, edit, file)
    assert 'acme_fit = ml_client.components.get("acme_fit", label="latest")\n' in after
    assert "import Input, MLClient\n" in after
    assert "from azure.identity import DefaultAzureCredential\n" in after
    again = edited(after.replace("ml_client", "ml"), replace(edit, name="fit_2"), file)
    assert again.count("MLClient.from_config(") == 1
    assert "    fit_2 = acme_fit_2()\n" in again
    assert 'acme_fit_2 = ml.components.get("acme_fit", label="latest")\n' in again


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


def test_other_parameters_stay() -> None:
    before = HEAD.replace("seed: Input", "*, seed: Input") + TWO
    after = edited(before, edits.AddInput("", "name", "string", "a"))
    stars = 'def digits(epochs: Input(type="integer") = 3, *, seed: Input(type="integer") = 0, name: Input'
    assert f'{stars}(type="string") = "a"):' in after
    with pytest.raises(InputError, match="input other"):
        edited(before, edits.DeleteInput("", "other"))


def test_input_with_the_name_of_the_decorator_is_deleted() -> None:
    before = HEAD.replace("@pipeline()", "@pipeline").replace("seed:", "pipeline:") + "    prepare_images()\n"
    assert 'def digits(epochs: Input(type="integer") = 3):' in edited(before, edits.DeleteInput("", "pipeline"))


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
    bare = HEAD.replace("@pipeline()", "@pipeline") + TWO
    assert '@pipeline(default_compute="cpu")\n' in edited(bare, edits.SetCompute("", "cpu"))
    set_below = f'{bare}\n\njob = digits()\njob.settings.default_compute = "a"\n'
    assert edited(set_below, edits.SetCompute("", "b")) == set_below.replace('"a"', '"b"')
    assert edited(set_below, edits.SetCompute("", "")).endswith("job = digits()\n")


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
    # Its outputs and inputs are those of all its calls.
    assert edited(after, edits.DeleteOutput("fit", "model")).endswith("images, seed=seed)\n")
    gone = edits.DeleteInput("fit", "seed")
    assert "fit_steps(images=prepare.outputs.images)" in edited(after, gone)
    with pytest.raises(InputError, match="line 18: this code uses seed"):
        edited(after.replace('seed=seed)\n    return {"model": fit', '**more)\n    return {"model": fit'), gone)
    # Its function and imports go with the nested pipeline.
    assert "fit_steps" not in edited(after, edits.DeleteNode("fit"))


def test_wrap_refuses_variables_that_stay() -> None:
    body = "    make = train_image_classifier\n    train = make()\n"
    with pytest.raises(InputError, match="they use make"):
        edited(HEAD + body, edits.WrapNodes(("train",), "fit"))


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
