"""Each kind of instances has code of its own for what is tested here."""

import pytest


@pytest.fixture
def kind(each_kind: str) -> str:
    return each_kind
