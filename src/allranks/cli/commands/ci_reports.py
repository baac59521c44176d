"""The findings of a check as CI services read them: workflow commands of GitHub, JUnit's XML, and SARIF 2.1.0."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from allranks.checks import Findings
from allranks.cli.console import plain, problems_text, to_json, warnings_text
from allranks.cli.options import Format
from allranks.errors import InputError, Level, Location, Problem
from allranks.sdk.paths import nearest
from allranks.version import __version__

_SITE = "https://allranks.github.io/allranks/"
_NAME = "allranks check"
_UNNAMED = "unusable-input"
"""The rule of findings that have neither a rule nor a code."""
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class CheckedFiles:
    """A file or a folder that was checked, the files in the folder, and the findings."""

    path: str
    files: tuple[str, ...]
    findings: Findings


def one_format(format: Format, json: bool) -> Format:
    """Return the format that --format and --json request. Raise InputError if they contradict each other."""
    if json and format not in ("text", "json"):
        raise InputError(Problem("--json", f"--format {format} is given too", "one of them", "remove one"))
    return "json" if json else format


def print_report(format: Format, checked: Sequence[CheckedFiles]) -> None:
    """Print the report of a format to standard output; nothing for text and JSON."""
    if make := {"github": github, "junit": junit, "sarif": sarif}.get(format):
        sys.stdout.write(make(checked))


def github(checked: Sequence[CheckedFiles]) -> str:
    """Return workflow commands, with which GitHub shows each finding beside its line."""
    lines = []
    for problem, at in _located(checked):
        command = "notice" if problem.level is Level.MACHINE else problem.level.value
        properties = {"file": at.file, "line": at.line, "col": at.column, "title": _rule_of(problem)}
        values = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items() if value)
        lines.append(f"::{command} {values}::{_escaped(plain(str(problem)))}\n")
    return "".join(lines)


def _escaped(text: str, separators: str = "") -> str:
    return text.translate({ord(character): f"%{ord(character):02X}" for character in f"%\r\n{separators}"})


def junit(checked: Sequence[CheckedFiles]) -> str:
    """Return JUnit's XML, with a test case for each file. It fails if the file has problems, and prints the rest."""
    cases: dict[str, list[tuple[Problem, Location]]] = {_from_root(file): [] for each in checked for file in each.files}
    for problem, at in _located(checked):
        cases.setdefault(at.file, []).append((problem, at))
    suite = ElementTree.Element("testsuite", name=_NAME, tests=str(len(cases)), errors="0")
    for file, found in cases.items():
        name = _NOT_IN_XML.sub("\ufffd", file)
        case = ElementTree.SubElement(suite, "testcase", classname=_NAME, name=name, file=name)
        errors = [each for each in found if each[0].level is Level.ERROR]
        if errors:
            first, at = errors[0]
            case.attrib |= {"line": str(at.line)} if at.line else {}
            message = _in_xml(f"{first.where}: {first.found}")
            failure = ElementTree.SubElement(case, "failure", message=message, type=_rule_of(first))
            failure.text = _in_xml(problems_text([problem for problem, _ in errors]).plain)
        if others := [problem for problem, _ in found if problem.level is not Level.ERROR]:
            ElementTree.SubElement(case, "system-out").text = _in_xml(warnings_text(others).plain)
    suite.set("failures", str(len(suite.findall("*/failure"))))
    ElementTree.indent(suite)
    # ASCII, because the encoding of standard output may lack characters.
    return str(ElementTree.tostring(suite, encoding="us-ascii", xml_declaration=True), "ascii") + "\n"


def _in_xml(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", plain(text))


def sarif(checked: Sequence[CheckedFiles]) -> str:
    """Return a SARIF log, with the rules of its results. What this machine lacks is not a finding in the code."""
    located = [(problem, at) for problem, at in _located(checked) if problem.level is not Level.MACHINE]
    results = [
        {
            "ruleId": _rule_of(problem),
            "level": problem.level.value,
            "message": {"text": plain(str(problem))},
            "locations": [{"physicalLocation": _physical_location(at)}],
        }
        for problem, at in located
    ]
    rules = [*_descriptors(dict.fromkeys(_rule_of(problem) for problem, _ in located))]
    driver = {"name": "allranks", "version": __version__, "informationUri": _SITE, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return to_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}) + "\n"


def _descriptors(rules: Iterable[str]) -> Iterator[dict[str, Any]]:
    from allranks.cli.commands import why  # takes 0.04 s to import, and only SARIF needs it

    explanations, sections = why.explanations(), why.sections()
    for rule in rules:
        text = explanations.get(rule, "The input cannot be used as it is written.")
        yield {
            "id": rule,
            "shortDescription": {"text": why.first_sentence(text)},
            "help": {"text": text},
            "helpUri": f"{_SITE}reference/" + (f"troubleshooting/#{rule}" if rule in sections else "checks/"),
        }


def _physical_location(at: Location) -> dict[str, Any]:
    uri = Path(at.file).as_uri() if os.path.isabs(at.file) else quote(os.fsencode(at.file))
    region = {"startLine": at.line} | ({"startColumn": at.column} if at.column else {})
    return {"artifactLocation": {"uri": uri}} | ({"region": region} if at.line else {})


def _rule_of(problem: Problem) -> str:
    return problem.rule or problem.code or _UNNAMED


def _located(checked: Sequence[CheckedFiles]) -> list[tuple[Problem, Location]]:
    """Return the findings that the text lists, with the file that each names, or else the one that was checked."""
    located: dict[tuple[Problem, Level], tuple[Problem, Location]] = {}
    for each in checked:
        for problem in (*each.findings.errors, *each.findings.warnings, *each.findings.machine):
            at = Location.named_in(problem.where) or Location(each.path, 0)
            # A line of a notebook's cell is not a line of its file.
            at = replace(at, file=_from_root(at.file), line=0 if at.cell else at.line)
            located.setdefault((problem, problem.level), (problem, at))
    return list(located.values())


def _from_root(file: str) -> str:
    """Return a path relative to the root of the repository, if it is in the repository of the current folder."""
    git = nearest(Path.cwd(), ".git", exists=Path.exists)
    path = Path(os.path.abspath(file))
    root = git.parent if git else Path.cwd()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
