"""The samples of Azure ML's documents, and the public scripts of SDK v1, migrate to what `allranks check` accepts.

They are not copied here. ALLRANKS_DOCUMENTS names a folder with the documents' texts, and ALLRANKS_V1_EXAMPLES the
folder `v1` of Azure/azureml-examples at the commit before 5a526689. docs/migrating.md has the outcome:

ALLRANKS_DOCUMENTS=DIR ALLRANKS_V1_EXAMPLES=DIR pytest -s tests/migrate/test_public_samples.py
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.api.migration_proof import prove
from allranks.errors import InputError
from allranks.migrate import migrate, sources
from allranks.runs.workspace import Workspace

DOCUMENTS, EXAMPLES = (os.environ.get(name, "") for name in ("ALLRANKS_DOCUMENTS", "ALLRANKS_V1_EXAMPLES"))
FENCED = re.compile(r"^```\w* *\n(.*?)^```", re.MULTILINE | re.DOTALL)
V2 = re.compile(
    r"^(?:from azure\.ai\.ml import command|# create the command).*?^job\.\w+ = .*?\)", re.MULTILINE | re.DOTALL
)
LAUNCHER = re.compile(r"^launcher:\n(?: +.*\n)+", re.MULTILINE)
PIPELINE = re.compile(r"^@dsl\.pipeline.*?return [^\n]+\n", re.MULTILINE | re.DOTALL)
BEFORE = """\
from types import SimpleNamespace
from azure.ai.ml import command, TensorFlowDistribution
returned_job = SimpleNamespace(outputs=SimpleNamespace(cifar=SimpleNamespace(path="src")))
"""
COMPONENT = """\
type: DistributedComponent
name: sample
version: 1
inputs: {data_dir: {type: AnyDirectory}, num_epochs: {type: Integer}}
outputs: {output_dir: {type: AnyDirectory}}
environment: {name: AzureML-Minimal}
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
        (tmp_path / name).write_text("import sys\nprint(sys.argv)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(not DOCUMENTS, reason="ALLRANKS_DOCUMENTS names no folder")
@pytest.mark.parametrize("number", range(len(v1_samples())))
def test_a_sample_of_v1_runs_as_before(number: int, folder: Path) -> None:
    (folder / "v1.py").write_text(v1_samples()[number])
    made = migrate(folder / "v1.py", folder / "v2")
    checked = jobs.check(str(made.pipeline))
    assert checked, str(checked)
    for compared in prove(made, Workspace.at(folder / ".allranks")):
        print(f"\n{number}: {compared.ranks} ranks, {compared.variables} variables")
        assert not compared.differences


def v2_samples() -> Iterator[str]:
    yield from (match[0] for text in texts() for match in V2.finditer(text))


@pytest.mark.skipif(not DOCUMENTS, reason="ALLRANKS_DOCUMENTS names no folder")
@pytest.mark.parametrize("number", range(len(list(v2_samples()))))
def test_a_sample_of_v2_is_accepted(number: int, folder: Path) -> None:
    (folder / "v2.py").write_text(BEFORE + list(v2_samples())[number])
    checked = jobs.check("v2.py")
    assert checked, str(checked)


@pytest.mark.skipif(not DOCUMENTS, reason="ALLRANKS_DOCUMENTS names no folder")
def test_the_sample_of_a_distributed_component_is_accepted(folder: Path) -> None:
    (text,) = (text for text in texts() if LAUNCHER.search(text))
    launcher, pipeline = LAUNCHER.search(text), PIPELINE.search(text)
    assert launcher
    assert pipeline
    missing = "  learning_rate: {type: Float}\n  momentum: {type: Float}\n"
    inputs = COMPONENT.replace("num_epochs: {type: Integer}}", "num_epochs: {type: Integer}, RATES}").replace(
        "RATES", ", ".join(line.strip() for line in missing.replace("Float}", "Float, default: 0.1}").splitlines())
    )
    (folder / "component.yaml").write_text(inputs + launcher[0])
    header = (
        "from azure.ai.ml import Input, dsl, load_component\ncluster_name = 'c'\nPipeline = object\n"
        "torch_train_func = load_component('component.yaml')\n"
    )
    call = "\njob = torch_pipeline(Input(path='src'), 2)\n"
    (folder / "v15.py").write_text(header + textwrap.dedent(pipeline[0]) + call)
    checked = jobs.check("v15.py")
    assert checked, str(checked)


@pytest.mark.skipif(not EXAMPLES, reason="ALLRANKS_V1_EXAMPLES names no folder")
def test_public_scripts_with_a_distribution(tmp_path: Path) -> None:
    outcome: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for source in sources(Path(EXAMPLES)):
        is_distributed = bool(re.search(r"(Mpi|PyTorch|Tensorflow)Configuration", source.read_text()))
        name = str(source.relative_to(EXAMPLES))
        try:
            made = migrate(source, (tmp_path / name).with_suffix(""))
            checked = jobs.check(str(made.pipeline))
            outcome[is_distributed][name] = "" if checked else checked.problems[0].found
        except InputError as error:
            outcome[is_distributed][name] = error.problems[0].found
    for is_distributed, found in outcome.items():
        accepted = [name for name, problem in found.items() if not problem]
        print(f"\n{'with' if is_distributed else 'without'} a distribution: {len(accepted)} of {len(found)} accepted")
        print(*(f"  {name}: {problem}" for name, problem in found.items() if problem), sep="\n")
    assert sum(not problem for problem in outcome[True].values()) >= 0.8 * len(outcome[True])
