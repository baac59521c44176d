"""Writes docs/conformance.md: what `allranks check` says of the pipelines, jobs and notebooks of azureml-examples.

ALLRANKS_EXAMPLES=DIR python tools/make_conformance.py [--run] [--environments] [--results FILE]

DIR is a checkout of Azure/azureml-examples. Nothing is copied from it but the names of files. Git knows its commit, and
the files that it lacks. A notebook is executed up to its jobs, in a process of its own, for at most two minutes.

With --run, `allranks run` executes each file for which this machine lacks nothing, for at most two minutes. Some of
their commands install packages: use a virtual environment that is not needed afterwards. A command that sleeps has that
much more time. The outcomes are saved in
FILE, from which a later call continues. With --environments, the files of REALISED run in their environments too.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / "tools")]

from examples_outcomes import (  # noqa: E402
    CURATED,
    LACKS,
    PATIENCE,
    REALISED,
    RUN_PATIENCE,
    Outcome,
    Outcomes,
    in_realised,
)
from make_findings import commit_of, refused_by_sdk  # noqa: E402

from allranks.sdk import spec_files  # noqa: E402

CHECKOUT = Path(os.environ.get("ALLRANKS_EXAMPLES") or ".").resolve()
PAGE = Path(__file__).resolve().parents[1] / "docs/conformance.md"
SUBMITS = re.compile(r"jobs\s*\.\s*(begin_)?create_or_update")
"""What a notebook contains that submits a job."""

IN_ENVIRONMENTS = """## In the environments that they name

Each file of {folders}, unchanged, was also run with
`--environment venv`: a step gets a virtual environment with the Python and the packages of its definition. The
definition of a curated environment is in no file of the examples, so `allranks.yaml` names a conda file for
{curated}, with what Azure/azureml-assets declares for them and the examples import,
but instead of azureml-mlflow, which logs to servers only, the mlflow of allranks, whose store it logs to. A step whose
environment has no definition here runs with the Python of allranks, and a warning says so.

"""
HEAD = """# The examples of Azure ML

Made by `ALLRANKS_EXAMPLES=DIR python tools/make_conformance.py --run` from a checkout of Azure/azureml-examples, commit
`{commit}`, on a machine that reaches PyPI and no other site.
{missing}None of its files is part of this project.

A file that checks has no error. Of what only this machine lacks, the first thing is counted: a name that
`allranks check --names` resolves, a package, or a node that does not run here, for which `--stand-in` gives outputs. Of
a notebook with several jobs, as `allranks check FILE` checks it, each is checked. Components of a registry are those
whose definition only the registry has.

| | all | check | without {excluded} | of these, check | |
|---|---:|---:|---:|---:|---:|
{shares}

"""
TAIL = """
## Pipelines of azure-ai-ml's own tests

Azure/azure-sdk-for-python has pipelines that are written in Python and in YAML, in
`sdk/ml/azure-ai-ml/tests/test_configs/dsl_pipeline`. Both must be the same plan:

    ALLRANKS_SDK_TESTS=DIR pytest tests/plan/reader/test_sdk_pipelines.py

Seen with the Python files of azure-ai-ml 1.35.2: 39 pairs in 26 folders are equal. Compared is everything but names,
places in files, the order of steps, and what a function declares of its inputs beyond their values.

- equal: `basic_component`, `basic_pipeline`, `component_with_input_output`, `data_binding_expression` (12 pairs),
  `datastore_datapath_uri_file`, `datastore_datapath_uri_folder`, `e2e_inline_components`, `e2e_local_components`,
  `env_registered`, `local_data_input`, `mpi_hello_world`, `nyc_taxi_data_regression`,
  `parallel_component_with_file_input`, `parallel_component_with_tabular_input`, `pipline_with_data`,
  `pytorch_hello_world`, `spark_job_in_pipeline` (2), `tf_hello_world`, `tf_mnist`, `web_url_input`,
  `data_transfer_job_in_pipeline` and its `copy_data` (2), `export_database`, `import_database`, `import_file_system`
  and `import_stored_database`. In 3 of these pairs the components themselves are not compared: they name other files.
- refused in both, as by azure-ai-ml: `export_file_system`
- equal but for the type of one input, which is declared in Python and guessed in YAML by azure-ai-ml:
  `automl_job_in_pipeline`
- two steps log at DEBUG in Python, and at INFO in YAML: `parallel_component`
- other steps or outputs in Python than in YAML: `basic_component_with_component_in_folder`, `command_job_in_pipeline`,
  `pipeline_with_pipeline_component`
- need registered data or components: `dataset_input`, `e2e_registered_components`, `kmeans_sample`
- their YAML was not at hand: `env_conda_file`, `env_public_docker_image`

The component files of `basic_component`, `datastore_datapath_uri_folder`, `parallel_component_with_file_input` and
`data_transfer_job_in_pipeline` were not at hand either; those of a neighbouring folder stand in for them.
"""
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""The beginning of a file in place of one that Git LFS stores."""
EXCLUDED = {
    "AutoML": r"import automl\b|ai\.ml\.automl|type: automl",
    "a flow": r"flow\.dag\.yaml|promptflow",
    "fine-tuning": r"ai\.ml\.(finetuning|model_customization)|type: finetuning|fine_tuning\.jobs",
    "components of a registry": r"registries/[\w.-]+/components|\w*registry\w*\.components\.get",
}
"""What runs on Azure ML only, by what the text of a file contains."""

WHY = {
    r"NameError: name '(\w+)'": "no cell defines {0}",
    r"^value-outside-enum": "gives a value that the component's enum does not have, which azure-ai-ml does not compare",
    r"KeyError: '(AZUREML_\w+)'": "needs the variable {0}, which Azure ML's machines have",
    r"KeyError": "looks up a key of what only a workspace or a registry has",
    r"it is not Python": "a cell is not Python",
    r"URLError|ConnectionError|Max retries|service not known|exit code": "makes its job from what it downloads",
    r"ImportError: cannot import": "needs another version of a package",
    r"there is no module (\S+)": "needs the package that provides {0}",
    r"registered component|one of uri_file": "reads a component's definition, which only the registry has",
    r"there is no file": "runs a notebook that the repository does not have at this path",
    r"FileNotFoundError": "reads a file that neither the repository nor a cell makes",
    r"does not exist": "the repository does not have it",
    r"is a file$": "names a file as a folder, which azure-ai-ml refuses when it submits the job",
    r"has no value|< ?your": "is a template: a value must be written first",
    r"^refused": "gives a key a value that azure-ai-ml refuses",
    r"^time": f"takes longer than {PATIENCE:.0f} s to execute",
}
"""Why a file does not check, by what its first error contains."""

ENDS = {
    "Completed": "complete",
    "package": "need a package that this machine lacks, which a check does not find",
    "version": "need an older version of a package",
    "program": "need a program or a library of the system that this machine lacks",
    "file": "need a file that neither the repository nor this machine has",
    "network": "download something that this machine does not reach",
    "time": f"take longer than {RUN_PATIENCE:.0f} s",
}
"""What is said of the files that ran, by how their runs ended. Others are listed by themselves."""
ENDED = {
    **dict.fromkeys(ENDS, "failed"),
    "Completed": "Completed",
    "network": "needs a download",
    "time": "took too long",
}
"""What is said in a row of how a run ended, by the keys of ENDS."""
WHERE_ELSE = {
    "": "not run",
    "missing-package": "lacks a package",
    "missing-program": "lacks a program",
    "unresolved-name": "needs a workspace or a download",
    "not-run-here": "needs an Azure service",
}
"""Why a file of REALISED is not run, by the code of its check."""


def table(names: Sequence[str], outcomes: Outcomes, root: Path) -> str:
    """Return the outcomes of files by their reason, and the reason of each that does not check or complete."""
    by_rule: dict[str, list[str]] = defaultdict(list)
    for name in names:
        outcome = outcomes.checks[name]
        by_rule["error" if outcome.is_error else outcome.rule].append(name)
    lines = _counts(by_rule, LACKS, "do not check, as listed below")
    lines += [
        "",
        "| does not check | uses | since it | first error | azure-ai-ml refuses it |",
        "|---|---|---|---|---|",
    ]
    for name in by_rule["error"]:
        refused = refused_by_sdk(root / name) if name.endswith((".yml", ".yaml")) else ""
        outcome = outcomes.checks[name]
        reason = why(outcome, root / name, missing_files(CHECKOUT))
        used = ", ".join(excluded(root / name))
        lines.append(f"| {name} | {used} | {reason} | {_said(outcome.found, root)} | {refused} |")
    ran: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if name in outcomes.ends:
            ran[outcomes.ends[name][0]].append(name)
    if ran:
        lines += ["", f"Of those for which this machine lacks nothing, {sum(map(len, ran.values()))} were run:", ""]
        lines += _counts(ran, ENDS, "fail as listed below")
        lines += ["", "| does not complete | what its run says |", "|---|---|"]
        failed = sorted((name, kind) for kind, files in ran.items() if kind != "Completed" for name in files)
        for name, kind in failed:
            lacking = [file for file in missing_files(CHECKOUT) if Path(file).is_relative_to(Path(name).parent)]
            note = f"; this checkout lacks {lacking[0]}" if lacking and kind == "failed" else ""
            lines.append(f"| {name} | {_said(outcomes.ends[name][1], root) or ENDS[kind]}{note} |")
    return "\n".join(lines) + "\n"


def table_of_environments(outcomes: Outcomes, root: Path) -> str:
    """Return how each file of REALISED ran on the host and in its environments, or why it was not run."""
    rows = []
    for name in in_realised(outcomes.checks):
        outcome = outcomes.checks[name]
        needs = WHERE_ELSE[outcome.rule]
        host, _ = outcomes.ends.get(name, (needs, ""))
        kind, said = outcomes.realised.get(name, ("not run", f"{needs}: {outcome.found}"))
        rows.append(f"| {name} | {ENDED.get(host, host)} | {ENDED.get(kind, kind)} | {_said(said, root)} |")
    completed = sum(kind == "Completed" for kind, _ in outcomes.realised.values())
    lines = [f"Of {len(rows)} files {len(outcomes.realised)} ran, and {completed} completed.", ""]
    lines += ["| file | on the host | in its environments | the Python of its steps, or why not |", "|---|---|---|---|"]
    return "\n".join([*lines, *rows]) + "\n\n"


@cache
def missing_files(checkout: Path) -> tuple[str, ...]:
    """Return the files of the commit that a checkout lacks: those that are absent, and pointers of Git LFS."""
    command = ["git", "-C", str(checkout), "ls-tree", "-r", "-z", "--name-only", "HEAD"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return tuple(name for name in names if name and not _has_content(checkout / name))


def _has_content(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return os.path.lexists(path)
    with path.open("rb") as file:
        return file.read(len(LFS_POINTER)) != LFS_POINTER


def why(outcome: Outcome, path: Path, missing: Sequence[str]) -> str:
    """Return why a file does not check. missing: files that the checkout lacks"""
    if any(Path(name).name in outcome.found for name in missing):
        return "this checkout lacks the file"
    if (cell := re.search(r"cell (\d+), line (\d+)", outcome.where)) and path.suffix == ".ipynb":
        source = json.loads(path.read_text(encoding="utf-8"))["cells"][int(cell[1]) - 1]["source"]
        lines = "".join(source).splitlines()
        if lines[int(cell[2]) - 1].strip().startswith("raise "):
            return "raises this itself, until its reader edits it"
    if path.suffix == ".ipynb" and outcome.found.endswith("does not exist") and "rmtree(" in path.read_text("utf-8"):
        return "a later cell removes it, and a job is read after all cells"
    for sign, reason in WHY.items():
        if found := re.search(sign, f"{outcome.rule}: {outcome.found}"):
            return reason.format(*found.groups())
    return f"`{outcome.rule}`"


def excluded(path: Path) -> list[str]:
    """Return what runs on Azure ML only and that a file uses."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return [kind for kind, sign in EXCLUDED.items() if re.search(sign, text)]


def share(names: Sequence[str], outcomes: Outcomes, root: Path) -> str:
    """Return a row: how many files check, of all and of those without what runs on Azure ML only."""
    own = [name for name in names if not excluded(root / name)]
    of_all, of_own = (sum(not outcomes.checks[name].is_error for name in each) for each in (names, own))
    return f"{len(names)} | {of_all} | {len(own)} | {of_own} | {of_own / len(own):.0%} |"


def _counts(groups: Mapping[str, list[str]], reasons: Mapping[str, str], otherwise: str) -> list[str]:
    """Return the table of how many files are in each group."""
    lines = ["| files | |", "|---:|---|"]
    lines += [f"| {len(groups[key])} | {reason} |" for key, reason in reasons.items() if key in groups]
    others = sum(len(files) for key, files in groups.items() if key not in reasons)
    return [*lines, *([f"| {others} | {otherwise} |"] if others else [])]


def _said(found: str, root: Path) -> str:
    text = re.sub(rf"[^\s('\"]*/({root.name}|site-packages|code)/", "", found)
    return re.sub(r"\s+", " ", text.replace("|", "\\|"))[:120]


def page(root: Path, outcomes: Outcomes, run: bool, environments: bool) -> str:
    """Return the page."""
    own_jobs = spec_files.below(root).jobs
    notebooks = [
        path
        for path in sorted(root.rglob("*.ipynb"))
        if SUBMITS.search(text := path.read_text(encoding="utf-8", errors="replace")) and "pipeline" in text
    ]
    outcomes.check([*own_jobs, *notebooks], root)
    if run:
        outcomes.run(root)
    if environments:
        outcomes.run_in_environments(root)
    of_jobs, of_notebooks = ([path.relative_to(root).as_posix() for path in each] for each in (own_jobs, notebooks))
    groups = {"files": of_jobs, "notebooks": of_notebooks, "together": [*of_jobs, *of_notebooks]}
    shares = "\n".join(f"| {title} | {share(names, outcomes, root)}" for title, names in groups.items())
    missing = missing_files(CHECKOUT)
    note = f"The checkout lacks {len(missing)} large files, which are [listed](#files-that-the-checkout-lacks). "
    note = note if missing else ""
    text = HEAD.format(commit=commit_of(CHECKOUT), missing=note, excluded=" or ".join(EXCLUDED), shares=shares)
    text += f"## Pipelines and jobs in YAML\n\n{len(own_jobs)} files, each without its components.\n\n"
    text += f"{table(of_jobs, outcomes, root)}\n"
    if outcomes.realised:
        curated = " and ".join(CURATED)
        text += IN_ENVIRONMENTS.format(folders=" and ".join(f"`{each}`" for each in REALISED), curated=curated)
        text += table_of_environments(outcomes, root)
    text += f"## Notebooks with pipelines\n\n{len(notebooks)} notebooks that submit a job and name a pipeline.\n\n"
    listed = "".join(f"- {name}\n" for name in missing)
    lacks = f"\n## Files that the checkout lacks\n\n{listed}" if missing else ""
    return text + table(of_notebooks, outcomes, root) + lacks + TAIL


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="also run the files for which this machine lacks nothing")
    parser.add_argument("--environments", action="store_true", help="also run some of the files in their environments")
    parser.add_argument("--results", type=Path, help="the file in which outcomes are saved")
    arguments = parser.parse_args()
    if not os.environ.get("ALLRANKS_EXAMPLES"):
        sys.exit("ALLRANKS_EXAMPLES: is not set\n  expected: the folder of a checkout of Azure/azureml-examples")
    with tempfile.TemporaryDirectory() as temporary:  # notebooks write files beside themselves
        folder = Path(temporary, "azureml-examples")
        shutil.copytree(CHECKOUT, folder, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        text = page(folder, Outcomes.load(arguments.results), arguments.run, arguments.environments)
    PAGE.write_text(text, encoding="utf-8")
