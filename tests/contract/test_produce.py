from allranks.contract import produce
from allranks.contract.launch import Launch
from allranks.contract.produce import Job, job_environment
from allranks.contract.pytorch import PyTorch

LAUNCH = Launch(PyTorch(2), ("10.0.0.4",), ("node-0",))
PROCESS = produce.processes(LAUNCH)[1]


def test_a_job_has_the_place_of_its_process_and_who_it_is() -> None:
    run = Job(
        "run-1", "root-1", "digits", "sqlite:///m.db", "abc", {"data": "/in"}, {"model": "/out"}, {"lr": "0.1"}, "t"
    )
    given = job_environment(run, LAUNCH, PROCESS)
    expected = {
        **produce.environment(LAUNCH, PROCESS),
        "AZUREML_RUN_ID": "run-1",
        "AZUREML_ROOT_RUN_ID": "root-1",
        "AZUREML_ARM_PROJECT_NAME": "digits",
        "MLFLOW_TRACKING_URI": "sqlite:///m.db",
        "MLFLOW_RUN_ID": "abc",
        "MLFLOW_TRACKING_TOKEN": "t",
        "MLFLOW_EXPERIMENT_NAME": "digits",
        "AZURE_ML_INPUT_data": "/in",
        "AZURE_ML_OUTPUT_model": "/out",
        "AZUREML_PARAMETER_lr": "0.1",
        "NCCL_SOCKET_IFNAME": "eth0",
    }
    assert given.items() >= expected.items()
    workspace = {"AZUREML_ARM_SUBSCRIPTION", "AZUREML_ARM_RESOURCEGROUP", "AZUREML_ARM_WORKSPACE_NAME"}
    service = {"AZUREML_EXPERIMENT_ID", "AZUREML_SERVICE_ENDPOINT", "AZUREML_RUN_TOKEN"}
    assert given.keys() - expected.keys() == workspace | service
    assert all(given.values())


def test_without_a_tracking_server_nothing_points_to_one() -> None:
    given = job_environment(Job("run-1", "run-1", "digits", mlflow_run_id="abc"), LAUNCH, PROCESS)
    assert not [name for name in given if name.startswith("MLFLOW_")]


def test_an_experiment_keeps_its_id() -> None:
    first, second, other = (
        job_environment(Job("run", "run", experiment), LAUNCH, PROCESS)["AZUREML_EXPERIMENT_ID"]
        for experiment in ("digits", "digits", "letters")
    )
    assert first == second != other
