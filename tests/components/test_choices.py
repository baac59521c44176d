"""Component x choice x environment: every choice that a form offers can work where the component runs.

Components fall under these tests by being there.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from allranks.catalog.find import find_specs
from allranks.checks.component.environment import environment_folder
from allranks.contract import requirements
from allranks.contract.commands import starts
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.requirements import LAUNCHES, LIBRARIES, Requirement, launch_problem, normal
from allranks.contract.single import Single
from allranks.local.missing_modules import PACKAGES
from allranks.local.script_imports import program
from allranks.plan.environment import Environment, packages
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal
from allranks.sdk.session import session
from allranks.sdk.specs import load
from plan_findings import check

PROJECT = Path(__file__).parents[2]
SPECS = find_specs(PROJECT / "components")
ENVIRONMENTS = sorted(file.parent.name for file in (PROJECT / "environments").glob("*/environment.yaml"))
MODULES = {**PACKAGES, "mlflow": "mlflow-skinny"}


def folder(name: str) -> str:
    return str(PROJECT / "environments" / name)


@cache
def components_of(spec: Path) -> list:
    with session():
        return load(spec)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_packages_of_every_environment_are_known(name: str) -> None:
    available = packages(folder(name))
    assert available is not None
    assert "numpy" in available
    assert ("horovod" in available) is (name in ("horovod", "tensorflow-horovod"))
    assert ("deepspeed" in available) is (name in ("deepspeed", "finetuning"))


def test_the_strategies_of_the_runtime_are_those_of_the_contract() -> None:
    strategies = pytest.importorskip("allranks.runtime.strategies")
    assert {name: entry.library for name, entry in strategies.STRATEGIES.items()} == LIBRARIES


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.parent.name)
def test_the_environment_has_what_the_code_imports_and_every_choice_needs(spec: Path) -> None:
    for component in components_of(spec):
        available = packages(environment_folder(component.environment))
        assert available is not None
        choices = {name: port.enum or () for name, port in component.inputs.items()}
        for each in requirements.requirements(component.tags or {}, choices):
            assert each.missing(available) == (), each
        imported = {MODULES.get(module, module) for module in imports(component)}
        assert {name for name in imported if normal(name) not in available} == set()


def imports(component: object) -> Iterator[str]:
    """What the component's command imports in any case, of other packages."""
    with session(), component._build_code() as snapshot:  # type: ignore[attr-defined]
        for start in starts(component.command):  # type: ignore[attr-defined]
            for each in program(start, str(snapshot.path), ()).imports:
                if each.module not in sys.stdlib_module_names:
                    yield each.module


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.parent.name)
def test_the_launch_fits_the_distribution(spec: Path) -> None:
    for component in components_of(spec):
        settings = component.distribution
        kind = DISTRIBUTIONS[settings.type.lower()] if settings else None
        count = getattr(settings, "process_count_per_instance", None)
        distribution: Distribution = Single()
        if kind is not None:
            distribution = kind(**({"process_count_per_instance": count} if count else {}))
        launch = (component.tags or {}).get("launch", "")
        assert launch in {"", "single process", *LAUNCHES}
        assert launch_problem(launch, distribution) is None


def problems(step: Step, **inputs: str) -> list[str]:
    ports = tuple(Input(name, "string", Literal(value)) for name, value in inputs.items())
    return [f"{each.where}: {each.found}" for each in check(Plan("p", Graph((step,), ports)))]


def strategy(value: object, environment: str) -> Step:
    port = Input("strategy", "string", value, enum=("ddp", "deepspeed", "horovod"))  # type: ignore[arg-type]
    build = {"folder": folder(environment), "dockerfile": "Dockerfile"} if environment else {}
    place = Environment(name=f"allranks-{environment}", version="1", **build)
    return Step("train", "run ${{inputs.strategy}}", inputs=(port,), environment=place, distribution=PyTorch(2))


@pytest.mark.parametrize(
    ("value", "environment", "package"),
    [
        ("ddp", "pytorch", ""),
        ("horovod", "pytorch", "horovod"),
        ("deepspeed", "horovod", "deepspeed"),
        ("horovod", "horovod", ""),
        ("horovod", "", ""),  # its packages are not known
        ("ddp", "tensorflow", "torch"),
    ],
)
def test_a_choice_that_the_environment_cannot_run_is_refused(value: str, environment: str, package: str) -> None:
    where = f"{value!r}, which needs {package}; the environment allranks-{environment} does not have it"
    expected = [f"step train, key inputs.strategy: {where}"] if package else []
    assert problems(strategy(Literal(value), environment)) == expected
    assert problems(strategy(GraphInput("how"), environment), how=value) == expected


def test_the_other_choices_are_named() -> None:
    (problem,) = check(Plan("p", Graph((strategy(Literal("horovod"), "deepspeed"),))))
    assert problem.expected == "one of ddp, deepspeed"


def test_requirements_that_tags_declare() -> None:
    step = strategy(Literal("ddp"), "pytorch")
    quantized = Input("quantization", "string", Literal("nf4"), enum=("none", "nf4"))
    tags = {"requires": "Torch, lightning", "requires.quantization.nf4": "bitsandbytes", "requires.x.y": "a"}
    step = replace(step, inputs=(*step.inputs, quantized), tags=tags)
    needs = "'nf4', which needs bitsandbytes; the environment allranks-pytorch does not have it"
    assert problems(step) == [
        "step train, key environment: allranks-pytorch, which does not have lightning",
        f"step train, key inputs.quantization: {needs}",
    ]
    declared = requirements.requirements({"requires.strategy.ddp": "nothing-else"}, {"strategy": ["ddp"]})
    assert declared == (Requirement(("nothing-else",), "strategy", "ddp", "requires.strategy.ddp"),)


@pytest.mark.parametrize(
    ("launch", "distribution", "found"),
    [
        ("per node", PyTorch(1), ""),
        ("per node", PyTorch(4), "4; the component starts the processes of an instance itself"),
        ("per process", PyTorch(4), ""),
        ("per process", Mpi(4), ""),
        ("MPI", PyTorch(4), "pytorch; the component is launched as MPI"),
        ("Ray", Single(), "none; the component is launched as Ray"),
        ("nightly", Single(), ""),
    ],
)
def test_a_distribution_that_the_launch_cannot_read_is_refused(
    launch: str, distribution: Distribution, found: str
) -> None:
    said = problems(Step("train", "run", tags={"launch": launch}, distribution=distribution))
    assert [each.partition(": ")[2] for each in said] == ([found] if found else [])
