"""A language model, from text files to a registered model, with the training spread over several instances.

    allranks run pipelines/language_model.py
    allranks run pipelines/language_model.py --set launch=mpi --set strategy=deepspeed --set deepspeed_stage=2
    allranks run pipelines/language_model.py --set folder=notes --set pattern="**/*.md" --set vocabulary_size=512
    allranks run pipelines/language_model.py --set model_size=30M --set max_steps=20 --set eval_steps=10

`allranks submit pipelines/language_model.py` submits the same pipeline to Azure ML.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, MpiDistribution, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

from components.language_modelling.prepare_text.component import prepare_text  # noqa: E402

register_model = load_component(COMPONENTS / "model_management/register_model/component.yaml")

evaluate_language_model = load_component(COMPONENTS / "language_modelling/evaluate_language_model/component.yaml")
sample_text = load_component(COMPONENTS / "language_modelling/sample_text/component.yaml")

# Launch -> training component and its distribution.
LAUNCHES = {
    "pytorch": (
        load_component(COMPONENTS / "language_modelling/train_language_model/component.yaml"),
        PyTorchDistribution,
    ),
    "horovod": (
        load_component(
            COMPONENTS / "language_modelling/train_language_model/train_language_model_horovod/component.yaml"
        ),
        MpiDistribution,
    ),
    "mpi": (
        load_component(COMPONENTS / "language_modelling/train_language_model/train_language_model_mpi/component.yaml"),
        MpiDistribution,
    ),
}


# `launch` decides the component when the pipeline is built. The values of inputs are only known when it runs.
@pipeline(
    name="language_model",
    display_name="Language model",
    description="Prepares text, trains a GPT on all ranks, evaluates it on all ranks, samples text and registers it.",
    non_pipeline_inputs=["launch"],
)
def language_model(
    folder: Input(type="uri_folder", optional=True) = None,
    pattern: Input(type="string") = "**/*",
    vocabulary_size: Input(type="integer", min=257, max=1000000) = 2048,
    validation_fraction: Input(type="number", min=0.0001, max=0.5) = 0.02,
    model_size: Input(type="string", enum=["3M", "30M", "124M", "350M", "1B", "3B", "7B"]) = "3M",
    max_seq_length: Input(type="integer", min=1, optional=True) = None,
    hidden_size: Input(type="integer", min=2, optional=True) = None,
    num_hidden_layers: Input(type="integer", min=1, optional=True) = None,
    num_attention_heads: Input(type="integer", min=1, optional=True) = None,
    num_train_epochs: Input(type="number", min=1e-6) = 1.0,
    max_steps: Input(type="integer", min=-1) = 300,
    per_device_train_batch_size: Input(type="integer", min=1) = 2,
    gradient_accumulation_steps: Input(type="integer", min=1) = 1,
    learning_rate: Input(type="number", min=1e-9, optional=True) = None,
    precision: Input(type="string", enum=["auto", "float32", "bfloat16", "float16"]) = "auto",
    compile: Input(type="boolean") = False,
    strategy: Input(type="string", enum=["ddp", "fsdp", "deepspeed"]) = "ddp",
    deepspeed_stage: Input(type="integer", min=0, max=3, optional=True) = None,
    eval_steps: Input(type="integer", min=0) = 0,
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    prompt: Input(type="string") = "def ",
    model_name: Input(type="string") = "language-model",
    maximum_perplexity: Input(type="number", min=1.0, optional=True) = None,
    launch: str = "pytorch",
):
    if launch not in LAUNCHES:
        raise ValueError(f"launch is {launch!r}; give one of {', '.join(LAUNCHES)}")
    train_language_model, distribution = LAUNCHES[launch]

    prepare = prepare_text(
        folder=folder,
        pattern=pattern,
        vocabulary_size=vocabulary_size,
        validation_fraction=validation_fraction,
        seed=seed,
    )
    train = train_language_model(
        data=prepare.outputs.text,
        model_size=model_size,
        max_seq_length=max_seq_length,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        num_train_epochs=num_train_epochs,
        max_steps=max_steps,
        per_device_train_batch_size=per_device_train_batch_size,
        gradient_accumulation_steps=gradient_accumulation_steps,
        learning_rate=learning_rate,
        precision=precision,
        compile=compile,
        strategy=strategy,
        deepspeed_stage=deepspeed_stage,
        eval_steps=eval_steps,
        seed=seed,
    )
    evaluate = evaluate_language_model(data=prepare.outputs.text, model=train.outputs.model)
    # New objects: by default, all steps of a component share its objects.
    train.resources = evaluate.resources = JobResourceConfiguration(instance_count=instance_count)
    train.distribution = distribution(process_count_per_instance=processes_per_instance)
    evaluate.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)

    sample = sample_text(model=train.outputs.model, prompt=prompt, seed=seed)
    register = register_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        name=model_name,
        metric="perplexity",
        goal="minimize",
        threshold=maximum_perplexity,
    )
    return {
        "model": train.outputs.model,
        "history": train.outputs.history,
        "metrics": evaluate.outputs.metrics,
        "sample": sample.outputs.text,
        "registration": register.outputs.registration,
    }
