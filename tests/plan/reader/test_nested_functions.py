"""Which function of a Python file is its pipeline, where others of them are pipeline components of it."""

from pathlib import Path

import pytest

from allranks.errors import InputError
from pipeline_files import read, write_dsl

pytestmark = pytest.mark.usefixtures("no_network")

PARTS = """
@dsl.pipeline()
def inner(data: Input(type="uri_folder")):
    first = train(data=data)
    return {"model": first.outputs.model}

@dsl.pipeline()
def middle(data: Input(type="uri_folder")):
    parts = [inner(data=data) for _ in range(2)]
    return {"model": parts[-1].outputs.model}

"""
OUTER = """
@dsl.pipeline()
def outer(data: Input(type="uri_folder")):
    middle(data=data)
"""


def test_the_pipeline_is_the_function_that_no_other_uses(here: Path) -> None:
    file = write_dsl(here, PARTS + OUTER)
    assert read(file, {"data": "data"}).name == "outer"
    assert read(f"{file}:middle", {"data": "data"}).name == "middle"


def test_two_functions_that_no_other_uses_are_told_apart_by_the_user(here: Path) -> None:
    file = write_dsl(here, PARTS + OUTER + OUTER.replace("outer", "another"))
    with pytest.raises(InputError, match="it has 2 pipelines: outer, another"):
        read(file, {"data": "data"})
