"""`allranks why`: say why a run or a downloaded job has failed, or explain the code of a message."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from allranks.azure.watch import finder
from allranks.cli.completion import complete_runs, silent
from allranks.cli.console import console, errors, plain, print_result, to_json, with_links
from allranks.cli.options import FolderOption, JsonOption, StepArgument
from allranks.cli.parameters import option
from allranks.cli.views.summary import explained
from allranks.errors import InputError, Problem, Rule, did_you_mean
from allranks.history.nested import records_at
from allranks.history.records import RunRecord, Status, Verdict
from allranks.plan.walk import LEFT_OUT
from allranks.verdict.folder import verdicts

_NAME = "troubleshooting.md"
_SECTION = re.compile(r"^### ([\w-]+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_CODE = re.compile(r"[a-z]+(-[a-z0-9]+)*")


@silent
def _complete(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Propose runs, and the codes that begin with the word."""
    yield from complete_runs(ctx, incomplete)
    yield from explanations() if incomplete else ()


def why(
    identity: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FOLDER|CODE",
            help="A run as of `allranks show`; a folder with logs that were downloaded from Azure ML; or the code or "
            "the rule in a message, such as missing-package.",
            autocompletion=_complete,
        ),
    ] = "latest",
    step: StepArgument = None,
    codes: Annotated[bool, option("--codes", "List the codes of messages and the rules of `allranks check`.")] = False,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Say why a run has failed: the rank that failed first, its exception, what followed, and what to do.

    For the code or the rule in a message: explain the problem, whether or not there is a run. In a folder, the logs
    user_logs/std_log_process_N.txt, 70_driver_log_N.txt and the like are read, also in folders below, and dumps of
    torch's Flight Recorder, nccl_trace_rank_N or rank_N. --json prints an array with one object per failed step.
    """
    if codes:
        known = explanations()
        rows = [{"code": code, "text": text} for code, text in known.items()]
        width = max(map(len, known))
        print_result(json, rows, *(f"{code:<{width}}  {first_sentence(text)}" for code, text in known.items()))
        return
    if not Path(identity).is_dir() and (text := explanations().get(identity)):
        print_result(json, {"code": identity, "text": text}, text)
        return
    found = _of_folder(Path(identity), step) if "/" in identity or Path(identity).is_dir() else None
    notes: Sequence[str] = ()
    if found is None:
        found, notes = _of_run(folder, identity, step)
    if json:
        print(to_json(found))
    else:
        lines = [line for verdict in found for line in (*explained(verdict), Text())]
        lines += [Text(plain(note), style="bright_black") for note in notes]
        screen = console()
        screen.print(with_links(screen, Text("\n").join(lines if notes else lines[:-1])), soft_wrap=True)


def _of_folder(folder: Path, step: str | None) -> Sequence[Verdict]:
    found = verdicts(folder, lambda text: errors().print(text, soft_wrap=True))
    found = [verdict for verdict in found if step in (None, verdict.step)]
    if not found:
        raise InputError(Problem(str(folder), "its logs show no failure" + (f" of {step}" if step else "")))
    return found


def _of_run(folder: Path | None, identity: str, step: str | None) -> tuple[Sequence[Verdict], Sequence[str]]:
    """Return the verdicts of a run, and its notes about files that its code lacks."""
    try:
        record = finder(folder)(identity)
    except InputError:
        near = did_you_mean(identity, explanations())
        if not near or not _CODE.fullmatch(identity):
            raise
        found, expected = "no run and no code has this name", "a run, or the code or rule in a message"
        raise InputError(Problem(identity, found, expected, f"{near} List all codes: allranks why --codes")) from None
    return failures(record, step), [note for note in record.notes if note.startswith(LEFT_OUT)]


def failures(record: RunRecord, step: str | None) -> Sequence[Verdict]:
    """Return the verdicts of a run, or of a step and the steps inside it. Raise InputError if none has failed."""
    steps = record.steps if step is None else records_at(record, step)
    verdicts = [each.verdict for each in steps if each.verdict is not None]
    if not verdicts:
        where = f"run {record.id}" + (f", step {step}" if step else "")
        if record.status is Status.INTERRUPTED:
            fix = f"to continue it: allranks resume {record.id}"
            raise InputError(Problem(where, "no step has failed: its engine died or was killed", "a failed step", fix))
        text = "; ".join(("it has not failed", *(f"{each.name}: {each.straggler}" for each in steps if each.straggler)))
        raise InputError(Problem(where, text, "a failed step", f"see: allranks show {record.id}"))
    return verdicts


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".:")


def page() -> Path:
    """Return the troubleshooting page: in the folder above in the wheel, in docs/reference/ in a checkout."""
    packaged = Path(__file__).parents[1] / _NAME
    return packaged if packaged.exists() else Path(__file__).resolve().parents[4] / "docs/reference" / _NAME


def explanations() -> dict[str, str]:
    """Return the explanations of rules and of codes. A section of the troubleshooting page replaces that of a rule."""
    return {**rule_explanations(), **sections()}


def sections() -> dict[str, str]:
    """Return the sections of the troubleshooting page by code, without links, which a terminal cannot open."""
    return {code: _LINK.sub(r"\1", text).strip() for code, text in _SECTION.findall(page().read_text(encoding="utf-8"))}


def rule_explanations() -> dict[str, str]:
    """Return the rules by code. Rules of components come first, then those of pipelines and environments."""
    return {rule.code: _text(rule) for rule in Rule.all_about("component", "plan", "environment")}


def _text(rule: Rule) -> str:
    lines = [rule.what, "", f"level   {rule.level.value}", f"fix     {rule.fix}", f"source  {rule.source}"]
    if rule.ignorable:
        lines.append(f"ignore  a comment in the line, or above all content: # allranks: ignore {rule.code}")
    return "\n".join(lines)
