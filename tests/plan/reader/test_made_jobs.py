"""Jobs that a Python file makes while it is read, and the MLClient that it asks meanwhile."""

import sys
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError, Level, Location
from allranks.plan.ports import Input, Literal
from allranks.plan.ports import Path as DataPath
from allranks.plan.reader import opened
from pipeline_files import read, write, write_dsl

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_network")]

TWO = """
@dsl.pipeline()
def digits(data, lr=0.1, epochs: int = None):
    first = train(data=data, lr=lr, epochs=epochs)
    return {"model": first.outputs.model}

"""
"""From line 5 on: the step stands in line 7."""


def value(plan: Any, name: str) -> Any:
    return next(port.value for port in plan.graph.inputs if port.name == name)


def test_a_job_runs_with_its_arguments_and_its_function_with_the_defaults(here: Path) -> None:
    file = write_dsl(here, TWO + 'job = digits(data=Input(path="data"), lr=0.3)\njob.display_name = "Three"\n')
    plan = read(file)
    assert (plan.display_name, value(plan, "lr")) == ("Three", Literal(0.3))
    assert value(plan, "data") == DataPath(str(here / "data"))
    assert plan.graph.nodes[0].location == Location("pipeline.py", 7)
    assert value(read(f"{file}:job"), "lr") == Literal(0.3)
    assert value(read(f"{file}:digits", {"data": "data"}), "lr") == Literal(0.1)


def test_settings_take_the_place_of_a_jobs_arguments(here: Path) -> None:
    file = write_dsl(here, TWO + 'job = digits(data=Input(path="data"), lr=1)\n')
    plan = read(file, {"lr": "1e-3", "epochs": "7", "data": "src"})
    assert (value(plan, "lr"), value(plan, "epochs")) == (Literal(0.001), Literal(7))
    assert value(plan, "data") == DataPath(str(here / "src"))
    with pytest.raises(InputError, match="the pipeline has no input rate"):
        read(file, {"rate": "1"})
    with pytest.raises(InputError, match="expected: a whole number"):
        read(file, {"epochs": "many"})


def test_several_jobs_are_told_apart_by_their_variables(here: Path) -> None:
    file = write_dsl(here, TWO + "".join(f'{name} = digits(Input(path="data"), lr={lr})\n' for name, lr in LRS.items()))
    for name, lr in LRS.items():
        assert value(read(f"{file}:{name}"), "lr") == Literal(lr)
    with pytest.raises(InputError, match=r"2 jobs: slow, fast(.|\n)*pipeline.py:slow or pipeline.py:fast"):
        read(file)
    with pytest.raises(InputError, match=r"there is no fst(.|\n)*digits, slow, fast(.|\n)*did you mean fast"):
        read("pipeline.py:fst")


LRS = {"slow": 0.1, "fast": 0.9}


def test_the_job_that_is_submitted_is_the_one(here: Path) -> None:
    file = write_dsl(
        here,
        TWO
        + """
from azure.ai.ml import MLClient
from azure.identity import DefaultAzureCredential, InteractiveBrowserCredential

try:
    credential = DefaultAzureCredential()
    credential.get_token("https://management.azure.com/.default")
except Exception:
    credential = InteractiveBrowserCredential()
ml_client = MLClient(credential, "subscription", "group", "workspace")
print(ml_client.compute.get("cpu-cluster"), ml_client.workspaces.get("workspace").location)
other = digits(Input(path="data"), lr=0.2)
job = digits(Input(path="data"), lr=0.4)
job = ml_client.jobs.create_or_update(job, experiment_name="digits")
while job.status not in ("Completed", "Failed"):
    job = ml_client.jobs.get(job.name)
ml_client.jobs.stream(job.name)
ml_client.jobs.download(name=job.name, output_name="model")
print("the run " + job.name)
raise RuntimeError("there is no run whose results could be read")
""",
    )
    plan = read(file)
    assert (plan.experiment, value(plan, "lr")) == ("digits", Literal(0.4))
    # The name that the script saw is not the job's: Azure ML would take a second one of it for the same job.
    with opened(str(file), {}) as job:
        assert job.job.name is None
    assert value(read(f"{file}:other"), "lr") == Literal(0.2)


def test_a_file_that_makes_its_job_only_as_a_program(here: Path) -> None:
    file = write_dsl(here, "if __name__ == '__main__':\n    print('submitted')\n")
    with pytest.raises(InputError, match=r"it has no pipeline(.|\n)*if __name__ == \"__main__\" is not run"):
        read(file)


MAKING = """
@dsl.pipeline()
def inner(data, lr: float = 0.1):
    train(data=data, lr=lr)

def make(lr=0.2):
    return inner(data=Input(path="data"), lr=lr)

def submitting():
    from azure.ai.ml import MLClient
    MLClient(None).jobs.create_or_update(make(0.3))

def needing(lr):
    return make(lr)

def other():
    return 1

"""


@pytest.mark.parametrize(("function", "lr"), [("make", 0.2), ("submitting", 0.3)])
def test_the_job_that_a_function_makes(here: Path, function: str, lr: float) -> None:
    file = write_dsl(here, MAKING)
    assert value(read(f"{file}:{function}"), "lr") == Literal(lr)
    assert value(read(f"{file}:{function}", {"lr": "0.5"}), "lr") == Literal(0.5)


@pytest.mark.parametrize(
    ("name", "found"), [("needing", "needing needs lr"), ("other", "other is not a pipeline"), ("no", "there is no no")]
)
def test_a_function_that_makes_no_job(here: Path, name: str, found: str) -> None:
    file = write_dsl(here, MAKING)
    with pytest.raises(InputError, match=found):
        read(f"{file}:{name}")


def test_a_file_whose_functions_make_a_pipeline_names_them(here: Path) -> None:
    file = write_dsl(
        here,
        """
        def build():
            @dsl.pipeline()
            def digits(data):
                train(data=data)
            return digits(data=Input(path="data"))

        def main():
            job = build()

        def unrelated():
            pass

        if __name__ == "__main__":
            main()
        """,
    )
    with pytest.raises(InputError, match=r"name a function that makes one: pipeline.py:build or pipeline.py:main"):
        read(file)


def test_the_real_client_is_back_afterwards(here: Path) -> None:
    import azure.ai.ml

    before = azure.ai.ml.MLClient, sys.modules.get("azure.identity")
    file = write_dsl(here, "from azure.ai.ml import MLClient\nclient = MLClient.from_config()\n" + "x = 1 / 0\n")
    with pytest.raises(InputError, match="ZeroDivisionError"):
        read(file)
    assert (azure.ai.ml.MLClient, sys.modules.get("azure.identity")) == before


def test_nested_pipelines_know_their_lines(here: Path) -> None:
    file = write_dsl(
        here,
        """
        @dsl.pipeline()
        def inner(data):
            fit = train(data=data)
            return {"model": fit.outputs.model}

        @dsl.pipeline()
        def middle(data):
            left = inner(data=data)
            right = inner(data=data)

        @dsl.pipeline()
        def outer():
            both = middle(data=Input(path="data"))

        job = outer()
        """,
    )
    for target in (file, f"{file}:outer"):
        with opened(str(target), {}) as job:
            lines = {
                path: job.location(path) for path in ("both", "both.right", "both.right.fit", "both.nowhere", "left")
            }
        assert list(lines.values()) == [
            Location("pipeline.py", 17),
            Location("pipeline.py", 13),
            Location("pipeline.py", 7),
            None,
            None,
        ]


COMMAND = """\
from azure.ai.ml import Input, MLClient, command

base = command(
    command="echo ${{inputs.lr}} ${{inputs.data}}",
    environment="azureml:cpu:1",
    inputs={"lr": 1, "data": Input(type="uri_folder", path="data")},
)
"""


@pytest.mark.parametrize(
    ("more", "lr"),
    [
        ("", 1),
        ("job = base(lr=2)\n", 2),
        ("MLClient.from_config().create_or_update(base)\n", 1),
        ("MLClient.from_config().jobs.create_or_update(job=base(lr=3))\n", 3),
    ],
)
def test_a_command_is_a_job_where_there_is_no_pipeline(here: Path, more: str, lr: int) -> None:
    (here / "job.py").write_text(COMMAND + more)
    assert value(read("job.py"), "lr") == Literal(lr)
    plan = read("job.py", {"lr": "0.5", "data": "src"})
    assert plan.graph.inputs == (
        Input("lr", "number", Literal(0.5)),
        Input("data", "uri_folder", DataPath(str(here / "src")), "ro_mount"),
    )


def test_a_command_that_a_pipeline_uses_is_no_job(here: Path) -> None:
    more = '\n@dsl.pipeline()\ndef digits():\n    one = base(data=Input(path="data"))\n'
    (here / "job.py").write_text(COMMAND.replace("Input,", "Input, dsl,") + more)
    assert [step.name for step in read("job.py").graph.nodes] == ["one"]


OTHER_JOBS = {
    "automl": """
        from azure.ai.ml import automl
        job = automl.classification(training_data=Input(type="mltable", path="data"), target_column_name="y")
        """,
    "finetuning": """
        from azure.ai.ml.finetuning import create_finetuning_job
        job = create_finetuning_job(
            task="chat_completion", training_data="a.jsonl", validation_data="b.jsonl",
            model="azureml://registries/azureml/models/x/versions/1", output_model_name_prefix="x",
        )
        """,
}


@pytest.mark.parametrize("kind", OTHER_JOBS)
def test_jobs_of_other_kinds_are_refused_with_a_message(here: Path, kind: str) -> None:
    names = {"automl": "an AutoML job", "sweep": "a sweep", "finetuning": "a fine-tuning job"}
    with pytest.raises(InputError, match=rf"^job \(.*pipeline.py\): {names[kind]}.* does not run on this machine"):
        read(write_dsl(here, OTHER_JOBS[kind]))


def test_registered_components_are_placeholders_where_this_machine_has_none(here: Path) -> None:
    file = write_dsl(
        here,
        """
        from azure.ai.ml import MLClient

        workspace, registry = MLClient.from_config(), MLClient(None, registry_name="azureml")
        prepare = workspace.components.get("prepare", version="2")
        tune = registry.components.get(name="tune", label="latest")
        model = registry.models.get("bert", label="latest")

        @dsl.pipeline()
        def digits():
            ready = prepare(data=Input(path="data"))
            tuned = tune(data=ready.outputs.anything, model=Input(type="custom_model", path=model.id))
            last = train(data=tuned.outputs.model)

        job = digits()
        """,
    )
    with pytest.raises(InputError) as refused:
        read(file)
    named = {problem.where: problem.fix for problem in refused.value.problems}
    assert "prepare:2: path/to/component.yaml" in named.pop("step ready, key component (pipeline.py:14)")
    assert "components/tune/labels/latest" in named.pop("step tuned, key component (pipeline.py:15)")
    assert "models/bert/labels/latest" in named.pop("step tuned, key inputs.model (pipeline.py:15)")
    assert not named


def test_what_the_file_registers_is_found_again(here: Path) -> None:
    write(here, "cpu.yml", "name: cpu\nimage: ubuntu\n")
    file = write_dsl(
        here,
        """
        import copy

        from azure.ai.ml import MLClient, load_environment
        from azure.ai.ml.entities import AmlCompute, Data

        assert copy.deepcopy(MLClient.from_config().models.get("bert", label="latest")).name == "bert"

        ml_client = MLClient.from_config()
        try:
            train = ml_client.components.get(name="train", version="1.2.0")
        except Exception:
            train = ml_client.components.create_or_update(train)
        try:
            data = ml_client.data.get("numbers", version="1")
        except Exception:
            data = ml_client.data.create_or_update(Data(name="numbers", version="1", path="data", type="uri_folder"))
        try:
            compute = ml_client.compute.get("gpus")
        except Exception:
            compute = ml_client.begin_create_or_update(AmlCompute(name="gpus", size="STANDARD_ND96asr_v4")).result()
        gpus = {size.name.lower(): size.gpus for size in ml_client.compute.list_sizes()}[compute.size.lower()]
        assert isinstance(data.path + "/images", str)
        environment = ml_client.environments.create_or_update(load_environment("cpu.yml"))
        assert ml_client.environments.get("cpu", version=environment.version) is environment

        @dsl.pipeline()
        def digits():
            path = copy.deepcopy(ml_client.data.get("numbers", "1")).path
            one = train(data=Input(path=path), epochs=gpus)

        assert ml_client.components.create_or_update(digits).id.endswith("/components/digits/versions/1")

        job = digits()
        """,
    )
    (step,) = read(file).graph.nodes
    ports = {port.name: port.value for port in step.inputs}
    assert (step.component, ports["data"], ports["epochs"]) == ("train", DataPath(str(here / "data")), Literal(8))


@pytest.mark.parametrize("form", ["{}.id", "'azureml:' + {}.name + '@latest'"])
def test_what_the_file_creates_is_found_by_its_id(here: Path, form: str) -> None:
    file = write_dsl(
        here,
        f"""
        from azure.ai.ml import MLClient, command
        from azure.ai.ml.entities import Data, Environment, Model

        ml_client, registry = MLClient.from_config(), MLClient(None, registry_name="shared")
        data = ml_client.data.create_or_update(Data(name="numbers", version="3", path="data", type="uri_folder"))
        model = ml_client.models.create_or_update(Model(name="net", version="7", path="data"))
        image = registry.environments.create_or_update(Environment(name="cpu", version="2", image="ubuntu"))
        ml_client.components.create_or_update(train)
        step = command(
            command="cat ${{{{inputs.data}}}} ${{{{inputs.model}}}}",
            inputs={{"data": Input(type="uri_folder"), "model": Input(type="custom_model")}},
            environment={form.format("image", "image")},
        )

        @dsl.pipeline()
        def digits():
            step(
                data=Input(type="uri_folder", path={form.format("data", "data")}),
                model=Input(type="custom_model", path={form.format("model", "model")}),
            )

        job = digits()
        """,
    )
    (step,) = read(file).graph.nodes
    assert {port.value for port in step.inputs} == {DataPath(str(here / "data"))}
    assert (step.environment.name, step.environment.image) == ("cpu", "ubuntu")


def test_a_spec_on_this_machine_takes_the_place_of_a_registered_component(here: Path) -> None:
    from allranks.plan.reader import pipeline
    from allranks.sdk import python_file, python_jobs, session
    from allranks.sdk.compilation import job_request

    file = write_dsl(
        here,
        """
        from azure.ai.ml import MLClient

        registry = MLClient(None, registry_name="azureml")
        try:
            tune = registry.components.get("tune", label="latest")
        except Exception as error:
            raise ValueError("no such component") from error

        @dsl.pipeline()
        def digits():
            tuned = tune(data=Input(path="data"))

        job = digits()
        """,
    )
    asked = []

    def find(identity: str) -> Path:
        asked.append(identity)
        return here / "train.yml"

    with session.session(), python_file.importable(file):
        job = job_request(python_jobs.read(file, None, find).build({}))
        (step,) = pipeline.read(job, here / "snapshots").graph.nodes
    assert (step.component, asked) == ("train", ["azureml://registries/azureml/components/tune/labels/latest"])


def test_values_that_only_a_workspace_knows_are_refused(here: Path) -> None:
    file = write_dsl(
        here,
        """
        from azure.ai.ml import MLClient

        ml_client = MLClient.from_config()
        where = ml_client.workspaces.get(ml_client.workspace_name).location
        print("in " + where.lower(), [one for one in ml_client.jobs.list()], ml_client.connections.get("x").tags)
        print(ml_client.workspaces.get("w").id.split("/")[2], ml_client.begin_create_or_update(train).name)

        @dsl.pipeline()
        def digits(kind):
            one = train(data=Input(path=ml_client.datastores.get("files").container_name), kind=kind)

        job = digits(kind=where)
        """,
    )
    with pytest.raises(InputError) as refused:
        read(file)
    assert [problem.where for problem in refused.value.problems] == [
        "input kind of the pipeline",
        "step one, key inputs.data (pipeline.py:14)",
    ]
    assert "location, which only a workspace knows" in refused.value.problems[0].found
    assert {problem.level for problem in refused.value.problems} == {Level.MACHINE}
