"""Scripts of SDK v1 as components, environments and pipelines: what is written, and what is reported."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from allranks.api import jobs
from allranks.errors import InputError
from allranks.workspace import Workspace
from allranks_migrate import migrate, sources
from allranks_migrate.proof import prove

pytestmark = pytest.mark.slow  # each reads what was written with azure-ai-ml

SCRIPT = """\
from azureml.core import Dataset, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.runconfig import *
ws = Workspace.from_config()
config = ScriptRunConfig("src", "fit.py", environment="own", compute_target="cluster", {})
"""
STEPS = """\
from azureml.core import Dataset, Environment
from azureml.core.runconfig import RunConfiguration
from azureml.data import OutputFileDatasetConfig, DataReference
from azureml.data.datapath import DataPath, DataPathComputeBinding
from azureml.pipeline.core import Pipeline, PipelineData, PipelineParameter, StepSequence
from azureml.pipeline.steps import *
from azureml.pipeline.steps import {imports}
data = Dataset.get_by_name(ws, "words", version=2)
{text}
"""


@dataclass(frozen=True)
class Migrated:
    folder: Path
    findings: list[str]

    def component(self, name: str = "fit") -> Any:
        return yaml.safe_load((self.folder / "components" / name / "component.yaml").read_text())

    @property
    def pipeline(self) -> str:
        return (self.folder / "pipeline.py").read_text()

    def environment(self, name: str) -> Any:
        folder = self.folder / "environments" / name
        conda = folder / "conda.yaml"
        made = yaml.safe_load((folder / "environment.yaml").read_text())
        return {**made, "conda_file": yaml.safe_load(conda.read_text())} if conda.exists() else made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/fit.py").write_text("print()\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, text: str) -> Migrated:
    """Migrate a script, and check the pipeline."""
    file = folder / "v1.py"
    file.write_text(text)
    made = migrate(file, folder / "v2")
    found = jobs.check(str(made.file))
    assert found, str(found)
    return Migrated(folder / "v2", [f"{each.where}: {each.found}" for each in made.findings])


@pytest.mark.parametrize(
    ("configuration", "kind", "count", "instances"),
    [
        ("MpiConfiguration(process_count_per_node=4, node_count=2)", "mpi", 4, 2),
        ("MpiConfiguration(node_count=3)", "mpi", 1, 3),
        ("PyTorchConfiguration(process_count=8, node_count=2)", "pytorch", 4, 2),
        ("PyTorchConfiguration('Nccl', 4, 2)", "pytorch", 2, 2),
        ("PyTorchConfiguration(node_count=2)", "pytorch", 1, 2),
        ("PyTorchConfiguration()", "pytorch", 1, 1),
        ("TensorflowConfiguration(worker_count=2, parameter_server_count=0)", "tensorflow", 2, 2),
    ],
)
def test_counts(configuration: str, kind: str, count: int, instances: int, folder: Path) -> None:
    """v1's process_count is a total over all nodes; azure-ai-ml's is per instance."""
    made = run(folder, SCRIPT.format(f"distributed_job_config={configuration}"))
    component = made.component()
    key = "worker_count" if kind == "tensorflow" else "process_count_per_instance"
    assert component["distribution"] == {"type": kind, key: count}
    assert component["resources"]["instance_count"] == instances
    assert not made.findings


@pytest.mark.parametrize(
    ("settings", "finding"),
    [
        ("distributed_job_config=PyTorchConfiguration('Nccl', 5, 2)", "v1.py:4: process_count=5, node_count=2"),
        ("distributed_job_config=TensorflowConfiguration(2, 1)", "parameter_server_count=1: v1 starts"),
        ("distributed_job_config=PyTorchConfiguration(node_count=nodes)", "PyTorchConfiguration(node_count=nodes)"),
        ("distributed_job_config=chosen()", "distributed_job_config chosen()"),
        ("arguments=[Dataset.Tabular.from_delimited_files('https://host/a.csv').as_named_input('a')]", "Tabular"),
        ("arguments=[OutputFileDatasetConfig(name='out', source='here')]", "source of OutputFileDatasetConfig"),
    ],
)
def test_what_a_person_has_to_look_at(settings: str, finding: str, folder: Path) -> None:
    made = run(folder, SCRIPT.format(settings))
    assert any(finding in each for each in made.findings)
    assert finding.split(": ")[-1] in (made.folder / "migration.md").read_text()


def test_arguments_become_inputs(folder: Path) -> None:
    arguments = (
        '["--epochs", 3, "--rate", -0.5, "--note", "a b", "--flag", "--local_rank", "$LOCAL_RANK", "x y", '
        '"--data", Dataset.get_by_name(ws, "words").as_named_input("words").as_download(), '
        '"--more", Dataset.File.from_files((ws.datastores["store"], "a/b")).as_mount(), "--again", 4, "--again", 5]'
    )
    made = run(folder, SCRIPT.format(f"arguments={arguments}"))
    component = made.component()
    assert component["command"] == (
        "python fit.py --epochs ${{inputs.epochs}} --rate ${{inputs.rate}} --note '${{inputs.note}}' --flag "
        "--local_rank $LOCAL_RANK 'x y' --data ${{inputs.words}} --more ${{inputs.more}} --again ${{inputs.again}} "
        "--again ${{inputs.again_2}}"
    )
    defaults = {name: (port["type"], port.get("default")) for name, port in component["inputs"].items()}
    assert defaults == {
        "epochs": ("integer", 3), "rate": ("number", -0.5), "note": ("string", "a b"), "words": ("uri_folder", None),
        "more": ("uri_folder", None), "again": ("integer", 4), "again_2": ("integer", 5),
    }  # fmt: skip
    assert 'Input(type="uri_folder", path="azureml:words@latest", mode="download")' in made.pipeline
    assert 'path="azureml://datastores/store/paths/a/b"' in made.pipeline


def test_values_are_followed_through_the_script(folder: Path) -> None:
    text = """\
# Of the script.
import os
from dataclasses import dataclass
from pathlib import Path
from azureml.core import ScriptRunConfig as Run, Workspace
from azureml.core.runconfig import MpiConfiguration
import azureml.core as core

GPUS = {"big": 4, "small": 1}
HERE = str(Path(__file__).parent / "src")

@dataclass
class Arguments:
    target: str
    nodes: int = 2

def layout(arguments):  # counts
    return MpiConfiguration(process_count_per_node=GPUS[arguments.target] // 2, node_count=arguments.nodes)

def submit(arguments, script="fit.py"):
    # Of the job.
    command = f"python {script} --nodes {arguments.nodes} --out {os.path.join('outputs', 'x')} $RANK".split()
    job = Run(source_directory=HERE, command=command, distributed_job_config=layout(arguments))
    job.run_config.environment = None
    if arguments.nodes == 1:
        raise ValueError
    for name in ["first"]:
        job.environment = core.Environment.get(workspace=ws, name=name + "_one", version=3)
    return job

if __name__ == "__main__":
    arguments = Arguments(target="big")
    job = submit(arguments)
    # Of the end.
"""
    made = run(folder, text)
    component = made.component("job_")
    assert component["command"] == "python fit.py --nodes 2 --out outputs/x $RANK"
    assert component["distribution"] == {"type": "mpi", "process_count_per_instance": 2}
    assert component["environment"] == "azureml:first_one:3"
    comments = [line.strip() for line in made.pipeline.splitlines() if line.strip().startswith("#")]
    assert comments == ["# Of the script.", "# counts", "# Of the job.", "# Of the end."]
    assert not made.findings


def conda(*dependencies: Any) -> dict[str, Any]:
    return {"conda_file": {"channels": ["conda-forge"], "dependencies": [*dependencies]}}


ENVIRONMENTS = [
    ('Environment.from_conda_specification("e", "conda.yml")', {"conda_file": {"dependencies": ["numpy"]}}),
    ('Environment.from_pip_requirements("e", "pip.txt")', conda("python=3.10", "pip", {"pip": ["numpy", "pandas<3"]})),
    ('Environment.from_docker_image("e", "image:1")', {"image": "image:1"}),
    (
        'Environment.from_dockerfile("e", "src/Dockerfile")',
        {"build": {"path": "../../../src", "dockerfile_path": "Dockerfile"}},
    ),
    ('Environment("e"); env.docker.base_image = "image:2"; env.docker.enabled = True', {"image": "image:2"}),
    (
        'Environment("e"); env.docker.base_image = None; env.docker.base_dockerfile = "FROM a\\nRUN b\\n"',
        {"build": {"path": "."}},
    ),
    (
        """Environment("e")
c = CondaDependencies.create(conda_packages=["a"], pip_packages=["b"], python_version="3.9")
c.add_pip_package("d"); env.python.conda_dependencies = c""",
        conda("python=3.9", "a", "pip", {"pip": ["b", "d"]}),
    ),
    ('Environment("e"); env.python.conda_dependencies.add_conda_package("a")', conda("python=3.10", "a")),
]


@pytest.mark.parametrize(("text", "expected"), ENVIRONMENTS)
def test_environments(text: str, expected: dict[str, Any], folder: Path) -> None:
    (folder / "conda.yml").write_text("dependencies: [numpy]\n")
    (folder / "pip.txt").write_text("# old\nnumpy\npandas<3\n")
    (folder / "src/Dockerfile").write_text("FROM ubuntu:24.04\n")
    imports = "from azureml.core.conda_dependencies import CondaDependencies\nfrom azureml.core import Environment\n"
    made = run(folder, f"{imports}env = {text}\n{SCRIPT}".format("").replace('environment="own"', "environment=env"))
    environment = made.environment("e")
    assert {key: environment[key] for key in expected} == expected
    assert made.component()["environment"] == "file:../../environments/e/environment.yaml"


def test_names_are_unique_and_safe(folder: Path) -> None:
    text = "from azureml.core import Environment\n" + "".join(
        f'ScriptRunConfig("src", "{script}.py", arguments=["--in", x], compute_target="c", '
        f'environment=Environment("../a b", image="i:{number}"))\n'
        for number, script in enumerate(["fit", "fit", "fit_2", "class", "pipeline", "2"])
    )
    (folder / "v1.py").write_text(text)
    made = migrate(folder / "v1.py", folder / "v2")
    assert [job.name for job in made.content.jobs] == ["fit", "fit_2", "fit_2_2", "class_", "pipeline_", "_2"]
    written = {
        str(path.relative_to(folder / "v2/environments")) for path in (folder / "v2/environments").rglob("*.yaml")
    }
    assert written == {f"-a-b{end}/environment.yaml" for end in ("", "_2", "_3", "_4", "_5", "_6")}
    compile(made.file.read_text(), "pipeline.py", "exec")
    assert [port.parameter for port in made.content.jobs[0].inputs.values()] == ["in_"]


def test_environment_variables_and_other_settings(folder: Path) -> None:
    settings = "docker_runtime_config=DockerConfiguration(True, shm_size='8g'), max_run_duration_seconds=60"
    text = f"from azureml.core.runconfig import DockerConfiguration\n{SCRIPT.format(settings)}"
    text = text.replace('environment="own"', 'environment=Environment("e", image="i:1")')
    made = run(
        folder, text + 'config.run_config.environment_variables = {"A": "1"}\nExperiment(ws, "old").submit(config)\n'
    )
    assert made.component()["resources"] == {"instance_count": 1, "shm_size": "8g"}
    for line in ('environment_variables = {"A": "1"}', "CommandJobLimits(timeout=60)", 'experiment_name="old"'):
        assert line in made.pipeline


def test_estimators(folder: Path) -> None:
    text = """\
from azureml.train.dnn import PyTorch, Mpi
estimator = PyTorch("src", entry_script="fit.py", script_params={"--epochs": 2, "--quick": ""}, compute_target="c",
    node_count=2, distributed_training=Mpi(process_count_per_node=3), framework_version="1.6", pip_packages=["numpy"])
"""
    made = run(folder, text)
    component = made.component()
    assert component["command"] == "python fit.py --epochs ${{inputs.epochs}} --quick"
    assert component["distribution"] == {"type": "mpi", "process_count_per_instance": 3}
    assert component["resources"] == {"instance_count": 2}
    conda = made.environment("v1_pytorch")["conda_file"]
    assert conda["dependencies"] == ["python=3.10", "pip", {"pip": ["torch==1.6", "numpy"]}]


def test_a_sweep(folder: Path) -> None:
    text = (
        SCRIPT.format('arguments=["--epochs", 1]')
        + """\
from azureml.train.hyperdrive import HyperDriveConfig, RandomParameterSampling, BanditPolicy, PrimaryMetricGoal
from azureml.train.hyperdrive import choice, uniform
drive = HyperDriveConfig(run_config=config, policy=BanditPolicy(evaluation_interval=2, slack_factor=0.1),
    hyperparameter_sampling=RandomParameterSampling({"--rate": uniform(0.1, 0.2), "--epochs": choice(range(1, 3))}),
    primary_metric_name="loss", primary_metric_goal=PrimaryMetricGoal.MINIMIZE, max_total_runs=4,
    max_concurrent_runs=2, max_duration_minutes=3)
"""
    )
    made = run(folder, text)
    assert made.component()["command"] == "python fit.py --epochs ${{inputs.epochs}} --rate ${{inputs.rate}}"
    for line in (
        "rate=Uniform(0.1, 0.2)", "epochs=Choice([1, 2])", 'goal="minimize", sampling_algorithm="random"',
        "set_limits(max_total_trials=4, max_concurrent_trials=2, timeout=180)",
        "BanditPolicy(evaluation_interval=2, slack_factor=0.1)",
    ):  # fmt: skip
        assert line in made.pipeline


def test_a_pipeline_of_steps(folder: Path) -> None:
    text = STEPS.format(imports="PythonScriptStep, MpiStep", text="""\
settings = RunConfiguration()
settings.environment = Environment.from_docker_image("e", "i:1")
words = PipelineData("words_out", datastore=store)
model = OutputFileDatasetConfig(name="model", destination=(ws.get_default_datastore(), "out/{run-id}"))
model = model.register_on_complete("m")
rate = PipelineParameter(name="rate", default_value=0.5)
last = PythonScriptStep("fit.py", name="Last one", source_directory="src",
    arguments=["--model", model.as_input("given")], runconfig=settings, compute_target="small")
first = PythonScriptStep(name="first", script_name="fit.py", source_directory="src",
    arguments=["--in", data.as_named_input("d"), "--out", words], outputs=[words],
    compute_target="cluster", runconfig=settings, allow_reuse=False)
second = MpiStep(name="second", script_name="fit.py", source_directory="src", node_count=2, process_count_per_node=2,
    arguments=["--words", words, "--model", model, "--rate", rate], inputs=[words], compute_target="cluster")
third = PythonScriptStep(name="third", script_name="fit.py", source_directory="src", compute_target="cluster",
    runconfig=settings)
third.run_after(first)
pipeline = Pipeline(workspace=ws, steps=[first, second, third, last])
""")  # fmt: skip
    made = run(folder, text)
    calls = [line.strip() for line in made.pipeline.splitlines() if "(HERE" not in line and " = " in line]
    for call in (
        'first = FIRST(d=Input(type="uri_folder", path="azureml:words:2"))',
        "second = SECOND(words=first.outputs.words_out, rate=rate)",
        "last_one = LAST_ONE(given=second.outputs.model)",
        'last_one.compute = "small"',
        "third = THIRD(after_first=first.outputs.done)",
    ):
        assert call in calls
    assert 'name="m"' in made.pipeline
    assert "def pipeline(rate=0.5):" in made.pipeline
    assert made.component("second")["distribution"] == {"type": "mpi", "process_count_per_instance": 2}
    assert made.component("first")["is_deterministic"] is False


OF_STEPS = {
    "the mode and place of a DataReference": (
        """one("a", arguments=["--in", DataReference(ws.datastores["lake"], "raw", "in/b", "download")])""",
        ['in_=Input(type="uri_folder", path="azureml://datastores/lake/paths/in/b", mode="download")'],
    ),
    "data and an environment of the workspace": (
        """settings.environment = ws.environments["own"]
one("a", arguments=["--in", ws.datasets["words"].as_mount()])""",
        ['in_=Input(type="uri_folder", path="azureml:words@latest")', "environment: azureml:own@latest"],
    ),
    "positions, a parameter with a path, and variables": (
        """path = PipelineParameter("path", default_value=DataPath(ws.datastores["lake"], "in/b"))
PythonScriptStep("fit.py", "a", ["--in", (path, DataPathComputeBinding())], ws.compute_targets["c"], settings,
    params={"RATE": 0.1}, source_directory="src")
MpiStep("b", "src", "fit.py", ["--in", data.as_mount("/in")], "c", 2, 3)
CommandStep("python fit.py", "d", "c", settings, source_directory="src")
ws.experiments["e"].submit(Pipeline(ws, []), continue_on_step_failure=True)""",
        ['a = A(in_=Input(type="uri_folder", path="azureml://datastores/lake/paths/in/b"))',
         'a.environment_variables = {"AML_PARAMETER_RATE": "0.1"}', "command: python fit.py --in ${{inputs.in_}}",
         "process_count_per_instance: 3", "name: d", "command: python fit.py\n",
         "path_on_compute /in: azure-ai-ml chooses the path", "continue_on_step_failure of submit"],
    ),
    "settings of a run_config, and a target that is no cluster": (
        """config = ScriptRunConfig("src", "fit.py", environment="own", compute_target="local")
config.run_config.node_count = 2
config.run_config.mpi.process_count_per_node = 3""",
        ["process_count_per_instance: 3", "instance_count: 2", "compute target local: a pipeline"],
    ),
    "a sequence of steps, of which two are side by side": (
        """a, b, c, d = one("a"), one("b"), one("c"), one("d")
Pipeline(ws, steps=StepSequence([[a, b], c, d]))""",
        ["c = C(after_a=a.outputs.done, after_b=b.outputs.done)", "d = D(after_c=c.outputs.done)"],
    ),
    "a sweep after a step, and a step that reads its metrics": (
        """words, metrics = PipelineData("words"), PipelineData("metrics")
a = one("a", arguments=["--out", words], outputs=[words])
config = ScriptRunConfig("src", "fit.py", environment="own", compute_target="c", max_run_duration_seconds=60)
config.run_config.environment_variables = {"MODE": "a b"}
drive = HyperDriveConfig(run_config=config,
    hyperparameter_sampling=GridParameterSampling({"--rate": choice(0.1, 0.2)}), primary_metric_name="loss")
HyperDriveStep("sweep", drive, ["--in", words, "--epochs", 3], inputs=[words], metrics_output=metrics)
one("last", arguments=["--m", metrics], inputs=[metrics])""",
        ["sweep = SWEEP(in_=a.outputs.words, rate=Choice([0.1, 0.2]))", 'sampling_algorithm="grid"',
         "python fit.py --in ${{inputs.in_}} --epochs ${{inputs.epochs}} --rate ${{inputs.rate}}",
         "export MODE='a b'; python fit.py", "trial_timeout=60",
         "last = LAST(m=sweep.outputs.metrics)", "a sweep of azure-ai-ml writes no file of metrics"],
    ),
    "a sweep whose policy is elsewhere": (
        """drive = HyperDriveConfig(run_config=ScriptRunConfig("src", "fit.py", environment="own", compute_target="c"),
    hyperparameter_sampling=GridParameterSampling({"--rate": choice(0.1)}), policy=stop(), primary_metric_name="loss")
HyperDriveStep("sweep", drive)""",
        ["policy of HyperDriveConfig: its value is not in this file"],
    ),
    "an estimator's step": (
        """EstimatorStep("a", estimator=Estimator("src", entry_script="fit.py", compute_target="c"), inputs=[data],
    estimator_entry_script_arguments=["--in", data], compute_target="other")""",
        ["command: python fit.py --in ${{inputs.in_}}", 'default_compute="other"'],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), OF_STEPS.values(), ids=OF_STEPS)
def test_what_steps_have(text: str, expected: list[str], folder: Path) -> None:
    """The names that ``import *`` brings are known too."""
    helper = """ws = Workspace.from_config()
settings = RunConfiguration()
settings.environment = Environment.from_docker_image("e", "i:1")
def one(name, arguments=(), inputs=(), outputs=()):
    return PythonScriptStep("fit.py", name=name, source_directory="src", arguments=arguments, inputs=inputs,
        outputs=outputs, compute_target=ws.compute_targets["c"], runconfig=settings)
"""
    made = run(folder, STEPS.format(imports="*\nfrom azureml.train.hyperdrive import *", text=helper + text))
    written = "\n".join(file.read_text() for file in sorted(made.folder.rglob("*.*")) if file.is_file())
    for each in expected:
        assert each in written


def test_data_in_a_datastore_that_is_elsewhere(folder: Path) -> None:
    (folder / "v1.py").write_text(SCRIPT.format('arguments=["--in", DataReference(chosen(), "raw", "in/b")]'))
    made = migrate(folder / "v1.py", folder / "v2")
    assert [each.found for each in made.findings] == ["data DataReference: its place is not in this file"]
    assert "workspaceblobstore" not in made.file.read_text()


def test_a_parallel_step(folder: Path) -> None:
    (folder / "src/score.py").write_text("def init(): pass\ndef run(batch): return batch\n")
    text = STEPS.format(imports="ParallelRunStep, ParallelRunConfig", text="""\
config = ParallelRunConfig(source_directory="src", entry_script="score.py", mini_batch_size="5", error_threshold=3,
    output_action="append_row", environment=Environment.from_docker_image("e", "i:1"), compute_target="cluster",
    node_count=2, process_count_per_node=2, run_invocation_timeout=600)
scores = OutputFileDatasetConfig(name="scores")
step = ParallelRunStep(name="score", parallel_run_config=config, inputs=[data.as_named_input("words")], output=scores,
    arguments=["--size", 3])
""")  # fmt: skip
    component = run(folder, text).component("score")
    expected = {
        "type": "parallel", "input_data": "${{inputs.words}}", "mini_batch_size": "5", "mini_batch_error_threshold": 3,
        "max_concurrency_per_instance": 2, "resources": {"instance_count": 2},
    }  # fmt: skip
    assert {key: component[key] for key in expected} == expected
    assert component["task"]["append_row_to"] == "${{outputs.scores}}/parallel_run_step.txt"


def test_a_notebook(folder: Path) -> None:
    cells = [
        ["%pip install azureml-core\n", "import os\n"],
        ["%%bash\n", "ls\n"],
        SCRIPT.format("x=y").splitlines(keepends=True),
    ]
    tree = {"cells": [{"cell_type": "code", "source": source} for source in cells], "metadata": {}}
    (folder / "v1.ipynb").write_text(json.dumps(tree))
    made = migrate(folder / "v1.ipynb", folder / "v2")
    assert [job.name for job in made.content.jobs] == ["fit"]


def test_a_script_that_uses_v1_in_its_job(folder: Path) -> None:
    (folder / "src/fit.py").write_text("import os\nfrom azureml.core import Run\nimport azureml.mlflow\n")
    made = run(folder, SCRIPT.format(""))
    assert [each.partition(": ")[0] for each in made.findings] == ["src/fit.py:2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\n", "it describes no job of SDK v1"),
        ("x = (\n", r"v1.py:\d: it is not Python"),
        ("from azureml.train.automl import AutoMLConfig\nc = AutoMLConfig(task='x')\n", "but AutoMLConfig"),
        ("from azureml.pipeline.steps import DatabricksStep\nDatabricksStep(name='x')\n", "but DatabricksStep"),
        (b"\xff\xfe", "it is not UTF-8"),
    ],
)
def test_a_file_without_a_job(text: str | bytes, message: str, folder: Path) -> None:
    (folder / "v1.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=f"(?s){message}"):
        migrate(folder / "v1.py", folder / "v2")
    assert not (folder / "v2").exists()


def test_what_exists_is_never_overwritten(folder: Path) -> None:
    run(folder, SCRIPT.format(""))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="it exists"):
        migrate(folder / "v1.py", folder / "v2")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_files_of_a_folder(folder: Path) -> None:
    (folder / "v1.py").write_text(SCRIPT.format(""))
    assert sources(folder) == (folder / "v1.py",)
    for path, message in (
        (folder / "src", "no file in it uses"),
        (folder / "x.txt", "no such file"),
        (folder / "a.csv", "csv"),
    ):
        (folder / "a.csv").write_text("")
        with pytest.raises(InputError, match=message):
            sources(path)


@pytest.mark.slow
def test_a_proof_names_each_difference(folder: Path) -> None:
    (folder / "src/fit.py").write_text(
        "import os, sys\nopen('out.txt', 'w').close()\nsys.exit(int(os.environ['RANK']))\n"
    )
    text = SCRIPT.format('arguments=["--epochs", 3], distributed_job_config=PyTorchConfiguration("Nccl", 2, 1)')
    (folder / "v1.py").write_text(text)
    made = migrate(folder / "v1.py", folder / "v2")
    (same,) = prove(made, Workspace.at(folder / ".allranks"))
    assert (same.ranks, same.differences) == (2, ())
    component = folder / "v2/components/fit/component.yaml"
    changed = component.read_text().replace("process_count_per_instance: 2", "process_count_per_instance: 1")
    component.write_text(changed.replace("default: 3", "default: 4"))
    (other,) = prove(made, Workspace.at(folder / ".allranks"))
    assert other.ranks == 1
    for text in (
        "v1 starts 2 processes, azure-ai-ml 1",
        "rank 0: WORLD_SIZE is '2' with v1, '1'",
        "rank 1: exit code is 1",
    ):
        assert any(each.startswith(text) for each in other.differences)
    assert any("'3'] with v1" in each for each in other.differences)
