"""Pipeline functions mean the same when they are called quickly: azure-ai-ml itself is the reference."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import Input, dsl, load_component

from allranks.sdk.quick_functions import quick_functions

SPEC = """\
name: train
type: command
inputs: {data: {type: uri_folder, optional: true}, rate: {type: number, default: 0.1}}
outputs: {model: {type: uri_folder}}
command: "true"
environment: azureml:any:1
"""


@pytest.fixture
def train(tmp_path: Path) -> Any:
    (tmp_path / "train.yaml").write_text(SPEC)
    return load_component(tmp_path / "train.yaml")


def _one_variable_for_two_steps(train: Any) -> Callable[..., Any]:
    @dsl.pipeline()
    def outer() -> None:
        step = train()
        step = train(data=step.outputs.model)

    return outer


def _steps_without_variables(train: Any) -> Callable[..., Any]:
    @dsl.pipeline()
    def outer(rate: float = 0.5) -> None:
        train(rate=rate)
        named = train()
        named.name = "other"
        for number in range(2):
            train(rate=number)

    return outer


def _a_function_called_twice(train: Any) -> Callable[..., Any]:
    @dsl.pipeline()
    def inner(data: Input(type="uri_folder", optional=True)) -> Any:  # type: ignore[valid-type]
        first = train(data=data)
        second = train(data=first.outputs.model)
        return {"model": second.outputs.model}

    @dsl.pipeline()
    def outer() -> Any:
        before = train()
        one = inner(data=before.outputs.model)
        two = inner(data=one.outputs.model)
        return {"model": two.outputs.model}

    return outer


def _a_function_that_fails_within(train: Any) -> Callable[..., Any]:
    @dsl.pipeline()
    def broken() -> None:
        lost = train()
        raise ValueError(lost)

    @dsl.pipeline()
    def outer() -> None:
        first = train()
        with pytest.raises(ValueError, match="inputs"):
            broken()
        second = train(data=first.outputs.model)
        del first, second

    return outer


def _a_helper_that_makes_the_first_step(train: Any) -> Callable[..., Any]:
    def helper() -> Any:
        inside = train()
        inside.inputs.rate = 0.2
        return inside

    @dsl.pipeline()
    def outer() -> None:
        made = helper()
        last = train(data=made.outputs.model)
        last.inputs.rate = 0.3

    return outer


FUNCTIONS = (
    _one_variable_for_two_steps,
    _steps_without_variables,
    _a_function_called_twice,
    _a_function_that_fails_within,
    _a_helper_that_makes_the_first_step,
)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_job_is_that_of_the_sdk(function: Callable[[Any], Callable[..., Any]], train: Any) -> None:
    pipeline = function(train)
    expected = pipeline()
    with quick_functions():
        job = pipeline()
    assert list(job.jobs) == list(expected.jobs)
    assert job._to_dict() == expected._to_dict()


def test_components_keep_their_text(train: Any) -> None:
    with quick_functions():
        train()
    assert str(train) == train._to_yaml()
