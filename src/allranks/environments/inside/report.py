"""What was looked at, and whether it is as it should be. Standard library alone: this runs inside environments."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    ok: True or False; None where it could not be tried, and found says why
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
    """Return a line for each, and what was expected where it is something else."""
    lines = []
    for finding in findings:
        mark = {True: "ok  ", False: "FAIL", None: "-   "}[finding.ok]
        wanted = f", expected {finding.expected}" if finding.ok is False else ""
        lines.append(f"{mark}  {finding.what}: {finding.found}{wanted}")
    return "\n".join(lines)
