"""Fine-tune a language model on conversations, compare it with its base model, and register it if it is better.

    allranks run pipelines/finetune_language_model.py
    allranks run pipelines/finetune_language_model.py --set method=full --set learning_rate=0.001
    allranks run pipelines/finetune_language_model.py --set instance_count=4 --set processes_per_instance=1

The small base model is a Llama that is pre-trained on the documentation of Python's standard library. It is tuned to
answer questions about it. Your own base model and data take the places of the first three steps.
`allranks submit pipelines/finetune_language_model.py` submits the same pipeline to Azure ML.
"""

import sys
from pathlib import Path

from azure.ai.ml import Input, PyTorchDistribution, load_component
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import JobResourceConfiguration

ROOT = Path(__file__).resolve().parent.parent
COMPONENTS = ROOT / "components"
sys.path.insert(0, str(ROOT))  # for the components that are written in Python

from components.language_modelling.prepare_docstrings.component import prepare_docstrings  # noqa: E402

register_model = load_component(COMPONENTS / "model_management/register_model/component.yaml")

create_base_model = load_component(COMPONENTS / "language_modelling/create_base_model/component.yaml")
finetune_language_model = load_component(COMPONENTS / "language_modelling/finetune_language_model/component.yaml")
evaluate_finetuned = load_component(COMPONENTS / "language_modelling/evaluate_finetuned_language_model/component.yaml")


@pipeline(
    name="finetune_language_model",
    display_name="Fine-tune a language model",
    description="Pre-trains a small base model, fine-tunes it on all ranks, compares both, and registers the result.",
)
def finetune(
    packages: Input(type="string") = "asyncio,email,importlib,logging,multiprocessing,unittest",
    hidden_size: Input(type="integer", min=2) = 96,
    num_hidden_layers: Input(type="integer", min=1) = 3,
    pretraining_steps: Input(type="integer", min=1) = 60,
    method: Input(type="string", enum=["full", "lora", "qlora"]) = "lora",
    lora_r: Input(type="integer", min=1) = 2,
    learning_rate: Input(type="number", min=1e-8) = 0.006,
    num_train_epochs: Input(type="number", min=0.001) = 1.0,
    max_steps: Input(type="integer", min=-1) = 60,
    per_device_train_batch_size: Input(type="integer", min=1) = 8,
    max_seq_length: Input(type="integer", min=2) = 96,
    precision: Input(type="string", enum=["auto", "float32", "bfloat16", "float16"]) = "auto",
    strategy: Input(type="string", enum=["ddp", "fsdp", "deepspeed"]) = "ddp",
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    model_name: Input(type="string") = "documentation-assistant",
    minimum_reduction: Input(type="number", min=-1000.0, max=1.0) = 0.3,
):
    texts = prepare_docstrings(kind="text", packages=packages, seed=seed)
    prepare = prepare_docstrings(kind="chat", packages=packages, seed=seed)
    create = create_base_model(
        text=texts.outputs.train,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        max_steps=pretraining_steps,
        seed=seed,
    )
    train = finetune_language_model(
        base_model=create.outputs.model,
        data=prepare.outputs.train,
        validation_data=prepare.outputs.validation,
        method=method,
        lora_r=lora_r,
        learning_rate=learning_rate,
        num_train_epochs=num_train_epochs,
        max_steps=max_steps,
        per_device_train_batch_size=per_device_train_batch_size,
        max_seq_length=max_seq_length,
        precision=precision,
        strategy=strategy,
        seed=seed,
    )
    evaluate = evaluate_finetuned(
        data=prepare.outputs.validation,
        model=train.outputs.model,
        baseline=create.outputs.model,
        max_seq_length=max_seq_length,
    )
    # New objects: by default, all steps of a component share its objects.
    train.resources = evaluate.resources = JobResourceConfiguration(instance_count=instance_count)
    train.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    evaluate.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    register = register_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        name=model_name,
        metric="perplexity_reduction",
        threshold=minimum_reduction,
    )
    return {
        "model": train.outputs.model,
        "adapter": train.outputs.adapter,
        "history": train.outputs.history,
        "metrics": evaluate.outputs.metrics,
        "registration": register.outputs.registration,
    }
