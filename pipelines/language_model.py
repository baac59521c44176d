"""A language model, from text files to a registered model, with the training spread over several instances.

    allranks run pipelines/language_model.py
    allranks run pipelines/language_model.py --set launch=mpi --set strategy=deepspeed --set deepspeed_stage=2
    allranks run pipelines/language_model.py --set folder=notes --set pattern="**/*.md" --set vocabulary_size=512
    allranks run pipelines/language_model.py --set model_size=30M --set max_steps=20 --set eval_steps=10

`allranks submit pipelines/language_model.py` submits the same pipeline to Azure ML.
"""

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks import layout
from allranks.library import (
    evaluate_language_model,
    prepare_text,
    register_model,
    sample_text,
    train_language_model,
    train_language_model_horovod,
    train_language_model_mpi,
)

# Launch -> training component.
LAUNCHES = {
    "pytorch": train_language_model,
    "horovod": train_language_model_horovod,
    "mpi": train_language_model_mpi,
}


# `launch` decides the component when the pipeline is built. The values of inputs are only known when it runs.
@pipeline(
    name="language_model",
    display_name="Language model",
    description="Prepares text, trains a Llama on all ranks, evaluates it on all ranks, samples text and registers it.",
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
    prepare = prepare_text(
        folder=folder,
        pattern=pattern,
        vocabulary_size=vocabulary_size,
        validation_fraction=validation_fraction,
        seed=seed,
    )
    train = LAUNCHES[launch](
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
    layout(train, instance_count, processes_per_instance)
    layout(evaluate, instance_count, processes_per_instance)

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
