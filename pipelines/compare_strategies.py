"""The same language model by each strategy, and one page with the loss curves on top of each other.

    allranks run pipelines/compare_strategies.py
    allranks run pipelines/compare_strategies.py --set steps=200 --set width=256

Nothing here knows where it runs: `MLClient.jobs.create_or_update(compare_strategies())` submits the same pipeline.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # where Python finds the components that are written in it

from components.compare_trainings.component import compare_trainings  # noqa: E402
from components.prepare_text.component import prepare_text  # noqa: E402

train_language_model = load_component(COMPONENTS / "train_language_model/component.yaml")

# The step's name, and what it is trained by.
STRATEGIES = {
    "ddp": {"strategy": "ddp"},
    "fsdp": {"strategy": "fsdp"},
    "zero_1": {"strategy": "deepspeed", "zero_stage": 1},
    "zero_2": {"strategy": "deepspeed", "zero_stage": 2},
    "zero_3": {"strategy": "deepspeed", "zero_stage": 3},
}


@pipeline(
    name="compare_strategies",
    display_name="Strategies compared",
    description="Trains the same model on the same data by DDP, FSDP and DeepSpeed ZeRO 1 to 3, and compares them.",
    default_compute="cpu-cluster",
)
def compare_strategies(
    folder: Input(type="uri_folder", optional=True) = None,
    pattern: Input(type="string") = "**/*",
    vocabulary_size: Input(type="integer", min=257, max=65536) = 1024,
    block_size: Input(type="integer", min=1) = 64,
    layers: Input(type="integer", min=1) = 2,
    heads: Input(type="integer", min=1) = 4,
    width: Input(type="integer", min=1) = 128,
    steps: Input(type="integer", min=1) = 50,
    batch_size: Input(type="integer", min=1) = 16,
    learning_rate: Input(type="number", min=1e-6) = 0.002,
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    process_count_per_instance: Input(type="integer", min=1) = 2,
):
    prepare = prepare_text(folder=folder, pattern=pattern, vocabulary_size=vocabulary_size, seed=seed)
    histories = {}
    for number, (name, chosen) in enumerate(STRATEGIES.items(), start=1):
        train = train_language_model(
            data=prepare.outputs.text,
            block_size=block_size,
            layers=layers,
            heads=heads,
            width=width,
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            **chosen,
        )
        train.name = name
        # New objects, because a step begins with its component's own, which every other step of it shares.
        train.resources = JobResourceConfiguration(instance_count=instance_count)
        train.distribution = PyTorchDistribution(process_count_per_instance=process_count_per_instance)
        histories[f"history_{number}"] = train.outputs.history
    compare = compare_trainings(**histories, title="Strategies compared")
    return {"comparison": compare.outputs.comparison}
