"""How much memory there is."""

from pathlib import Path

import pytest

from allranks.local.capacity import control_group_limits, machine_memory, size_memory


def _limit(folder: Path, file: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/user/run", {"user/run/memory.max": "300", "user/memory.max": "max", "memory.max": "900"}, [300, 900]),
        ("0::/host/path/of/a/container", {"memory.max": "500"}, [500]),
        ("0::/", {}, []),
    ],
    ids=["nested", "container", "no limit"],
)
def test_the_limits_of_the_control_groups(
    tmp_path: Path, groups: str, limits: dict[str, str], expected: list[int]
) -> None:
    for path, text in limits.items():
        _limit((tmp_path / path).parent, Path(path).name, text)
    own = tmp_path / "cgroup"
    own.write_text(groups + "\n")
    assert control_group_limits("memory.max", own, tmp_path) == expected


def test_the_memory_of_this_machine_and_of_sizes() -> None:
    assert machine_memory() > 1 << 28
    assert size_memory("Standard_ND96asr_v4") == 900 << 30
    assert size_memory("Standard_unknown") is None
    assert size_memory("") is None
