"""`allranks init --agents`: what it writes is what the reference says, and its commands are accepted."""

import re
from pathlib import Path

import make_checks
import make_cli
import make_components
import pytest

from allranks_command import called, content, write
from documents import accept, commands_of

SKILL = ".agents/skills/allranks/SKILL.md"
ROW = re.compile(r"\| \[?`(.+?)`.*")
ENTRY = re.compile(r"^- `(.+?)`: (.+)$", re.MULTILINE)


def rows(page: str, *columns: int) -> set[tuple[str, ...]]:
    """Return cells of the rows of a page's tables that begin with a name."""
    lines = (line.strip("| ").replace("\\|", "\0").split(" | ") for line in page.splitlines() if ROW.match(line))
    cells = ([ROW.sub(r"\1", f"| {first}"), *others] for first, *others in lines)
    return {tuple(line[column].replace("\0", "|") for column in columns) for line in cells}


@pytest.mark.slow
@pytest.mark.xdist_group("documented commands")  # the first one loads the library's components
def test_the_files_say_what_the_reference_says(tmp_path: Path) -> None:
    done = called("init", "--agents", folder=tmp_path)
    assert (done.code, sorted(content(tmp_path))) == (0, [SKILL, "llms.txt"]), done.err
    text = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# allranks\n\n> ")
    commands, rules, components = (set(ENTRY.findall(part)) for part in re.split(r"\n(?=Rules|Components)", text))
    assert commands == rows(make_cli.page().partition("\n## ")[0], 0, 1)
    assert rules == {
        (code, f"{what} ({level.partition(',')[0]})") for code, level, what in rows(make_checks.page(), 0, 1, 2)
    }
    assert {(f"allranks_{name}", text) for name, text in components} == rows(make_components.table(), 0, 1)
    shown = commands_of("allranks", (tmp_path / SKILL).read_text(encoding="utf-8"))
    assert len(shown) > 5
    for each in shown:
        accept(tuple(each.command.split()[1:]))


def test_files_of_the_user_are_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allranks.cli.agent_files.find_components", lambda _: ())
    write(tmp_path, "llms.txt", "mine")
    for more, message in (
        ((), "found a file with other content"),
        (("--from=own_script",), "--from own_script is given"),
    ):
        done = called("init", "--agents", *more, folder=tmp_path)
        assert done.code == 2
        assert message in " ".join(done.err.split())
        assert content(tmp_path) == {"llms.txt": b"mine"}
