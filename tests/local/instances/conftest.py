"""Each kind of instances has code of its own for what is tested here."""

from __future__ import annotations

import pytest


@pytest.fixture
def kind(each_kind: str) -> str:
    return each_kind
