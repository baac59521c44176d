"""Every command that the documentation shows is accepted, its pipelines can run, and every link leads somewhere."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from typer.main import get_command

from allranks.cli.main import app
from allranks_command import called, commands
from documents import FENCE, Shown, accept, broken_links, commands_of, pages

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*(ROOT / f"{name}.md" for name in ("README", "AGENTS", "CONTRIBUTING", "CHANGELOG")), *pages())
RUN_AS_A_WHOLE = {*(ROOT / "docs/tutorials").glob("*.md")}
RUN_AS_A_WHOLE |= {ROOT / f"docs/how-to/{name}.md" for name in ("local-client", "migrate-from-v1")}
"""Documents whose commands depend on the ones before them. They have tests of their own."""
EXAMPLE = re.compile(r": (allranks .+)$", re.MULTILINE)
WITH_RUNS_OR_AZURE = ("rerun", "debug", "rehearse", "diff", "verify-workspace", "register")
WITH_PIPELINES = ("run", "submit", "launch")


def documented(program: str) -> list[Shown]:
    documents = [document for document in DOCUMENTS if document not in RUN_AS_A_WHOLE]
    return commands_of(program, "\n".join(document.read_text(encoding="utf-8") for document in documents))


def words_of(command: str) -> tuple[str, ...]:
    _, *words = shlex.split(command, comments=True)
    return tuple(words)


COMMANDS = {words_of(shown.command): shown.folder for shown in documented("allranks")}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_of_the_documents_is_accepted(words: tuple[str, ...]) -> None:
    accept(words)


def test_an_option_that_does_not_exist_is_not_accepted() -> None:
    with pytest.raises(Exception, match="No such option: --quick"):
        accept(("schedules", "next", "--quick"))


def planned(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that only plan what a command runs: those of a submission, the file and its inputs."""
    if words[0] == "submit":
        sets = [word for before, word in pairwise(words) if before == "--set"]
        return ("run", "--dry-run", words[1], *(f"--set={word}" for word in sets))
    return words if {"--dry-run", "--emit"} & {*words} else (words[0], "--dry-run", *words[1:])


def are_of_another(words: tuple[str, ...]) -> bool:
    """Return whether another command has all of these words: the same pipeline, and more."""
    return any({*words} < {*planned(other)} for other in COMMANDS if other[0] in WITH_PIPELINES)


PLANNED = dict.fromkeys(
    planned(words) for words, folder in COMMANDS.items() if words[0] in WITH_PIPELINES and not folder
)


# Most of them import the SDK: seconds.
@pytest.mark.slow
@pytest.mark.xdist_group("documented commands")  # the first one loads the library's components
@pytest.mark.parametrize("words", [words for words in PLANNED if not are_of_another(words)], ids=" ".join)
def test_a_pipeline_of_the_documents_can_run(words: tuple[str, ...], tmp_path: Path) -> None:
    python = [
        code for language, code in FENCE.findall(DOCUMENTS[0].read_text(encoding="utf-8")) if language == "python"
    ]
    (tmp_path / "digits.py").write_text(python[0])
    (tmp_path / "train.py").touch()
    for name in ("components", "pipelines", "environments", "src", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = called(*words, folder=tmp_path)
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
    assert done.out


@pytest.mark.recipe
@pytest.mark.xdist_group("documented commands")
def test_the_examples_in_the_help_run(tmp_path: Path) -> None:
    examples = [words_of(each) for command in commands(get_command(app)) for each in EXAMPLE.findall(command.help)]
    assert len(examples) >= 10
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").touch()
    for name in ("components", "pipelines", "environments", "src", "pyproject.toml"):
        (tmp_path / "project" / name).symlink_to(ROOT / name)
    for words in examples:
        accept(words)
        if words[0] in WITH_PIPELINES and "--as-azure" not in words:
            done = called(*planned(words), folder=tmp_path / "project")
        elif words[0] not in (*WITH_RUNS_OR_AZURE, "run"):
            done = called(*words, folder=tmp_path)
        assert done.code == 0, done.err


def test_what_is_made_can_be_made() -> None:
    targets = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wanted = {word for shown in documented("make") for word in shlex.split(shown.command)[1:] if "=" not in word}
    assert wanted
    assert wanted <= targets


OF_PACKAGES = sorted({*ROOT.glob("packages/*/*.md"), *ROOT.glob("packages/*/docs/*.md")})


@pytest.mark.parametrize("document", [*DOCUMENTS, *OF_PACKAGES], ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    assert broken_links(document.read_text(encoding="utf-8"), document.parent) == []
