"""Check the expectations of an environment inside its container.

    python verify.py EXPECTATIONS [--variant "cpu distribution"] [--json] [--report FOLDER]

EXPECTATIONS is an expect.yaml, or the same as JSON, which needs no PyYAML. Exits with 1 if a check fails.

It also runs in images without this project: it needs only the standard library and the packages that it checks.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import frameworks
import ranks
import system
from probe_commands import Finding, as_text, is_right, to_records

PROBES: dict[str, Any] = {
    "python": system.python,
    "openmpi": system.openmpi,
    "ucx": system.ucx,
    "ofed": system.ofed,
    "libraries": system.libraries,
    "commands": system.commands,
    "files": system.files,
    "packages": frameworks.packages,
    "modules": frameworks.modules,
    "torch": frameworks.torch,
    "tensorflow": frameworks.tensorflow,
    "deepspeed_ops": frameworks.deepspeed_ops,
    "horovod": frameworks.horovod,
    "ranks": ranks.ranks,
}
EVERY, TAGS = "every", "tags"
WORDS = {"cuda", "cpu", "doca", "distribution"}
"""Words in the names of the other sections: devices and kinds of OFED for which an image is built."""
UNMEASURED = {"base-image"}


def findings(expectations: dict[str, Any], variant: set[str]) -> list[Finding]:
    """Return the findings of the probes in this variant's sections, and of the tags."""
    facts: dict[str, str] = {}
    known_words = f"{EVERY}, or words of {', '.join(sorted(WORDS))}"
    results: list[Finding] = []
    for section, probes in expectations.items():
        if section not in (EVERY, TAGS) and not set(section.split()) <= WORDS:
            results.append(Finding(f"section {section}", known_words, "no such section", False))
        if section != TAGS and (section == EVERY or set(section.split()) <= variant):
            for name, value in (probes or {}).items():
                probe = PROBES.get(name)
                known = ", ".join(PROBES)
                results += probe(value, facts) if probe else [Finding(name, f"one of {known}", "no such probe", False)]
    return results + [_tag(name, str(value), facts) for name, value in (expectations.get(TAGS) or {}).items()]


def _tag(name: str, value: str, facts: dict[str, str]) -> Finding:
    if name in UNMEASURED or name not in facts:
        return Finding(f"tag {name}", value, f"{value}, not measured in this variant", None)
    return Finding(f"tag {name}", facts[name], f"{value}", facts[name] == value)


def resolve_variant(given: str | None) -> set[str]:
    """Return the given variant, by default that of the image; outside of an image, cpu and distribution."""
    if given and given != "auto":
        return set(given.split())
    return {os.environ.get("ALLRANKS_DEVICE") or "cpu", os.environ.get("ALLRANKS_OFED") or "distribution"}


def read(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    try:
        content = json.loads(text)
    except ValueError:
        import yaml

        content = yaml.safe_load(text)
    if not isinstance(content, dict):
        raise SystemExit(f"{path}: found {type(content).__name__}, expected sections such as {EVERY}")
    return content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("expectations", type=Path)
    parser.add_argument("--variant", default=None)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--report", type=Path)
    args = parser.parse_args()
    results = findings(read(args.expectations), resolve_variant(args.variant))
    if args.report:
        args.report.mkdir(parents=True, exist_ok=True)
        (args.report / "verification.json").write_text(
            json.dumps(to_records(results), indent=2) + "\n", encoding="utf-8"
        )
    print(json.dumps(to_records(results)) if args.json else as_text(results))
    sys.exit(0 if is_right(results) else 1)


if __name__ == "__main__":
    main()
