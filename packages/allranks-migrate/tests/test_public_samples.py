"""The samples of Azure ML's documents run, as they are or migrated, and the public scripts of SDK v1 migrate.

They are not copied here. ALLRANKS_DOCUMENTS names a folder with the documents' texts, and ALLRANKS_V1_EXAMPLES the
folder `v1` of Azure/azureml-examples at the commit before 5a526689. docs/how-to/migrate-from-v1.md has the outcome:

ALLRANKS_DOCUMENTS=DIR ALLRANKS_V1_EXAMPLES=DIR pytest -s packages/allranks-migrate/tests/test_public_samples.py
"""

import os
import re
from pathlib import Path

import pytest

import allranks
from allranks.api import jobs
from allranks.errors import InputError
from allranks.workspace import Workspace
from allranks_migrate import migrate, sources
from allranks_migrate.proof import prove

DOCUMENTS, EXAMPLES = (os.environ.get(name, "") for name in ("ALLRANKS_DOCUMENTS", "ALLRANKS_V1_EXAMPLES"))
FENCED = re.compile(r"^```\w* *\n(.*?)^```", re.MULTILINE | re.DOTALL)
V2 = re.compile(
    r"^(?:from azure\.ai\.ml import command|# create the command).*?^job\.\w+ = .*?\)", re.MULTILINE | re.DOTALL
)
BEFORE_COMMAND = """\
from types import SimpleNamespace
from azure.ai.ml import command, TensorFlowDistribution
returned_job = SimpleNamespace(outputs=SimpleNamespace(cifar=SimpleNamespace(path="data")))
"""
SCRIPT = """\
import os, sys
from pathlib import Path
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert "--data-dir" not in given or Path(given["--data-dir"], "images.txt").is_file()
name = os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["AZUREML_CR_NODE_RANK"]
for folder in (given[flag] for flag in ("--model-dir", "--output-dir") if flag in given):
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, name).write_text(str(sys.argv))
"""


def texts() -> list[str]:
    return [path.read_text() for path in sorted(Path(DOCUMENTS).glob("*.txt"))] if DOCUMENTS else []


def v1_samples() -> list[str]:
    return [block for text in texts() for block in FENCED.findall(text) if "ScriptRunConfig(" in block]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    scripts = (
        "src/train.py",
        "src/main.py",
        "src/text-classification/run_glue.py",
        "train.py",
        "pytorch_horovod_mnist.py",
    )
    for name in scripts:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SCRIPT)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/images.txt").write_text("1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not DOCUMENTS, reason="ALLRANKS_DOCUMENTS names no folder")
@pytest.mark.parametrize("number", range(len(v1_samples())))
def test_a_sample_of_v1_runs_as_before(number: int, folder: Path) -> None:
    (folder / "v1.py").write_text(v1_samples()[number])
    made = migrate(folder / "v1.py", folder / "v2")
    checked = jobs.check(str(made.file))
    assert checked, str(checked)
    for compared in prove(made, Workspace.at(folder / ".allranks")):
        print(f"\n{number}: {compared.ranks} ranks, {compared.variables} variables")
        assert not compared.differences


def newer_samples() -> list[str]:
    return [BEFORE_COMMAND + match[0] for text in texts() for match in V2.finditer(text)]


@pytest.mark.slow
@pytest.mark.skipif(not DOCUMENTS, reason="ALLRANKS_DOCUMENTS names no folder")
@pytest.mark.parametrize("number", range(len(newer_samples())))
def test_a_newer_sample_runs(number: int, folder: Path) -> None:
    (folder / "sample.py").write_text(newer_samples()[number])
    (step,) = allranks.run("sample.py", folder=folder / ".allranks").wait().record.steps
    print(f"\n{number}: {len(step.ranks)} ranks")
    assert [rank.exit_code for rank in step.ranks] == [0] * step.instance_count * step.process_count_per_instance
    assert step.instance_count == 2


@pytest.mark.skipif(not EXAMPLES, reason="ALLRANKS_V1_EXAMPLES names no folder")
def test_public_scripts_with_a_distribution(tmp_path: Path) -> None:
    outcome: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for source in sources(Path(EXAMPLES)):
        is_distributed = bool(re.search(r"(Mpi|PyTorch|Tensorflow)Configuration", source.read_text()))
        name = str(source.relative_to(EXAMPLES))
        try:
            made = migrate(source, (tmp_path / name).with_suffix(""))
            checked = jobs.check(str(made.file))
            outcome[is_distributed][name] = "" if checked else checked.problems[0].found
        except InputError as error:
            outcome[is_distributed][name] = error.problems[0].found
    for is_distributed, found in outcome.items():
        accepted = [name for name, problem in found.items() if not problem]
        print(f"\n{'with' if is_distributed else 'without'} a distribution: {len(accepted)} of {len(found)} accepted")
        print(*(f"  {name}: {problem}" for name, problem in found.items() if problem), sep="\n")
    assert sum(not problem for problem in outcome[True].values()) >= 0.8 * len(outcome[True])
