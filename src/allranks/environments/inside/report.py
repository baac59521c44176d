"""Findings and their formatting. Standard library only: this runs inside environments."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    ok: True or False; None if it could not be checked, with the reason in found
    """

    what: str
    expected: str
    found: str
    ok: bool | None


def is_right(findings: list[Finding]) -> bool:
    return not any(finding.ok is False for finding in findings)


def as_data(findings: list[Finding]) -> list[dict[str, object]]:
    return [asdict(finding) for finding in findings]


def as_text(findings: list[Finding]) -> str:
    """Return a line for each finding, with the expected value if the check failed."""
    lines = []
    for finding in findings:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[finding.ok]
        expectation = f", expected {finding.expected}" if finding.ok is False else ""
        lines.append(f"{mark}  {finding.what}: {finding.found}{expectation}")
    return "\n".join(lines)
