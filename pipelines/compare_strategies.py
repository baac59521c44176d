"""Train the same language model with each strategy, and compare the loss curves on one page.

    allranks run pipelines/compare_strategies.py
    allranks run pipelines/compare_strategies.py --set max_steps=200 --set hidden_size=256
    allranks run pipelines/compare_strategies.py --set strategies=ddp,zero_0,horovod

`allranks submit pipelines/compare_strategies.py` submits the same pipeline to Azure ML.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, MpiDistribution, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

from components.comparison.compare_trainings.component import compare_trainings  # noqa: E402

prepare_text = load_component(COMPONENTS / "language_modelling/prepare_text/component.yaml")
train_language_model = load_component(COMPONENTS / "language_modelling/train_language_model/component.yaml")
train_language_model_horovod = load_component(
    COMPONENTS / "language_modelling/train_language_model/train_language_model_horovod/component.yaml"
)

# Step name -> inputs of the training.
STRATEGIES = {
    "ddp": {"strategy": "ddp"},
    "fsdp": {"strategy": "fsdp"},
    "zero_0": {"strategy": "deepspeed", "deepspeed_stage": 0},
    "zero_1": {"strategy": "deepspeed", "deepspeed_stage": 1},
    "zero_2": {"strategy": "deepspeed", "deepspeed_stage": 2},
    "zero_3": {"strategy": "deepspeed", "deepspeed_stage": 3},
    "horovod": {"strategy": "horovod"},
}


# `strategies` decides which steps exist when the pipeline is built. The values of inputs are only known when it runs.
@pipeline(
    name="compare_strategies",
    display_name="Strategies compared",
    description="Trains the same model on the same data by DDP, FSDP, DeepSpeed ZeRO or Horovod, and compares them.",
    non_pipeline_inputs=["strategies"],
)
def compare_strategies(
    folder: Input(type="uri_folder", optional=True) = None,
    pattern: Input(type="string") = "**/*",
    vocabulary_size: Input(type="integer", min=257, max=1000000) = 1024,
    max_seq_length: Input(type="integer", min=1) = 64,
    hidden_size: Input(type="integer", min=2) = 128,
    num_hidden_layers: Input(type="integer", min=1) = 2,
    num_attention_heads: Input(type="integer", min=1) = 4,
    max_steps: Input(type="integer", min=1) = 50,
    per_device_train_batch_size: Input(type="integer", min=1) = 4,
    gradient_accumulation_steps: Input(type="integer", min=1) = 1,
    learning_rate: Input(type="number", min=1e-9) = 0.002,
    precision: Input(type="string", enum=["float32", "bfloat16", "float16"]) = "float32",
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    strategies: str = "ddp,fsdp,zero_1,zero_2,zero_3",
):
    """
    strategies: names with commas between; horovod is started by MPI, and needs Horovod: make horovod
    """
    names = list(dict.fromkeys(strategies.split(",")))
    unknown = ", ".join(repr(name) for name in names if name not in STRATEGIES)
    if unknown:
        raise ValueError(f"strategies has {unknown}; give some of {','.join(STRATEGIES)}")
    prepare = prepare_text(folder=folder, pattern=pattern, vocabulary_size=vocabulary_size, seed=seed)
    histories = {}
    for number, name in enumerate(names, start=1):
        under_mpi = name == "horovod"
        train = (train_language_model_horovod if under_mpi else train_language_model)(
            data=prepare.outputs.text,
            max_seq_length=max_seq_length,
            hidden_size=hidden_size,
            num_hidden_layers=num_hidden_layers,
            num_attention_heads=num_attention_heads,
            max_steps=max_steps,
            per_device_train_batch_size=per_device_train_batch_size,
            gradient_accumulation_steps=gradient_accumulation_steps,
            learning_rate=learning_rate,
            precision=precision,
            seed=seed,
            **STRATEGIES[name],
        )
        train.name = name
        # New objects: by default, all steps of a component share its objects.
        train.resources = JobResourceConfiguration(instance_count=instance_count)
        distribution = MpiDistribution if under_mpi else PyTorchDistribution
        train.distribution = distribution(process_count_per_instance=processes_per_instance)
        histories[f"history_{number}"] = train.outputs.history
    compare = compare_trainings(**histories, title="Strategies compared")
    return {"comparison": compare.outputs.comparison}
