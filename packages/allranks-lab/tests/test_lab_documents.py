"""Every command that the package's documents show works."""

import shlex
from pathlib import Path

import pytest

from allranks_command import called
from documents import commands_of

PACKAGE = Path(__file__).parents[1]
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "docs").glob("*.md")))


@pytest.mark.slow
@pytest.mark.xdist_group("documented commands")
@pytest.mark.parametrize("command", [shown.command for shown in commands_of("allranks", TEXT)])
def test_a_command_of_the_documents_works(command: str, tmp_path: Path) -> None:
    for name in ("components", "pipelines", "environments", "src", "pyproject.toml"):
        (tmp_path / name).symlink_to(PACKAGE.parents[1] / name)
    _, name, *words = shlex.split(command)
    if name in ("debug", "rehearse", "rerun"):  # minutes, or a debugger, or an earlier run: their options are read
        words.append("--help")
    done = called(name, *words, *(["--dry-run"] if name == "run" else []), folder=tmp_path)
    assert done.code == 0, done.err
    assert done.out
