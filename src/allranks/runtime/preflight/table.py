"""The findings as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from allranks.runtime.preflight.finding import OK, Finding


def table(title: str, findings: Sequence[Finding]) -> str:
    """Return a line for each finding. Unless it is "ok", two more lines have what was expected, and the fix."""
    lines = [title]
    for finding in findings:
        who = f"{finding.who}: " if finding.who else ""
        lines.append(f"  {finding.check:<11} {finding.state:<8} {who}{finding.found}")
        if finding.state != OK:
            lines.append(f"  {'':<20} expected: {finding.expected}")
            lines.append(f"  {'':<20} fix: {finding.fix}")
    return "\n".join(lines)
