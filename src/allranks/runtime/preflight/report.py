"""Report the findings, once for all ranks."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from allranks.contract.rank_env import RankEnv
from allranks.runtime.preflight.finding import OK, Finding

VARIABLE = "ALLRANKS_PREFLIGHT_REPORT"
"""Path of a JSON file to which rank 0 writes the findings, also if a check failed."""


def tell(env: RankEnv, seconds: float, findings: Sequence[Finding]) -> None:
    """Print one line to stderr if all checks are ok, else a table. Write the report if one is requested.

    seconds: duration of the checks
    """
    report = os.environ.get(VARIABLE)
    if report:
        record = {
            "world_size": env.world_size,
            "instance_count": env.instance_count,
            "seconds": round(seconds, 3),
            "findings": [asdict(finding) for finding in findings],
        }
        Path(report).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    instances = f"{env.instance_count} instance{'s' * (env.instance_count != 1)}"
    title = f"preflight: {env.world_size} ranks on {instances}, {seconds:.2f} s"
    if all(finding.state == OK for finding in findings):
        print(f"allranks: {title}: {len(findings)} checks, all well", file=sys.stderr, flush=True)
    else:
        print(table(title, findings), file=sys.stderr, flush=True)


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
