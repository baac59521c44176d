"""Fine-tune a language model to classify texts, evaluate it on all ranks, and register it if it is good enough.

    allranks run pipelines/text_classification.py
    allranks run pipelines/text_classification.py --set packages=json,logging,email --set num_train_epochs=5

The texts are summaries of what Python's standard library documents, and the labels are its packages. The small base
model is pre-trained on the same documentation, without labels. `allranks submit pipelines/text_classification.py`
submits the same pipeline to Azure ML.
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
finetune_text_classifier = load_component(COMPONENTS / "language_modelling/finetune_text_classifier/component.yaml")
evaluate_text_classifier = load_component(COMPONENTS / "language_modelling/evaluate_text_classifier/component.yaml")


@pipeline(
    name="text_classification",
    display_name="Text classification",
    description="Pre-trains a small base model, tunes it to classify texts on all ranks, evaluates and registers it.",
)
def text_classification(
    packages: Input(type="string") = "asyncio,email,importlib,logging,multiprocessing,unittest",
    hidden_size: Input(type="integer", min=2) = 96,
    num_hidden_layers: Input(type="integer", min=1) = 3,
    pretraining_steps: Input(type="integer", min=1) = 60,
    learning_rate: Input(type="number", min=1e-8) = 0.002,
    num_train_epochs: Input(type="number", min=0.001) = 3.0,
    per_device_train_batch_size: Input(type="integer", min=1) = 8,
    max_seq_length: Input(type="integer", min=2) = 64,
    precision: Input(type="string", enum=["auto", "float32", "bfloat16", "float16"]) = "auto",
    seed: Input(type="integer", min=0) = 0,
    instance_count: Input(type="integer", min=1) = 2,
    processes_per_instance: Input(type="integer", min=1) = 2,
    model_name: Input(type="string") = "text-classifier",
    minimum_accuracy: Input(type="number", min=0.0, max=1.0) = 0.6,
):
    texts = prepare_docstrings(kind="text", packages=packages, seed=seed)
    prepare = prepare_docstrings(kind="labelled", packages=packages, seed=seed)
    create = create_base_model(
        text=texts.outputs.train,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        max_steps=pretraining_steps,
        seed=seed,
    )
    train = finetune_text_classifier(
        base_model=create.outputs.model,
        data=prepare.outputs.train,
        validation_data=prepare.outputs.validation,
        learning_rate=learning_rate,
        num_train_epochs=num_train_epochs,
        per_device_train_batch_size=per_device_train_batch_size,
        max_seq_length=max_seq_length,
        precision=precision,
        seed=seed,
    )
    evaluate = evaluate_text_classifier(
        data=prepare.outputs.validation, model=train.outputs.model, max_seq_length=max_seq_length
    )
    # New objects: by default, all steps of a component share its objects.
    train.resources = evaluate.resources = JobResourceConfiguration(instance_count=instance_count)
    train.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    evaluate.distribution = PyTorchDistribution(process_count_per_instance=processes_per_instance)
    register = register_model(
        model=train.outputs.model,
        metrics=evaluate.outputs.metrics,
        name=model_name,
        metric="accuracy",
        threshold=minimum_accuracy,
    )
    return {
        "model": train.outputs.model,
        "history": train.outputs.history,
        "metrics": evaluate.outputs.metrics,
        "registration": register.outputs.registration,
    }
