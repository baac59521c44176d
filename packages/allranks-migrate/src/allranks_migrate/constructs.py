"""The constructs of v1 without an exact equivalent in azure-ai-ml, and those that a job does not need."""

ESTIMATORS = ("Estimator", "PyTorch", "TensorFlow", "SKLearn", "Chainer", "MMLBaseEstimator")
STEPS = ("PythonScriptStep", "CommandStep", "MpiStep", "EstimatorStep", "HyperDriveStep", "ParallelRunStep")
JOBS = ("ScriptRunConfig", "HyperDriveConfig", *ESTIMATORS, *STEPS)
PORTS = ("OutputFileDatasetConfig", "PipelineData", "PipelineOutputFileDataset", "OutputTabularDatasetConfig")

_MLFLOW = "log with mlflow, which azure-ai-ml's jobs do: mlflow.log_metric, mlflow.log_artifact"
_ENDPOINT = "deploy it to a managed online or batch endpoint of azure-ai-ml"
_DEPLOYMENTS = (f"{kind}Webservice.deploy_configuration" for kind in ("Aci", "Aks", "Local"))
_STEP = "azure-ai-ml has no such step"

MISSING: dict[str, tuple[str, str]] = {
    "AutoMLConfig": ("automated ML has jobs of its own in azure-ai-ml", "write it with azure.ai.ml.automl"),
    "AutoMLStep": ("automated ML has jobs of its own in azure-ai-ml", "write it with azure.ai.ml.automl"),
    "DatabricksStep": (_STEP, "start the Databricks job with its own API, from a command component"),
    "DataTransferStep": (_STEP, "copy the files in a command component"),
    "AdlaStep": (_STEP, "Azure Data Lake Analytics has ended; write a command or Spark component"),
    "AzureBatchStep": (_STEP, "write a command component"),
    "RScriptStep": (_STEP, "write a command component that runs Rscript, with R in its environment"),
    "SynapseSparkStep": (_STEP, "write a Spark component"),
    "KustoStep": (_STEP, "query with a command component"),
    "ModuleStep": (_STEP, "write the module as a component"),
    "Run.get_context": ("azure-ai-ml has no run object inside of a job", _MLFLOW),
    "Run": ("azure-ai-ml has no run object", "use MLClient.jobs.get"),
    "Environment.from_existing_conda_environment": (
        "it copies an environment of this machine",
        "write its packages into the conda file",
    ),
    "start_logging": ("azure-ai-ml has no interactive runs", "use mlflow.start_run"),
    **dict.fromkeys(
        ("Model.deploy", "InferenceConfig", *_DEPLOYMENTS), ("deployments are endpoints in azure-ai-ml", _ENDPOINT)
    ),
    "Schedule.create": ("a schedule is a file of its own", "write it with azure.ai.ml.entities.JobSchedule"),
    "PublishedPipeline": ("azure-ai-ml publishes components", "register the pipeline as a component"),
    "PipelineEndpoint.publish": ("azure-ai-ml publishes components", "deploy the pipeline to a batch endpoint"),
    "publish": ("azure-ai-ml publishes components", "register the pipeline as a component"),
    "register_model": ("a run does not register models in azure-ai-ml", "register it in a step: mlflow.register_model"),
    "Model.register": ("a model is registered by the client", "use MLClient.models.create_or_update"),
    "TrainingOutput": ("a sweep's outputs are those of its best trial", "write the model to the output in the script"),
    "RunConfiguration.load": ("its file is a format of v1", "write its settings into the component"),
    "ScriptRun": ("azure-ai-ml has no local runs", "allranks run starts the pipeline on this machine"),
}
"""The reason why a construct is not converted, and the alternative."""

SUBMITTED = {
    "pipeline_parameters": "set them at each run: --set NAME=VALUE",
    "continue_on_step_failure": "set job.settings.continue_on_step_failure",
    "regenerate_outputs": "set job.settings.force_rerun",
}
"""Settings of a submission that belong to the pipeline, and their names in azure-ai-ml."""

SAMPLERS = {
    "RandomParameterSampling": "random",
    "GridParameterSampling": "grid",
    "BayesianParameterSampling": "bayesian",
}
POLICIES = {
    "BanditPolicy": ("evaluation_interval", "slack_factor", "slack_amount", "delay_evaluation"),
    "MedianStoppingPolicy": ("evaluation_interval", "delay_evaluation"),
    "TruncationSelectionPolicy": ("truncation_percentage", "evaluation_interval", "delay_evaluation"),
}
VALUES = {
    name.lower(): name
    for name in (
        "Choice", "LogNormal", "LogUniform", "Normal", "QLogNormal", "QLogUniform", "QNormal", "QUniform", "Randint",
        "Uniform",
    )
}  # fmt: skip
"""The functions of azure.ai.ml.sweep by those of v1."""

POSITIONS = {
    **dict.fromkeys(ESTIMATORS, "source_directory"),
    "ScriptRunConfig": "source_directory script arguments run_config",
    "HyperDriveConfig": "hyperparameter_sampling primary_metric_name primary_metric_goal max_total_runs",
    "PythonScriptStep": "script_name name arguments compute_target runconfig",
    "CommandStep": "command name compute_target runconfig",
    "MpiStep": "name source_directory script_name arguments compute_target node_count process_count_per_node",
    "EstimatorStep": "name estimator estimator_entry_script_arguments",
    "HyperDriveStep": "name hyperdrive_config estimator_entry_script_arguments inputs outputs metrics_output",
    "ParallelRunStep": "name parallel_run_config inputs output side_inputs arguments",
}
"""The names of the first parameters of jobs in v1 (1.62). The others are never passed by position."""

CLASSES = (
    *JOBS, *PORTS, "Environment", "Experiment", "Workspace", "Dataset", "MpiConfiguration", "PyTorchConfiguration",
    "TensorflowConfiguration", "Pipeline", "ParallelRunConfig", "RunConfiguration", "CondaDependencies",
    "ComputeTarget", "DataReference", "Datastore", "PipelineParameter", "StepSequence", *SAMPLERS, *POLICIES, *VALUES,
)  # fmt: skip
"""Names that a sample may use without importing them, or after ``import *``."""
