"""The functions of the library, and the declarations that are generated from them."""

import enum
import importlib
import inspect
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from allranks import library
from allranks.catalog import shipped_folder, shipped_specs
from allranks.catalog.find import find_specs
from allranks.catalog.functions import component_function, documentation, signature
from allranks.errors import InputError
from allranks.sdk import internals
from allranks.sdk.python_file import importable

ROOT = Path(__file__).parents[1]


def test_the_names_are_those_of_the_folders_of_all_specs() -> None:
    names = {spec.parent.name for spec in find_specs(shipped_folder() / "components")}
    assert set(library.__all__) == set(dir(library)) == names
    assert [getattr(library, name).component.name for name in library.__all__] == [
        f"allranks_{name}" for name in library.__all__
    ]


@pytest.mark.slow
def test_the_stub_declares_them() -> None:
    component = runpy.run_path(str(ROOT / "tools" / "make_library.py"))["component"]
    for name, spec in shipped_specs().items():
        function, read = getattr(library, name), component(spec)
        assert (inspect.signature(function), function.__doc__) == (signature(read), documentation(read))


def test_importing_the_library_loads_neither_a_spec_nor_the_sdk() -> None:
    code = """
import sys
from allranks import library
names = library.__all__
assert not hasattr(library, "__path__")
print("azure.ai.ml" in sys.modules, vars(library).keys() & set(names))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False set()\n"


def test_a_function_tells_what_its_component_takes() -> None:
    train = library.train_image_classifier
    assert library.train_image_classifier is train
    parameters = inspect.signature(train).parameters
    assert {name: str(parameters[name]) for name in ("data", "initial_model", "optim", "seed", "tf32")} == {
        "data": "data: Data",
        "initial_model": "initial_model: Data | None = None",
        "optim": "optim: Literal['adamw_torch', 'sgd'] = 'adamw_torch'",
        "seed": "seed: int = 0",
        "tf32": "tf32: bool = False",
    }
    assert [*parameters] == [*train.component.inputs]
    text = inspect.getdoc(train) or ""
    for part in (
        "Trains a classifier of images on all ranks",
        "num_train_epochs: integer, 1 to 100000. Passes over the training images.",
        "optim: string, one of adamw_torch, sgd. ",
        "model: mlflow_model. The trained model",
        "allranks_train_image_classifier 0.1.0",
    ):
        assert part in text
    assert str(inspect.signature(library.record_launch_single)) in pydoc_text("record_launch_single")


def pydoc_text(name: str) -> str:
    import pydoc

    return pydoc.plain(pydoc.render_doc(getattr(library, name)))


class Strategy(enum.Enum):
    FSDP = "fsdp"


def test_a_call_returns_the_node_of_the_sdk() -> None:
    from azure.ai.ml import Input
    from azure.ai.ml.dsl import pipeline
    from azure.ai.ml.entities import Command

    @pipeline
    def one(epochs=3):
        data = Input(type="uri_folder", path="folder")
        train = library.train_image_classifier(data=data, strategy=Strategy.FSDP, num_train_epochs=epochs)
        assert isinstance(train, Command)
        assert train.component is library.train_image_classifier.component
        library.evaluate_image_classifier(data=data, model=train.outputs.model)

    train, evaluate = one().jobs.values()
    bound = [train.inputs.strategy, train.inputs.num_train_epochs, evaluate.inputs.model]
    assert [str(internals.data(port)) for port in bound] == [
        "fsdp",
        "${{parent.inputs.epochs}}",
        "${{parent.jobs.train.outputs.model}}",
    ]


def test_names_are_not_found_as_python_expects() -> None:
    assert not hasattr(library, "trian_image_classifier")
    assert not hasattr(library, "_repr_html_")
    with pytest.raises(ImportError, match=r"did you mean run_pytorch\?"):
        from allranks.library import run_pytorhc  # noqa: F401
    with pytest.raises(TypeError, match="run_pytorch"):
        library.run_pytorch("folder")


def test_a_component_whose_environment_is_not_installed(tmp_path: Path) -> None:
    name = "select_best"
    spec = library.select_best.component._source_path
    copy = tmp_path / "components" / "group" / name
    shutil.copytree(Path(spec).parent, copy)
    with pytest.raises(InputError) as caught:
        component_function(name, copy / "component.yaml")
    (problem,) = caught.value.problems
    assert "environment" in problem.where
    assert problem.found.endswith("environments/cpu/environment.yaml does not exist")
    assert problem.fix == "install allranks again"


def test_each_file_that_is_read_has_components_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Submitting a pipeline writes the ids of a workspace into them."""
    import allranks

    monkeypatch.setattr(allranks, "library", library)
    read = [library.select_best.component]
    for name in ("first", "second"):
        with importable(tmp_path / f"{name}.py"):
            read.append(importlib.import_module(library.__name__).select_best.component)
    assert len({id(component) for component in read}) == 3
    assert sys.modules[library.__name__] is library
