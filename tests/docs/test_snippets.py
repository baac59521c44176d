"""The training scripts of docs/how-to/write-a-training-script.md run as they stand. The pipeline of the README, which
the tests of the wheel run, imports what its installation brings."""

import json
import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from documents import FENCE, pages

README = Path(__file__).resolve().parents[2] / "README.md"
PAGE = README.parent / "docs/how-to/write-a-training-script.md"
SNIPPETS = [code for language, code in FENCE.findall(PAGE.read_text(encoding="utf-8")) if language == "python"]


@pytest.mark.slow
def test_the_installation_brings_what_the_first_pipeline_imports() -> None:
    text = README.read_text(encoding="utf-8")
    extra = re.findall(r'^\$ pip install "PATH/TO/allranks\[(\w+)\]"', text, re.MULTILINE)[0]
    functions = re.findall(r"^from allranks.library import (.*)", text, re.MULTILINE)[0].split(", ")
    folders = [folder for name in functions for folder in README.parent.glob(f"components/*/{name}")]
    assert len(folders) == len(functions)
    folders += [README.parent / "components/shared/allranks_steps" / name for name in ("images", "models")]
    code = "\n".join(file.read_text(encoding="utf-8") for folder in folders for file in folder.rglob("*.py"))
    modules = set(re.findall(r"^ *(?:import|from) (\w+)", code, re.MULTILINE))
    brought = {
        canonicalize_name(requirement.name)
        for requirement in map(Requirement, requires("allranks") or ())
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
    }
    distributions = packages_distributions()
    modules &= distributions.keys() - {"allranks", "allranks_steps"}
    assert {"torch", "sklearn", "PIL", "mlflow"} <= modules
    missing = [name for name in modules if not brought.intersection(map(canonicalize_name, distributions[name]))]
    assert not missing


def test_code_on_every_page_is_code() -> None:
    for page in pages():
        for language, code in FENCE.findall(page.read_text(encoding="utf-8")):
            if language == "python":
                compile(code, page, "exec")
            elif language == "yaml":
                yaml.safe_load(code)


@pytest.mark.slow
@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_it_runs_on_one_process_without_a_launcher(snippet: str, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(snippet)
    report = tmp_path / "report.jsonl"
    done = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1", "ALLRANKS_REPORT": str(report)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("loss") == 5 * snippet.count("print(")
    assert "Warning" not in done.stderr
    events = [json.loads(line) for line in report.read_text().splitlines() if line]
    steps = [event for event in events if event["event"] == "progress" and event["metrics"]]
    assert steps
    assert len(steps) == steps[-1]["step"] == steps[-1]["total"]
