"""Some of the random commands end the same, whether their programs are executed or forked."""

from pathlib import Path

import pytest
from random_commands import commands, compare


@pytest.mark.parametrize(("kind", "seed"), [("rack", 11), ("loopback", 12)], indirect=["kind"])
def test_commands_end_the_same(kind: str, seed: int, tmp_path: Path) -> None:
    differing, forked = compare(kind, commands(20, seed), tmp_path)
    assert differing == []
    assert forked > 5
