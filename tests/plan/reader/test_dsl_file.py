"""What the Python of a pipeline may say, and what it may not leave behind."""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.mpi import Mpi
from allranks.errors import InputError
from allranks.plan.ports import GraphInput, Input, Literal
from allranks.plan.ports import Path as DataPath
from pipeline_files import read, write, write_dsl

UNTYPED = """
@dsl.pipeline()
def untyped(data, lr=1, ready=True, name="a", *, epochs=None):
    one = train(data=data, lr=lr, fast=ready, epochs=epochs)
"""


@pytest.mark.parametrize(
    ("values", "port"),
    [
        ({"data": "data"}, Input("data", "uri_folder", DataPath("HERE/data"), "ro_mount")),
        ({"lr": "0.5"}, Input("lr", "number", Literal(0.5))),
        ({"lr": "1e-3"}, Input("lr", "number", Literal(0.001))),
        ({"ready": "FALSE"}, Input("ready", "boolean", Literal(False))),
        ({"name": ""}, Input("name", "string", Literal(""))),
        ({"name": "a=b"}, Input("name", "string", Literal("a=b"))),
        ({"epochs": "7"}, Input("epochs", "integer", Literal(7))),
        ({"data": "azureml:images:3"}, Input("data", "uri_folder", DataPath("HERE/data"), "ro_mount")),
        ({"data": "https://x/y"}, Input("data", "uri_folder", DataPath("HERE/src"), "ro_mount")),
        ({"data": "file:///a%20b"}, Input("data", "uri_folder", DataPath("/a b"), "ro_mount")),
    ],
    ids=str,
)
def test_inputs_without_annotation_are_what_they_are_bound_to(here: Path, values: dict[str, str], port: Input) -> None:
    write(here, "allranks.yaml", "data: {images:3: data, https://x/y: src}")
    plan = read(write_dsl(here, UNTYPED), values)
    found = next(other for other in plan.graph.inputs if other.name == port.name)
    if isinstance(port.value, DataPath):
        port = replace(port, value=DataPath(port.value.path.replace("HERE", str(here))))
    assert found == port


def test_a_file_that_changes_within_a_second_is_read_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python takes bytecode for current if the second of the last change and the size are the same."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for lr in (1, 2):
        file = write_dsl(here, UNTYPED.replace("lr=1", f"lr={lr}"))
        os.utime(file, (0, 0))
        assert Literal(lr) in [port.value for port in read(file).graph.inputs]


def test_groups(here: Path) -> None:
    file = write_dsl(
        here,
        """
        from azure.ai.ml.dsl._group_decorator import group

        @group
        class Settings:
            lr: float = 0.2
            epochs: int = 3

        @dsl.pipeline()
        def grouped(data: Input(type="uri_folder"), settings: Settings = Settings()):
            one = train(data=data, lr=settings.lr, epochs=settings.epochs)
        """,
    )
    plan = read(file, {"settings.lr": "0.4"})
    assert [(port.name, port.value) for port in plan.graph.inputs[1:]] == [
        ("settings.lr", Literal(0.4)),
        ("settings.epochs", Literal(3)),
    ]
    assert plan.graph.nodes[0].inputs[1].value == GraphInput("settings.lr")
    # The function keeps its own defaults.
    assert read(file).graph.inputs[1].value == Literal(0.2)


def test_parameters_that_are_no_inputs(here: Path) -> None:
    file = write_dsl(
        here,
        """
        @dsl.pipeline(non_pipeline_inputs=["count"])
        def many(data: Input(type="uri_folder"), count: int):
            for place in range(count):
                step = train(data=data)
                step.name = f"step_{place}"
        """,
    )
    assert [step.name for step in read(file, {"count": "3"}).graph.nodes] == ["step_0", "step_1", "step_2"]
    with pytest.raises(InputError, match="--set count=VALUE"):
        read(file)


def test_expressions_become_steps_and_leave_no_files(here: Path) -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    plan = read(
        write_dsl(
            here,
            """
            @dsl.pipeline()
            def expression(count: int = 2):
                one = train(data=Input(path="data"), epochs=count + 1)
            """,
        )
    )
    assert "mldesigner execute" in plan.graph.nodes[0].command
    assert plan.graph.needs(plan.graph.nodes[1]) == (plan.graph.nodes[0].name,)
    made = {name for name in os.listdir(tempfile.gettempdir()) if name.startswith(("allranks-", "tmp"))}
    # Other processes may use the folder at the same time; what this one made has its file.
    assert not [name for name in made - before if Path(tempfile.gettempdir(), name, "component_spec.yml").exists()]


def test_decorated_functions_as_components(here: Path) -> None:
    write(
        here,
        "parts/deep/prepare.py",
        """\
        from mldesigner import Input, Output, command_component

        @command_component(name="prepare", version="3", environment="azureml:x:1",
                           distribution={"type": "mpi"}, resources={"instance_count": 2})
        def prepare(out: Output(type="uri_folder"), count: Input(type="integer", min=1) = 3):
            print(count)
        """,
    )
    plan = read(
        write_dsl(
            here,
            """
            from parts.deep.prepare import prepare

            @dsl.pipeline()
            def decorated():
                made = prepare(count=4)
            """,
        )
    )
    (step,) = plan.graph.nodes
    assert (step.component, step.version, step.distribution, step.instance_count) == ("prepare", "3", Mpi(1), 2)
    assert step.inputs == (Input("count", "integer", Literal(4), minimum=1.0),)
    assert step.code is not None
    assert os.listdir(step.code.folder) == ["prepare.py"]
    assert not [name for name in sys.modules if name.partition(".")[0] == "parts"]


def test_what_a_file_adds_to_the_search_path_is_taken_back(here: Path) -> None:
    write(here, "far/settings.py", "NAME = 'first'\n")
    file = write_dsl(
        here,
        """
        import sys
        sys.path.insert(0, "far")

        @dsl.pipeline()
        def digits():
            import settings
            step = train(data=Input(path="data"))
            step.name = settings.NAME
        """,
    )
    before = list(sys.path)
    assert [step.name for step in read(file).graph.nodes] == ["first"]
    write(here, "far/settings.py", "NAME = 'second'\n")
    assert [step.name for step in read(file).graph.nodes] == ["second"]
    assert sys.path == before
