"""Every command that the documentation shows works, and every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest import mock

import pytest
from commands import small_runtime
from fake import names
from fake.jobs import Job
from fake.service import FakeAzure
from typer.testing import CliRunner

from allranks.azure.runs import add_record
from allranks.azure.workspace import WorkspaceName
from allranks.cli.main import app
from allranks.contract.pytorch import PyTorch
from allranks.history.workspace import Workspace
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.project.files import create, template
from allranks_command import PATIENCE, called, started
from documents import Shown, broken_links, commands_of
from run_records import write_engine_log

# They import the SDK: seconds.
pytestmark = pytest.mark.slow

IN_ONE_PROCESS = pytest.mark.xdist_group("documented commands")
"""The library's components are loaded by the first command that wants them."""

ROOT = Path(__file__).parents[2]
DOCUMENTS = (
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")),
    *sorted((ROOT / "docs").glob("*.md")),
)
RUN_AS_A_WHOLE = ("first-own-pipeline.md", "local-client.md", "migrating.md")
"""Documents whose commands depend on the ones before them. They have tests of their own."""
EXAMPLE = re.compile(r"For example: (allranks .+?)\n\n", re.DOTALL)
HELP_OF = (
    "run",
    "resume",
    "submit",
    "cancel",
    "clean",
    "runs",
    "show",
    "logs",
    "check",
    "components",
    "doctor",
)
IN_AZURE = ("submit", "cancel", "schedules")
"""Commands that talk to Azure: they get the fake service, with a run that goes on and is the latest."""
ON_RUNS = ("cancel", "clean", "logs", "rerun", "resume", "runs", "show")
"""Commands on earlier runs: they get one that failed."""
OF_APPLIED = ("disable", "enable", "delete")
"""What can be done to a schedule that is applied, in an order in which each can."""
APPLY = ["schedules", "apply", "--compute", "cpu-cluster"]
OF_FOLDERS = ("check", "components", "register", "schedules")
"""Commands that read all that they find in a project, where they are not given a pipeline."""
ON_FILES = ("check", "run", "submit")
"""Commands whose words choose files and settings: one that has all words of another tries that one too."""


def documented(program: str) -> list[Shown]:
    documents = [document for document in DOCUMENTS if document.name not in RUN_AS_A_WHOLE]
    return commands_of(program, "\n".join(document.read_text(encoding="utf-8") for document in documents))


def without_training(command: str) -> list[str]:
    """The words after `allranks`; a run is only planned, and a submitted one not watched."""
    _, *words = shlex.split(command, comments=True)
    if words[0] == "launch" and not {"--dry-run", "--emit"} & {*words}:
        return ["launch", "--dry-run", *words[1:]]
    if words[0] not in ("run", "submit") or "--dry-run" in words:
        return words
    return [*words, "--dry-run" if words[0] == "run" else "--no-stream"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("components", "pipelines", "environments", "src", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def keep_few(project: Path) -> None:
    """Leave the components of one folder, and one pipeline, which has schedules: all that is found is treated alike."""
    for kind, kept in (("components", ("shared", "image_classification")), ("pipelines", ("recurring_training.py",))):
        (project / kind).unlink()
        for name in kept:
            place = ROOT / kind / name
            target = project / kind / name
            if place.is_dir():
                shutil.copytree(place, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                target.parent.mkdir()
                shutil.copy(place, target)


def fail(project: Path) -> None:
    """Run what fails at training, and can be finished now."""
    mended = project / ".allranks" / "mended"
    steps = (
        Step("prepare", "echo prepared"),
        Step("train", f"echo loss; [ -e {mended} ]", distribution=PyTorch(2), instance_count=2, after=("prepare",)),
        Step("evaluate", "echo 0.98", after=("train",)),
    )
    record = run(Plan("image_classification", Graph(steps)), Workspace(mended.parent), Options(instances="loopback"))
    write_engine_log(Path(record.folder))
    mended.touch()


@pytest.fixture
def in_azure(request: pytest.FixtureRequest, project: Path) -> Callable[[str], dict[str, str]]:
    """What a command needs of its environment to reach Azure; the service is started for those that do."""

    def variables(command: str) -> dict[str, str]:
        if command not in IN_AZURE:
            return {}
        azure: FakeAzure = request.getfixturevalue("azure")
        small_runtime(project, request.getfixturevalue("monkeypatch"))
        azure.jobs["calm_plum"] = Job("calm_plum", {"jobType": "Pipeline"}, status="Running")
        where = WorkspaceName(names.SUBSCRIPTION, names.GROUP, names.WORKSPACE)
        plan = Plan("image_classification", Graph((Step("train", "echo"),)))
        add_record(Workspace(project / ".allranks"), plan, "calm_plum", where, "", pipeline=True)
        return azure.environment

    return variables


def test_the_documents_show_commands() -> None:
    assert documented("allranks")
    assert documented("make")


def is_part_of_another(shown: tuple[str, ...], others: Iterable[tuple[str, ...]]) -> bool:
    """Whether another command has all of its words, or folders with its files: the same command, and more."""
    folder, command, *words = shown
    if command not in ON_FILES:
        return False
    wanted = [{*words}]
    if command == "check":
        wanted.append({word.partition("/")[0] for word in words})
    same = [{*other[2:]} for other in others if other != shown and other[:2] == (folder, command)]
    return any(each <= found for each in wanted for found in same)


SHOWN = {(shown.folder, *without_training(shown.command)): shown.command for shown in documented("allranks")}
APPLIED = sorted(
    (words for _, *words in SHOWN if words[0] == "schedules" and words[1] in OF_APPLIED),
    key=lambda words: OF_APPLIED.index(words[1]),
)
COMMANDS = {
    words: command
    for words, command in SHOWN.items()
    if [*words[1:]] not in (APPLY, *APPLIED) and not is_part_of_another(words, SHOWN)
}


@IN_ONE_PROCESS
@pytest.mark.parametrize(("folder", "arguments"), [(first, rest) for first, *rest in COMMANDS], ids=COMMANDS.values())
def test_a_command_of_the_documents_works(
    folder: str, arguments: list[str], project: Path, in_azure: Callable[[str], dict[str, str]]
) -> None:
    if folder:
        project /= folder
        create(project, template())
    if arguments[0] in OF_FOLDERS and not any(word.endswith(".py") for word in arguments):
        keep_few(project)
    if arguments[0] in ON_RUNS:
        fail(project)
    variables = in_azure(arguments[0])
    if arguments[0] == "debug":
        with mock.patch("allranks.local.engine.run", side_effect=KeyboardInterrupt):
            assert called(*arguments, folder=project).code == 130, "it does not start"
        return
    if arguments[:2] == ["schedules", "run"]:
        run_schedules(arguments, project)
        return
    works(arguments, project, variables)


def works(arguments: list[str], project: Path, variables: dict[str, str]) -> None:
    done = called(*arguments, folder=project, **variables)
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
    assert done.out


@IN_ONE_PROCESS
def test_commands_on_an_applied_schedule_work(project: Path, in_azure: Callable[[str], dict[str, str]]) -> None:
    keep_few(project)
    variables = in_azure("schedules")
    assert {words[1] for words in APPLIED} == {*OF_APPLIED}
    for arguments in (APPLY, *APPLIED):
        works(arguments, project, variables)


def run_schedules(arguments: list[str], project: Path) -> None:
    """A scheduler goes on until it is stopped: here, as soon as it has said when something fires next."""
    with started(*arguments, folder=project) as process:
        assert process.stdout is not None
        assert next((line for line in process.stdout if "next: " in line), ""), process.stderr and process.stderr.read()
        process.terminate()
        assert process.wait(PATIENCE) == 0


@IN_ONE_PROCESS
def test_the_examples_in_the_help_work(project: Path, in_azure: Callable[[str], dict[str, str]]) -> None:
    """Those that the documents show too are tried above."""
    helps = [CliRunner().invoke(app, [command, "--help"]).stdout for command in HELP_OF]
    found = [example for text in helps for example in EXAMPLE.findall(text)]
    assert len(found) >= 3
    examples = [without_training(re.sub(r"(?<=-)\n *", "", example).replace("\n", " ")) for example in found]
    fail(project)
    for arguments in examples:
        words = ("", *arguments)
        if words not in SHOWN and not is_part_of_another(words, SHOWN):
            works(arguments, project, in_azure(arguments[0]))


def test_what_is_made_can_be_made() -> None:
    targets = set(re.findall(r"^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wanted = {word for shown in documented("make") for word in shlex.split(shown.command)[1:] if "=" not in word}
    assert wanted <= targets


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted(ROOT.glob("packages/**/*.md"))], ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    assert broken_links(document.read_text(encoding="utf-8"), document.parent) == []
