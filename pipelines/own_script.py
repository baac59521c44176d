"""Your own training script under any launch, and the model that it writes registered.

    allranks run pipelines/own_script.py
    allranks run pipelines/own_script.py --set launch=torchrun --set processes_per_instance=4
    allranks run pipelines/own_script.py --set source=my/folder --set script=train.py --set arguments="--epochs 3"

The script is a plain PyTorch program, pipelines/own_scripts/train_digits.py. `allranks submit pipelines/own_script.py`
submits the same pipeline to Azure ML.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, MpiDistribution, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

register_model = load_component(COMPONENTS / "model_management/register_model/component.yaml")

# Launch -> component. Under pytorch and mpi the platform starts every process, else one launcher per instance.
LAUNCHES = {
    name: load_component(next(COMPONENTS.rglob(f"run_{name}/component.yaml")))
    for name in ("pytorch", "torchrun", "deepspeed", "mpi")
}
for component in LAUNCHES.values():
    component.code = str(
        ROOT / "pipelines/own_scripts"
    )  # the script's folder, unless the input source names another one
PER_PROCESS = {"pytorch": PyTorchDistribution, "mpi": MpiDistribution}


# `launch` decides the component when the pipeline is built. The values of inputs are only known when it runs.
@pipeline(
    name="own_script",
    display_name="Own script",
    description="Runs a training script of one's own on all ranks, and registers the model that it writes.",
    non_pipeline_inputs=["launch"],
)
def own_script(
    source: Input(type="uri_folder", optional=True) = None,
    script: Input(type="string") = "train_digits.py",
    arguments: Input(type="string") = "--epochs 20",
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    model_name: Input(type="string") = "own-model",
    launch: str = "pytorch",
):
    if launch not in LAUNCHES:
        raise ValueError(f"launch is {launch!r}; give one of {', '.join(LAUNCHES)}")
    options = {} if launch in PER_PROCESS else {"processes": processes_per_instance}
    train = LAUNCHES[launch](source=source, script=script, arguments=arguments, **options)
    train.resources = JobResourceConfiguration(instance_count=instance_count)
    if launch in PER_PROCESS:
        train.distribution = PER_PROCESS[launch](process_count_per_instance=processes_per_instance)
    register = register_model(model=train.outputs.model, metrics=train.outputs.metrics, name=model_name)
    return {"results": train.outputs.results, "registration": register.outputs.registration}
