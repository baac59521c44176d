"""Each kind of instances gives a step its files in a way of its own."""

import pytest


@pytest.fixture
def kind(each_kind: str) -> str:
    return each_kind
