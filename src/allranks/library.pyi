# Generated from the specs of the components by: python docs/make_library.py

from enum import Enum
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from azure.ai.ml.entities import Command

class Output(Protocol):
    """An output of a step, or other data: azure-ai-ml's Input has these attributes too."""

    type: Any
    mode: Any
    path: Any

Data: TypeAlias = str | Output | dict[str, Any]
"""A path or URI as text, an Input, or an output of a step."""

_Outputs = TypeVar("_Outputs")

class Step(Command, Generic[_Outputs]):  # type: ignore[misc, unused-ignore]
    """azure-ai-ml's node, with the outputs of its component."""

    outputs: _Outputs  # type: ignore[assignment, unused-ignore]

__all__ = ['autotune_deepspeed', 'benchmark_collectives', 'check_metric', 'compare_scaling', 'compare_trainings', 'consolidate_checkpoint', 'create_base_model', 'evaluate_finetuned_language_model', 'evaluate_image_classifier', 'evaluate_image_classifier_tensorflow', 'evaluate_language_model', 'evaluate_table_model', 'evaluate_text_classifier', 'finetune_language_model', 'finetune_text_classifier', 'get_champion', 'preflight', 'prepare_docstrings', 'prepare_images', 'prepare_table', 'prepare_text', 'promote_model', 'record_launch', 'record_launch_mpi', 'record_launch_ray', 'record_launch_single', 'record_launch_tensorflow', 'register_model', 'run_accelerate', 'run_deepspeed', 'run_horovod', 'run_mpi', 'run_pytorch', 'run_ray', 'run_tensorflow', 'run_tensorflow_parameter_server', 'run_torchrun', 'sample_text', 'select_best', 'select_new_data', 'shard_dataset', 'train_gradient_boosting', 'train_image_classifier', 'train_image_classifier_deepspeed', 'train_image_classifier_horovod', 'train_language_model', 'train_language_model_horovod', 'train_language_model_mpi', 'train_lightning', 'train_tensorflow', 'train_tensorflow_horovod', 'train_tensorflow_parameter_server', 'verify_environment']

class AutotuneDeepspeedOutputs:
    best: Output
    results: Output

def autotune_deepspeed(*, source: Data, config: Data, data: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None, processes: int | Output = 1, metric: Literal['throughput', 'latency', 'flops'] | Enum | Output = 'throughput', fast: bool | Output = True, max_micro_batch_size: int | Output = 64, minutes: float | Output = 60.0) -> Step[AutotuneDeepspeedOutputs]:
    """Finds the DeepSpeed configuration with which a script of yours trains fastest, by DeepSpeed's
    autotuner, which makes short runs of it with other micro batches and ZeRO stages. The script takes
    --deepspeed_config and passes it on to DeepSpeed. For example: autotune_deepspeed(source=folder,
    script="train.py", config=file, processes=4).

    Inputs:
        source: uri_folder. The folder with the script and what it imports.
        config: uri_file. A DeepSpeed configuration as JSON, without train_batch_size. Its key
            autotuning may add settings.
        data: uri_folder, optional. Data, whose folder the script finds in the environment variable
            AZURE_ML_INPUT_data.
        script: string. The script's path in that folder.
        arguments: string, optional. The script's arguments but --deepspeed_config, split as a shell
            does.
        processes: integer, 1 to 1024. Processes per run, usually the number of GPUs of the instance.
        metric: string, one of throughput, latency, flops. What to optimize - examples a second, seconds
            a step, or operations a second.
        fast: boolean. Whether only micro batches are tuned, which takes minutes instead of hours.
        max_micro_batch_size: integer, 1 to 65536. The largest micro batch that is tried.
        minutes: number, 1 to 10080. Time limit of the tuning.

    Outputs:
        best: uri_file. The best configuration as JSON, which trainings on any number of ranks take as
            their input deepspeed.
        results: uri_folder. The autotuner's configurations and figures as JSON, and the logs, of every
            run.

    allranks_autotune_deepspeed 0.1.0: see docs/components.md#autotune_deepspeed
    """

class BenchmarkCollectivesOutputs:
    bandwidth: Output

def benchmark_collectives(*, collectives: str | Output = 'all_reduce,all_gather,reduce_scatter,broadcast,send_receive', min_bytes: int | Output = 1024, max_bytes: int | Output | None = None, factor: int | Output = 4, warm_up: int | Output = 5, iterations: int | Output = 20, dtype: Literal['float32', 'float16', 'bfloat16'] | Enum | Output = 'float32', size: str | Output | None = None, expected_gb_s: float | Output | None = None, fail_below: float | Output | None = None) -> Step[BenchmarkCollectivesOutputs]:
    """Measures all-reduce, all-gather, reduce-scatter, broadcast and point to point between all ranks
    through PyTorch, over NCCL on GPUs and over gloo on CPUs, checks every result, and compares the bus
    bandwidth with what the size should reach. The figures are those of nccl-tests. For example:
    benchmark_collectives(size="Standard_ND96asr_v4", fail_below=0.8).

    Inputs:
        collectives: string. The collectives to measure, separated by commas.
        min_bytes: integer, 1 to 1099511627776. The smallest size.
        max_bytes: integer, 1 to 1099511627776, optional. The largest size. By default 4 GiB on GPUs,
            which reach their full bandwidth then, and 64 MiB on CPUs.
        factor: integer, 2 to 1048576. How many times as large each size is as the one before.
        warm_up: integer, 0 to 100000. Calls before the measured ones, for each collective and size.
        iterations: integer, 1 to 100000. Measured calls for each collective and size.
        dtype: string, one of float32, float16, bfloat16. The type of the numbers.
        size: string, optional. The Azure size of the instances, such as Standard_ND96asr_v4, whose
            expected all-reduce is compared with. By default the one that the variable ALLRANKS_SIZE
            names.
        expected_gb_s: number, 1e-06 to any, optional. The bus bandwidth that an all-reduce should
            reach, in GB/s. It takes precedence over that of the size.
        fail_below: number, 0 to 1, optional. The part of the expected bandwidth below which the step
            fails. Without it, a slow network is reported and the step succeeds.

    Outputs:
        bandwidth: uri_folder. index.html, bandwidth.svg, and bandwidth.json with every figure.

    allranks_benchmark_collectives 0.1.0: see docs/components.md#benchmark_collectives
    """

class CheckMetricOutputs:
    value: Output
    missed: Output
    improved: Output

def check_metric(*, metrics: Data, metric: str | Output = 'accuracy', goal: Literal['maximize', 'minimize'] | Enum | Output = 'maximize', target: float | Output = 1.0, margin: float | Output = 0.0) -> Step[CheckMetricOutputs]:
    """Reads one metric of an evaluation and compares it with a target and with the baseline of the same
    evaluation. The answers are control outputs: `missed` continues a do_while loop, `improved` decides
    an if_else node.

    Inputs:
        metrics: uri_folder. The output `metrics` of an evaluation: metrics.json, an object of numbers
            by name. Those of the baseline, if there is one, are under baseline.
        metric: string. The metric to read.
        goal: string, one of maximize, minimize. Whether a higher or a lower value is better.
        target: number, -1000000000 to 1000000000. The value to reach.
        margin: number, 0 to any. By how much the value must be better than the baseline's. It must be
            better even if the margin is 0.

    Outputs:
        value: number. The value of the metric.
        missed: boolean. Whether the value misses the target.
        improved: boolean. Whether the value is better than the baseline's. True where there is no
            baseline.

    allranks_check_metric 0.1.0: see docs/components.md#check_metric
    """

class CompareScalingOutputs:
    scaling: Output

def compare_scaling(*, history_1: Data, history_2: Data | None = None, history_3: Data | None = None, history_4: Data | None = None, history_5: Data | None = None, history_6: Data | None = None, history_7: Data | None = None, history_8: Data | None = None, title: str | Output = 'Scaling', warm_up_steps: int | Output = 10, min_efficiency: float | Output = 0.7, price_per_hour: float | Output | None = None) -> Step[CompareScalingOutputs]:
    """Puts up to eight trainings of one model on 1, 2, 4 and more instances on one page that needs no
    network: throughput, speed-up, efficiency, cost, and where more instances stop paying. For example:
    compare_scaling(history_1= on_1.outputs.history, history_2=on_2.outputs.history,
    price_per_hour=27.2). pipelines/scaling_study.py trains and compares.

    Inputs:
        history_1: uri_file. The output `history` of a training: JSON with instance_count, world_size,
            and points of step, seconds and samples (docs/scaling.md).
        history_2: uri_file, optional. The same on another number of instances.
        history_3: uri_file, optional. The same on another number of instances.
        history_4: uri_file, optional. The same on another number of instances.
        history_5: uri_file, optional. The same on another number of instances.
        history_6: uri_file, optional. The same on another number of instances.
        history_7: uri_file, optional. The same on another number of instances.
        history_8: uri_file, optional. The same on another number of instances.
        title: string. The page's title.
        warm_up_steps: integer, 0 to 1000000. Number of steps at the beginning of each training to leave
            out.
        min_efficiency: number, 0 to 1. Instances pay if they add at least this part of their ideal
            throughput. With 0.7, twice as many instances must make the training at least 1.4 times as
            fast.
        price_per_hour: number, 0 to any, optional. Price of an instance per hour, in any currency. With
            it, the page shows the cost of a million samples.

    Outputs:
        scaling: uri_folder. scaling.html, and scaling.json with its figures.

    allranks_compare_scaling 0.1.0: see docs/components.md#compare_scaling
    """

class CompareTrainingsOutputs:
    comparison: Output

def compare_trainings(*, history_1: Data | None = None, history_2: Data | None = None, history_3: Data | None = None, history_4: Data | None = None, history_5: Data | None = None, history_6: Data | None = None, history_7: Data | None = None, history_8: Data | None = None, title: str | Output = 'Trainings compared') -> Step[CompareTrainingsOutputs]:
    """Puts the loss curves of up to eight trainings on top of each other, with step time, memory and the
    largest difference of the loss from the first one's, on one page that needs no network. For example:
    compare_trainings(history_1= by_ddp.outputs.history, history_2=by_fsdp.outputs.history).

    Inputs:
        history_1: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        history_2: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        history_3: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        history_4: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        history_5: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        history_6: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        history_7: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        history_8: uri_file, optional. The output `history` of a training (JSON with step, seconds and
            loss). The first is the one to compare with.
        title: string. The page's title.

    Outputs:
        comparison: uri_folder. comparison.html, and comparison.json with its figures.

    allranks_compare_trainings 0.1.0: see docs/components.md#compare_trainings
    """

class ConsolidateCheckpointOutputs:
    weights: Output
    model: Output

def consolidate_checkpoint(*, checkpoints: Data, model: Data | None = None, step: int | Output | None = None, best: Literal['none', 'lowest', 'highest'] | Enum | Output = 'none', part: str | Output | None = None, precision: Literal['saved', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'saved', max_shard_size: float | Output = 5.0) -> Step[ConsolidateCheckpointOutputs]:
    """Writes the weights in a training's checkpoint, which its ranks saved in parts, as safetensors files
    that any library reads, and into a copy of an MLflow model. It takes checkpoints of this project's
    trainings, those that DeepSpeed's engine writes under ZeRO, and those of
    torch.distributed.checkpoint. For example:
    consolidate_checkpoint(checkpoints=train.outputs.checkpoints, model=train.outputs.model).

    Inputs:
        checkpoints: uri_folder. A training's output `checkpoints`, one checkpoint in it, or a folder to
            which DeepSpeed's save_checkpoint or torch.distributed.checkpoint.save wrote, alone or one
            of several.
        model: mlflow_model, optional. An MLflow model of the same network, of which the output `model`
            is a copy with the weights of the checkpoint.
        step: integer, 1 to any, optional. The step whose checkpoint is read. Without it, the newest
            complete one, or the best one.
        best: string, one of none, lowest, highest. Whether to read the checkpoint with the lowest or
            the highest metric, instead of the newest one.
        part: string, optional. The part of the checkpoint that has the weights, if the training saves
            several. Without it, the part that a strategy prepared, or of
            torch.distributed.checkpoint's, the part model. For example: app.model.
        precision: string, one of saved, float32, bfloat16, float16. The type of the weights. Of
            DeepSpeed's, float32 is saved.
        max_shard_size: number, 1e-06 to 1000. Gigabytes (10^9 bytes) of one safetensors file at most,
            unless one tensor is larger.

    Outputs:
        weights: uri_folder. model.safetensors, or several files with model.safetensors.index.json, as
            Hugging Face's libraries name and read them.
        model: mlflow_model. The copy of the input `model` with these weights. Empty without that input.

    allranks_consolidate_checkpoint 0.1.0: see docs/components.md#consolidate_checkpoint
    """

class CreateBaseModelOutputs:
    model: Output

def create_base_model(*, text: Data, vocab_size: int | Output = 1024, hidden_size: int | Output = 128, num_hidden_layers: int | Output = 4, num_attention_heads: int | Output = 4, max_position_embeddings: int | Output = 512, max_steps: int | Output = 100, per_device_train_batch_size: int | Output = 16, max_seq_length: int | Output = 64, learning_rate: float | Output = 0.003, seed: int | Output = 0) -> Step[CreateBaseModelOutputs]:
    """Builds a small Llama and its tokenizer from texts, and pre-trains it for some steps. A model to try
    fine-tuning with where no other can be downloaded. For example:
    create_base_model(text=prepare.outputs.text, hidden_size=256).

    Inputs:
        text: uri_folder. JSONL files of objects with a text: {"text": "..."}.
        vocab_size: integer, 259 to 65536. Tokens of the tokenizer - 256 bytes, 3 of its own, and
            merges.
        hidden_size: integer, 2 to 65536. Embedding dimension. The defaults make about 900 thousand
            weights.
        num_hidden_layers: integer, 1 to 256. Layers of attention and feed-forward.
        num_attention_heads: integer, 1 to 256. Heads of attention in each layer. hidden_size is a
            multiple of twice their number.
        max_position_embeddings: integer, 2 to 1048576. Tokens that the model can see at once.
        max_steps: integer, 1 to 1000000. Optimizer steps of the pre-training.
        per_device_train_batch_size: integer, 1 to 65536. Sequences that a rank computes at once.
        max_seq_length: integer, 2 to 1048576. Tokens of a sequence.
        learning_rate: number, 1e-08 to 1. AdamW's highest learning rate. It rises over a tenth of the
            steps, and falls along a cosine.
        seed: integer, 0 to 4294967295. Seed of the first weights and of the order of the sequences.

    Outputs:
        model: uri_folder. The model and its tokenizer with a chat template, as save_pretrained of
            Transformers writes them.

    allranks_create_base_model 0.1.0: see docs/components.md#create_base_model
    """

class EvaluateFinetunedLanguageModelOutputs:
    metrics: Output

def evaluate_finetuned_language_model(*, data: Data, model: Data, baseline: Data | None = None, chat_template: Data | None = None, max_seq_length: int | Output = 512, completion_only_loss: bool | Output = True, per_device_eval_batch_size: int | Output = 8, precision: Literal['float32', 'bfloat16', 'float16'] | Enum | Output = 'float32') -> Step[EvaluateFinetunedLanguageModelOutputs]:
    """Scores a causal language model of Hugging Face's format on held-out conversations, texts,
    completions or preferences, every rank a part of them, and adds up exactly. Each token counts once,
    whatever the number of ranks. For example: evaluate_finetuned_language_model(data=held_out,
    model=finetune.outputs.model, baseline=folder).

    Inputs:
        data: uri_folder. JSONL or parquet files, as finetune_language_model reads them.
        model: mlflow_model. The model, as finetune_language_model writes it.
        baseline: uri_folder, optional. A model to compare with, such as the one that the fine-tuning
            started from.
        chat_template: uri_file, optional. A Jinja file that renders messages. Without it, the template
            of each model's tokenizer.
        max_seq_length: integer, 2 to 1048576. Tokens after which an example is cut off.
        completion_only_loss: boolean. Whether only completions and the assistant's messages are scored,
            or prompts too.
        per_device_eval_batch_size: integer, 1 to 65536. Examples that a rank scores at once.
        precision: string, one of float32, bfloat16, float16. The precision of weights and computation.

    Outputs:
        metrics: uri_folder. metrics.json - a JSON object with examples, count (of tokens), loss (nats
            per token), perplexity and accuracy; of preferences also preference_accuracy and
            preference_margin (nats); the same with the prefix baseline_, and perplexity_reduction, the
            share by which the perplexity is lower than the baseline's.

    allranks_evaluate_finetuned_language_model 0.1.0: see docs/components.md#evaluate_finetuned_language_model
    """

class EvaluateImageClassifierOutputs:
    metrics: Output

def evaluate_image_classifier(*, data: Data, model: Data, baseline: Data | None = None, split: Literal['train', 'validation', 'test'] | Enum | Output = 'test', per_device_eval_batch_size: int | Output = 64, dataloader_num_workers: int | Output = 0) -> Step[EvaluateImageClassifierOutputs]:
    """Scores a model on labelled images, every rank a part of them, and adds up exactly: each image counts
    once, whatever the number of ranks. Gives top-1 and top-5 accuracy, precision, recall and F1 for
    each class, and the confusion matrix.

    Inputs:
        data: uri_folder. Labelled images in one of three forms: arrays, as prepare_images writes them;
            a folder of image files, SPLIT/CLASS/NAME.jpg; WebDataset shards with index.json, as
            shard_dataset writes them.
        model: mlflow_model. A model in MLflow's PyTorch flavor, as train_image_classifier writes it. It
            takes pixels (uint8, 0 to 255, of shape count x channels x height x width) and gives a score
            for each class (floating point, of shape count x classes).
        baseline: mlflow_model, optional. Another model of the same kind, to compare with. It is scored
            on the same images, and what it scores stands in metrics.json under baseline. no_model.json
            in its place stands for none.
        split: string, one of train, validation, test. Which images are scored.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a rank in a forward pass.
        dataloader_num_workers: integer, 0 to 256. Processes per rank that read and decode images. 0 for
            the rank's own process.

    Outputs:
        metrics: uri_folder. metrics.json with split, source, count, accuracy, top5_accuracy, macro_f1,
            loss and those of the baseline; classes.json with precision, recall and F1 of each class;
            for up to 1000 classes confusion_matrix.json in the format that Azure ML draws.

    allranks_evaluate_image_classifier 0.1.0: see docs/components.md#evaluate_image_classifier
    """

class EvaluateImageClassifierTensorflowOutputs:
    metrics: Output

def evaluate_image_classifier_tensorflow(*, data: Data, model: Data, split: Literal['train', 'validation', 'test'] | Enum | Output = 'test', per_device_eval_batch_size: int | Output = 256) -> Step[EvaluateImageClassifierTensorflowOutputs]:
    """Scores a TensorFlow model on labelled images, every rank a part of them, and adds up exactly: each
    image counts once, whatever the number of ranks. Gives what evaluate_image_classifier gives:
    accuracy, F1, and the confusion matrix.

    Inputs:
        data: uri_folder. The images, as prepare_images writes them: NumPy files of pixels (uint8, 0 to
            255, of shape count x channels x height x width) and labels (int64) for each set, and
            dataset.json.
        model: mlflow_model. A model in MLflow's TensorFlow flavor, as train_tensorflow writes it. It
            takes pixels (uint8, 0 to 255, of shape count x channels x height x width) and gives a score
            for each class (floating point, of shape count x classes).
        split: string, one of train, validation, test. Which of the prepared sets is scored.
        per_device_eval_batch_size: integer, 1 to 65536. Images that one rank scores at once.

    Outputs:
        metrics: uri_folder. metrics.json with split, source, count, accuracy, top5_accuracy, macro_f1
            and loss; classes.json with the scores of each class; and confusion_matrix.json in the
            format that Azure ML draws.

    allranks_evaluate_image_classifier_tensorflow 0.1.0: see docs/components.md#evaluate_image_classifier_tensorflow
    """

class EvaluateLanguageModelOutputs:
    metrics: Output

def evaluate_language_model(*, data: Data, model: Data, split: Literal['train', 'validation'] | Enum | Output = 'validation', per_device_eval_batch_size: int | Output = 16, precision: Literal['float32', 'bfloat16', 'float16'] | Enum | Output = 'float32') -> Step[EvaluateLanguageModelOutputs]:
    """Scores a language model on prepared text, every rank a part of it, and adds up exactly - each token
    counts once, whatever the number of ranks. Gives loss, perplexity, bits per byte, the share of
    tokens that were predicted, and the perplexity of a unigram model. For example:
    evaluate_language_model(data=prepare.outputs.text, model=train.outputs.model).

    Inputs:
        data: uri_folder. The output `text` of prepare_text.
        model: mlflow_model. The output `model` of train_language_model, or of finetune_language_model
            for a model of the type llama whose adapter is merged.
        split: string, one of train, validation. Which of the prepared parts is scored.
        per_device_eval_batch_size: integer, 1 to 65536. Sequences of the model's max_seq_length that
            one rank scores at once.
        precision: string, one of float32, bfloat16, float16. Precision of the computation. The loss is
            computed in float32 from the scores.

    Outputs:
        metrics: uri_folder. metrics.json: a JSON object with split, source, count, loss (nats per
            token), perplexity, bits_per_byte, accuracy and, for validation, unigram_perplexity and
            times_below_unigram.

    allranks_evaluate_language_model 0.2.0: see docs/components.md#evaluate_language_model
    """

class EvaluateTableModelOutputs:
    metrics: Output

def evaluate_table_model(*, data: Data, model: Data, split: Literal['train', 'validation', 'test'] | Enum | Output = 'test', per_device_eval_batch_size: int | Output = 65536) -> Step[EvaluateTableModelOutputs]:
    """Scores a model on the rows of a table, every rank a part of them, and counts each row once, whatever
    the number of ranks. Gives accuracy, macro F1, log loss and AUC of a classification, and RMSE, MAE
    and R2 of a regression.

    Inputs:
        data: uri_folder. The table, as prepare_table writes it.
        model: mlflow_model. A model in MLflow's format, as train_gradient_boosting writes it. It takes
            the features as columns of numbers and gives a probability for each class (of two classes
            only for the second), or a number.
        split: string, one of train, validation, test. Which of the prepared sets is scored.
        per_device_eval_batch_size: integer, 1 to 10000000. Rows that one rank scores at once.

    Outputs:
        metrics: uri_folder. metrics.json with split, source, count, and the metrics by name.

    allranks_evaluate_table_model 0.1.0: see docs/components.md#evaluate_table_model
    """

class EvaluateTextClassifierOutputs:
    metrics: Output

def evaluate_text_classifier(*, data: Data, model: Data, text_column: str | Output = 'text', text_pair_column: str | Output = '', label_column: str | Output = 'label', max_seq_length: int | Output = 128, per_device_eval_batch_size: int | Output = 32) -> Step[EvaluateTextClassifierOutputs]:
    """Scores a text classifier on labelled texts, every rank a part of them, and adds up exactly. Each
    text counts once, whatever the number of ranks. Gives accuracy, macro F1, Matthews correlation and
    the confusion matrix, or the errors and the correlation of predicted numbers. For example:
    evaluate_text_classifier(data=held_out, model=finetune.outputs.model).

    Inputs:
        data: uri_folder. JSONL, CSV or parquet files, as finetune_text_classifier reads them.
        model: mlflow_model. The model, as finetune_text_classifier writes it.
        text_column: string. The column of the text, or of the first one of a pair.
        text_pair_column: string. The column of the second text of a pair. Empty for single texts.
        label_column: string. The column of the label, a text or a number.
        max_seq_length: integer, 2 to 1048576. Tokens after which a text is cut off.
        per_device_eval_batch_size: integer, 1 to 65536. Texts that a rank scores at once.

    Outputs:
        metrics: uri_folder. metrics.json - a JSON object with count, loss, accuracy, f1 (macro) and
            mcc; of numbers count, loss, mae and pearson. confusion_matrix.json - the matrix with a row
            for each true label, as Azure ML draws it.

    allranks_evaluate_text_classifier 0.1.0: see docs/components.md#evaluate_text_classifier
    """

class FinetuneLanguageModelOutputs:
    model: Output
    adapter: Output
    checkpoints: Output
    history: Output

def finetune_language_model(*, base_model: Data, data: Data, validation_data: Data | None = None, deepspeed: Data | None = None, resume_from_checkpoint: Data | None = None, chat_template: Data | None = None, objective: Literal['sft', 'dpo'] | Enum | Output = 'sft', method: Literal['full', 'lora', 'qlora'] | Enum | Output = 'lora', lora_r: int | Output = 8, lora_alpha: float | Output = 16.0, lora_dropout: float | Output = 0.0, target_modules: str | Output = 'all-linear', merge: bool | Output = True, max_seq_length: int | Output = 512, packing: bool | Output = False, completion_only_loss: bool | Output = True, beta: float | Output = 0.1, validation_fraction: float | Output = 0.0, num_train_epochs: float | Output = 3.0, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 8, per_device_eval_batch_size: int | Output = 8, gradient_accumulation_steps: int | Output = 1, learning_rate: float | Output = 0.0002, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'linear', warmup_steps: float | Output = 0.0, weight_decay: float | Output = 0.0, max_grad_norm: float | Output = 1.0, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', compile: bool | Output = False, activation_checkpointing: bool | Output = False, strategy: Literal['ddp', 'fsdp', 'deepspeed'] | Enum | Output = 'ddp', deepspeed_stage: int | Output = 2, offload: bool | Output = False, dataloader_num_workers: int | Output = 0, logging_steps: int | Output = 10, eval_steps: int | Output = 0, save_steps: int | Output = 100, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[FinetuneLanguageModelOutputs]:
    """Fine-tunes a causal language model of Hugging Face's format on all ranks - all weights, a low-rank
    adapter (LoRA), or one on 4-bit weights (QLoRA) - on conversations, texts or prompts with
    completions, or by direct preference optimization. An evicted job resumes from its last checkpoint.
    For example: finetune_language_model(base_model=folder, data=conversations, method="lora",
    max_seq_length=2048, precision="bfloat16").

    Inputs:
        base_model: uri_folder. The model to start from - a folder as save_pretrained of Transformers
            writes it, with its tokenizer, or an MLflow model that holds one, such as this component's
            output.
        data: uri_folder. JSONL or parquet files. The columns say what the records are - messages (a
            list of role and content); text; prompt and completion; or, for objective dpo, prompt,
            chosen and rejected.
        validation_data: uri_folder, optional. Held-out records, of the same columns as data.
        deepspeed: uri_file, optional. For deepspeed, its configuration as JSON, such as the output
            `best` of autotune_deepspeed. Its values replace the defaults of inputs, and inputs that are
            not at their defaults must agree with it. "auto" stands for the input.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training to
            resume from. An evicted job resumes from its own without it.
        chat_template: uri_file, optional. A Jinja file that renders messages. Without it, the template
            of the model's tokenizer.
        objective: string, one of sft, dpo. What is optimized. sft the likelihood of completions, dpo
            the preference of chosen over rejected ones.
        method: string, one of full, lora, qlora. What is trained. full all weights, lora an adapter,
            qlora an adapter on 4-bit weights, which needs GPUs.
        lora_r: integer, 1 to 65536. Rank of the adapter.
        lora_alpha: number, 0.001 to 65536. The adapter is scaled by lora_alpha / lora_r.
        lora_dropout: number, 0 to 0.9. Share of the adapter's input that is dropped at random in
            training.
        target_modules: string. Names of the linear layers with an adapter, separated by commas, such as
            q_proj,v_proj; or all-linear, all but the output layer.
        merge: boolean. Whether the adapter is added to the model's weights. Otherwise the model holds
            both.
        max_seq_length: integer, 2 to 1048576. Tokens after which an example is cut off. At most the
            model's positions.
        packing: boolean. Whether short examples share a sequence of max_seq_length tokens. They do not
            attend to each other.
        completion_only_loss: boolean. Whether only completions and the assistant's messages are
            learned, or prompts too.
        beta: number, 0.0001 to 1000. For dpo, how much a departure from the base model costs.
        validation_fraction: number, 0 to 0.5. Share of the data that is held out if there is no
            validation_data.
        num_train_epochs: number, 0.001 to 100000. How often each example is seen.
        max_steps: integer, -1 to 100000000. Optimizer steps; -1 for num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Examples that a rank computes at once.
        per_device_eval_batch_size: integer, 1 to 65536. Examples that a rank evaluates at once.
        gradient_accumulation_steps: integer, 1 to 65536. Batches of each rank in an optimizer step.
        learning_rate: number, 1e-08 to 1. AdamW's highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate changes after the warm-up.
        warmup_steps: number, 0 to 100000000. Steps in which the learning rate rises from 0. Below 1,
            the share of all steps.
        weight_decay: number, 0 to 1. AdamW's weight decay.
        max_grad_norm: number, 0 to 1000000. Norm to which gradients are clipped; 0 for no clipping.
        precision: string, one of auto, float32, bfloat16, float16. Precision of the computation. With
            lora, the frozen weights are held in it as well. auto: bfloat16 on GPUs that have it,
            float16 with a scaled loss on older ones (V100, T4), float32 on CPUs.
        compile: boolean. Whether the model is compiled by torch.compile.
        activation_checkpointing: boolean. Whether layers are computed again in the backward pass, which
            takes time and saves memory.
        strategy: string, one of ddp, fsdp, deepspeed. How the model is distributed over the ranks. fsdp
            and deepspeed shard it, and need GPUs.
        deepspeed_stage: integer, 0 to 3. For deepspeed, what is sharded - 0 nothing, 1 the optimizer's
            state, 2 gradients too, 3 weights too.
        offload: boolean. For fsdp and deepspeed, whether shards are kept in CPU memory.
        dataloader_num_workers: integer, 0 to 256. Processes of each rank that load batches; 0 loads
            them in the rank.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 100000000. Steps between two evaluations on held-out data; 0 evaluates
            at the end only.
        save_steps: integer, 1 to 100000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Checkpoints to keep.
        seed: integer, 0 to 4294967295. Seed of new weights, of the order of the examples, and of what
            is held out.

    Outputs:
        model: mlflow_model. An MLflow model that answers prompts. artifacts/huggingface is a folder for
            from_pretrained of Transformers.
        adapter: uri_folder. The adapter as PEFT writes it. Empty with method full.
        checkpoints: uri_folder. The Trainer's last checkpoints, from which an evicted job resumes.
        history: uri_file. JSON with loss, seconds and memory of the logged steps. compare_trainings and
            compare_scaling read it.

    allranks_finetune_language_model 0.1.0: see docs/components.md#finetune_language_model
    """

class FinetuneTextClassifierOutputs:
    model: Output
    checkpoints: Output
    history: Output

def finetune_text_classifier(*, base_model: Data, data: Data, validation_data: Data | None = None, deepspeed: Data | None = None, resume_from_checkpoint: Data | None = None, text_column: str | Output = 'text', text_pair_column: str | Output = '', label_column: str | Output = 'label', problem_type: Literal['classification', 'regression'] | Enum | Output = 'classification', max_seq_length: int | Output = 128, validation_fraction: float | Output = 0.0, num_train_epochs: float | Output = 3.0, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 8, per_device_eval_batch_size: int | Output = 8, gradient_accumulation_steps: int | Output = 1, learning_rate: float | Output = 5e-05, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'linear', warmup_steps: float | Output = 0.0, weight_decay: float | Output = 0.0, max_grad_norm: float | Output = 1.0, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', compile: bool | Output = False, activation_checkpointing: bool | Output = False, strategy: Literal['ddp', 'fsdp', 'deepspeed'] | Enum | Output = 'ddp', deepspeed_stage: int | Output = 2, offload: bool | Output = False, dataloader_num_workers: int | Output = 0, logging_steps: int | Output = 10, eval_steps: int | Output = 0, save_steps: int | Output = 100, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[FinetuneTextClassifierOutputs]:
    """Fine-tunes a model of Hugging Face's format on all ranks to classify texts or pairs of texts, or to
    predict a number for them. Any model that Transformers can classify with, such as BERT, ModernBERT,
    DeBERTa or Llama. An evicted job resumes from its last checkpoint. For example:
    finetune_text_classifier(base_model=folder, data=reviews, text_column="review",
    label_column="stars").

    Inputs:
        base_model: uri_folder. The model to start from - a folder as save_pretrained of Transformers
            writes it, with its tokenizer, or an MLflow model that holds one.
        data: uri_folder. JSONL, CSV or parquet files with a column for the text and one for the label.
        validation_data: uri_folder, optional. Held-out records, of the same columns as data.
        deepspeed: uri_file, optional. For deepspeed, its configuration as JSON, such as the output
            `best` of autotune_deepspeed. Its values replace the defaults of inputs, and inputs that are
            not at their defaults must agree with it. "auto" stands for the input.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training to
            resume from. An evicted job resumes from its own without it.
        text_column: string. The column of the text, or of the first one of a pair.
        text_pair_column: string. The column of the second text of a pair. Empty for single texts.
        label_column: string. The column of the label, a text or a number.
        problem_type: string, one of classification, regression. What a label is. Of classification a
            class, of regression a number to predict.
        max_seq_length: integer, 2 to 1048576. Tokens after which an example is cut off. At most the
            model's positions.
        validation_fraction: number, 0 to 0.5. Share of the data that is held out if there is no
            validation_data.
        num_train_epochs: number, 0.001 to 100000. How often each example is seen.
        max_steps: integer, -1 to 100000000. Optimizer steps; -1 for num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Examples that a rank computes at once.
        per_device_eval_batch_size: integer, 1 to 65536. Examples that a rank evaluates at once.
        gradient_accumulation_steps: integer, 1 to 65536. Batches of each rank in an optimizer step.
        learning_rate: number, 1e-08 to 1. AdamW's highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate changes after the warm-up.
        warmup_steps: number, 0 to 100000000. Steps in which the learning rate rises from 0. Below 1,
            the share of all steps.
        weight_decay: number, 0 to 1. AdamW's weight decay.
        max_grad_norm: number, 0 to 1000000. Norm to which gradients are clipped; 0 for no clipping.
        precision: string, one of auto, float32, bfloat16, float16. Precision of the computation. The
            weights that are kept are float32. auto: bfloat16 on GPUs that have it, float16 with a
            scaled loss on older ones (V100, T4), float32 on CPUs.
        compile: boolean. Whether the model is compiled by torch.compile.
        activation_checkpointing: boolean. Whether layers are computed again in the backward pass, which
            takes time and saves memory.
        strategy: string, one of ddp, fsdp, deepspeed. How the model is distributed over the ranks. fsdp
            and deepspeed shard it, and need GPUs.
        deepspeed_stage: integer, 0 to 3. For deepspeed, what is sharded - 0 nothing, 1 the optimizer's
            state, 2 gradients too, 3 weights too.
        offload: boolean. For fsdp and deepspeed, whether shards are kept in CPU memory.
        dataloader_num_workers: integer, 0 to 256. Processes of each rank that load batches; 0 loads
            them in the rank.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 100000000. Steps between two evaluations on held-out data; 0 evaluates
            at the end only.
        save_steps: integer, 1 to 100000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Checkpoints to keep.
        seed: integer, 0 to 4294967295. Seed of new weights, of the order of the examples, and of what
            is held out.

    Outputs:
        model: mlflow_model. An MLflow model that labels texts. artifacts/huggingface is a folder for
            from_pretrained of Transformers; its config.json names the labels.
        checkpoints: uri_folder. The Trainer's last checkpoints, from which an evicted job resumes.
        history: uri_file. JSON with loss, seconds and memory of the logged steps. compare_trainings and
            compare_scaling read it.

    allranks_finetune_text_classifier 0.1.0: see docs/components.md#finetune_text_classifier
    """

class GetChampionOutputs:
    model: Output
    champion: Output

def get_champion(*, name: str | Output) -> Step[GetChampionOutputs]:
    """Fetches the newest version of a registered model, the champion that a new model has to beat and can
    start from. Where nothing is registered under the name yet, it says so by a file no_model.json in
    place of the model. For example: get_champion(name="image-classifier").

    Inputs:
        name: string. The name under which models are registered.

    Outputs:
        model: mlflow_model. The model as it was registered, a folder with a file MLmodel, or
            no_model.json where there is none.
        champion: uri_folder. champion.json: the name, the version (null where there is none) and its
            tags.

    allranks_get_champion 0.1.0: see docs/components.md#get_champion
    """

class PreflightOutputs:
    report: Output

def preflight(*, size: str | Output | None = None) -> Step[PreflightOutputs]:
    """Checks on every rank what a training needs: the declared number of ranks, names, the master's port,
    /dev/shm, a GPU for each rank, InfiniBand, the network between the instances, and a first all-reduce
    that is right and not slow. It warns of clocks and versions that differ. It takes seconds; if a
    check fails, its table names instance and rank. Every training does the same before its first step:
    as a step of its own it tests a new cluster or size. For example:
    preflight(size="Standard_ND96asr_v4").

    Inputs:
        size: string, optional. The cluster's size, such as Standard_ND96asr_v4, whose InfiniBand is
            then expected. See allranks doctor --sizes.

    Outputs:
        report: uri_folder. preflight.json: a JSON object with each check's outcome, and the instance
            and the rank that it is about.

    allranks_preflight 0.1.0: see docs/components.md#preflight
    """

class PrepareDocstringsOutputs:
    train: Output
    validation: Output

def prepare_docstrings(*, kind: Literal['text', 'chat', 'preferences', 'labelled'] | Enum | Output = 'chat', packages: str | Output = 'asyncio,email,importlib,logging,multiprocessing,unittest', validation_fraction: float | Output = 0.1, seed: int | Output = 0) -> Step[PrepareDocstringsOutputs]:
    """Reads the documentation of packages of Python's standard library from their sources, and writes it
    as data for fine-tuning: texts, conversations of a question and its answer, preferences of a right
    over a wrong answer, and texts labelled with their package. Nothing is downloaded.

    Inputs:
        kind: string, one of text, chat, preferences, labelled. What a record is. text: {"text": ...};
            chat: {"messages": [...]}; preferences: {"prompt": [...], "chosen": [...], "rejected":
            [...]}; labelled: {"text": ..., "label": the package}.
        packages: string. Packages and modules of the standard library, separated by commas. Each is a
            label.
        validation_fraction: number, 0.001 to 0.5. Share of the documented names that is held out.
        seed: integer, 0 to any. Seed of the division: the same seed gives the same files.

    Outputs:
        train: uri_folder. train.jsonl, the records to train on.
        validation: uri_folder. validation.jsonl, the held-out records.

    allranks_prepare_docstrings 0.1.0: see docs/components.md#prepare_docstrings
    """

class PrepareImagesOutputs:
    images: Output

def prepare_images(*, folder: Data | None = None, archive: Data | None = None, source: Literal['digits', 'cifar10', 'folder'] | Enum | Output = 'digits', archive_url: str | Output = 'https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz', archive_md5: str | Output = 'c58f30108f718f92721af3b95e74349a', image_size: int | Output = 32, validation_fraction: float | Output = 0.1, test_fraction: float | Output = 0.2, seed: int | Output = 0) -> Step[PrepareImagesOutputs]:
    """Reads labelled images (scikit-learn's handwritten digits, CIFAR-10, or a folder of images), divides
    them into training, validation and test sets in which every class has its share, and writes them as
    arrays.

    Inputs:
        folder: uri_folder, optional. For source 'folder': a folder with one sub-folder of images for
            each class, in PNG, JPEG or another format that Pillow reads.
        archive: uri_file, optional. For source 'cifar10': cifar-10-python.tar.gz. Without it, it is
            downloaded from archive_url.
        source: string, one of digits, cifar10, folder. Where the images come from: scikit-learn's
            digits, CIFAR-10's python version, or a folder.
        archive_url: string. For source 'cifar10': the http(s) address of the tarball.
        archive_md5: string. For source 'cifar10': the MD5 checksum that the tarball must have,
            hexadecimal.
        image_size: integer, 8 to 512. For source 'folder': width and height in pixels of every image.
        validation_fraction: number, 0.01 to 0.4. Share of each class's images that goes to validation.
        test_fraction: number, 0.01 to 0.4. Share of each class's images that goes to the test set.
            CIFAR-10 keeps its own test set.
        seed: integer, 0 to any. Seed of the division: the same seed gives the same splits.

    Outputs:
        images: uri_folder. For each of the three splits a NumPy file of pixels (uint8, 0 to 255, of
            shape count x channels x height x width) and one of labels (int64), and dataset.json about
            them.

    allranks_prepare_images 0.1.0: see docs/components.md#prepare_images
    """

class PrepareTableOutputs:
    table: Output

def prepare_table(*, folder: Data | None = None, source: Literal['breast_cancer', 'digits', 'wine', 'diabetes', 'make_classification', 'make_regression', 'folder'] | Enum | Output = 'breast_cancer', task: Literal['classification', 'regression'] | Enum | Output = 'classification', label_column: str | Output = 'label', weight_column: str | Output | None = None, categorical_columns: str | Output | None = None, ignored_columns: str | Output | None = None, row_count: int | Output = 10000, feature_count: int | Output = 20, validation_fraction: float | Output = 0.15, test_fraction: float | Output = 0.15, seed: int | Output = 0) -> Step[PrepareTableOutputs]:
    """Reads a table (scikit-learn's, a generated one, or a folder of CSV or Parquet files), writes every
    column as numbers, and divides its rows into training, validation and test sets. It reads in
    batches, so that a table may be larger than the memory.

    Inputs:
        folder: uri_folder, optional. For source 'folder': CSV files with a header, or Parquet files.
            All have the same columns.
        source: string, one of breast_cancer, digits, wine, diabetes, make_classification,
            make_regression, folder. Where the rows come from: one of scikit-learn's tables, generated
            by scikit-learn, or a folder.
        task: string, one of classification, regression. For source 'folder': whether the label is a
            class or a number.
        label_column: string. For source 'folder': the column to predict.
        weight_column: string, optional. For source 'folder': a column with the weight of each row.
        categorical_columns: string, optional. Columns of whole numbers that are categories, separated
            by commas. Columns of texts always are.
        ignored_columns: string, optional. Columns to leave out, separated by commas, such as an id.
        row_count: integer, 10 to 100000000. For a generated table: how many rows it has.
        feature_count: integer, 4 to 10000. For a generated table: how many features it has.
        validation_fraction: number, 0.01 to 0.4. Share of the rows that goes to validation.
        test_fraction: number, 0.01 to 0.4. Share of the rows that goes to the test set.
        seed: integer, 0 to any. Seed of the division, and of a generated table.

    Outputs:
        table: uri_folder. Parquet files for each of the three splits, and table.json about their
            columns: the label, the features, the texts that the numbers of a categorical column stand
            for, and the classes.

    allranks_prepare_table 0.1.0: see docs/components.md#prepare_table
    """

class PrepareTextOutputs:
    text: Output

def prepare_text(*, folder: Data | None = None, tokenizer: Data | None = None, pattern: str | Output = '**/*', text_field: str | Output = 'text', vocabulary_size: int | Output = 2048, end_token: str | Output | None = None, validation_fraction: float | Output = 0.02, shard_tokens: int | Output = 134217728, num_workers: int | Output = 0, seed: int | Output = 0) -> Step[PrepareTextOutputs]:
    """Reads text files and JSON Lines, or the sources of Python's standard library, divides them into
    training and validation documents, and writes their tokens as shards that a training maps into
    memory. The tokenizer is an existing one, or a byte-level BPE tokenizer that is trained on the
    training documents. Memory does not grow with the corpus. The perplexity of a unigram model on the
    validation tokens comes with them: what a language model has to beat.

    Inputs:
        folder: uri_folder, optional. A folder of text files in UTF-8, and of JSON Lines (.jsonl).
            Without it, Python's standard library without its tests.
        tokenizer: uri_file, optional. A tokenizer.json to use. Without it, a tokenizer is trained.
        pattern: string. Which files are read, as a glob. Files that hold no text are left out and
            counted.
        text_field: string. The key of the text in the lines of JSON Lines.
        vocabulary_size: integer, 257 to 1000000. Tokens of a tokenizer that is trained: the 256 bytes,
            the end, and merges.
        end_token: string, optional. The token of an existing tokenizer that ends a text. By default, a
            well-known one that it has.
        validation_fraction: number, 0.0001 to 0.5. Share of the documents that goes to validation, at
            least one.
        shard_tokens: integer, 1024 to 4294967296. Tokens in a file. A large corpus needs some hundred
            files.
        num_workers: integer, 0 to 1024. Processes that tokenize. 0: one for each core.
        seed: integer, 0 to any. Seed of the division: the same seed gives the same documents.

    Outputs:
        text: uri_folder. The tokens of each split as files of unsigned integers (train-00000.bin ...),
            tokenizer.json of the library tokenizers, and description.json with counts and checksums.

    allranks_prepare_text 0.1.0: see docs/components.md#prepare_text
    """

class PromoteModelOutputs:
    registration: Output

def promote_model(*, model: Data, metrics: Data, champion: Data, selection: Data | None = None, name: str | Output, metric: str | Output = 'accuracy', goal: Literal['maximize', 'minimize'] | Enum | Output = 'maximize', margin: float | Output = 0.0, threshold: float | Output | None = None, trigger_time: str | Output | None = None, code_version: str | Output | None = None) -> Step[PromoteModelOutputs]:
    """Registers a challenger as the next version of a model if it is better than the champion on the same
    held-out data. The version's tags say what it was trained on and by what, from which version it
    started, and how both scored. A challenger that is not better leaves the registry as it is, and the
    step Completed.

    Inputs:
        model: mlflow_model. The challenger, in any of MLflow's formats: a folder with a file MLmodel.
        metrics: uri_folder. The output `metrics` of evaluating the challenger on held-out data with the
            champion as the baseline: metrics.json with the metric, and with the champion's under
            baseline.
        champion: uri_folder. The output `champion` of get_champion: champion.json with the name and the
            version.
        selection: uri_folder, optional. The output `selection` of select_new_data: selection.json, and
            trained_on.json, which is registered with the model. Without new data in it, nothing is
            registered.
        name: string. The name under which the model is registered.
        metric: string. The metric in metrics.json by which the two are compared.
        goal: string, one of maximize, minimize. Whether a higher or a lower value is better.
        margin: number, 0 to 1000000000. By how much the challenger has to be better. It has to be
            better even if the margin is 0.
        threshold: number, -1000000000 to 1000000000, optional. The least good value with which a model
            is registered, also where there is no champion. Without it, every value is good enough.
        trigger_time: string, optional. When the schedule fired, for the tags. A schedule gives it by
            the macro creation_context.trigger_time.
        code_version: string, optional. The commit of the code, for the tags. The digest of the training
            code is always there.

    Outputs:
        registration: uri_folder. registration.json: the decision with its reason, both metrics, and the
            version (null where it is none).

    allranks_promote_model 0.1.0: see docs/components.md#promote_model
    """

class RecordLaunchOutputs:
    records: Output

def record_launch(*, folder: Data, text: str | Output = 'two words, a "quote" and a $sign', number: float | Output = 0.5, flag: bool | Output = True, absent: str | Output | None = None) -> Step[RecordLaunchOutputs]:
    """Writes on every rank what the platform gave its process: variables, arguments, paths of inputs and
    outputs, user, mounts, limits, names of the instances, and the versions of packages. allranks
    verify-workspace compares the records of a workspace with those of the local engine. For example:
    record_launch(folder=data.outputs.images).

    Inputs:
        folder: uri_folder. Any folder. How it reaches a process is recorded, but none of its content.
        text: string. A text that a shell could change.
        number: number, 0 to 1. A number, whose text is recorded.
        flag: boolean. A boolean, whose text is recorded.
        absent: string, optional. An input without a value. What its argument becomes is recorded.

    Outputs:
        records: uri_folder. rank-N.HOST.PID.json for each process, a JSON object with what it was
            given. Values of secrets are left out.

    allranks_record_launch 0.1.0: see docs/components.md#record_launch
    """

class RecordLaunchMpiOutputs:
    records: Output

def record_launch_mpi(*, folder: Data, text: str | Output = 'two words, a "quote" and a $sign', number: float | Output = 0.5, flag: bool | Output = True, absent: str | Output | None = None) -> Step[RecordLaunchMpiOutputs]:
    """Writes on every rank of an MPI job what the platform and mpirun gave its process: what record_launch
    does, under the distribution mpi.

    Inputs:
        folder: uri_folder. Any folder. How it reaches a process is recorded, but none of its content.
        text: string. A text that a shell could change.
        number: number, 0 to 1. A number, whose text is recorded.
        flag: boolean. A boolean, whose text is recorded.
        absent: string, optional. An input without a value. What its argument becomes is recorded.

    Outputs:
        records: uri_folder. rank-N.HOST.PID.json for each process, a JSON object with what it was
            given. Values of secrets are left out.

    allranks_record_launch_mpi 0.1.0: see docs/components.md#record_launch_mpi
    """

class RecordLaunchRayOutputs:
    records: Output

def record_launch_ray(*, folder: Data, text: str | Output = 'two words, a "quote" and a $sign', number: float | Output = 0.5, flag: bool | Output = True, absent: str | Output | None = None) -> Step[RecordLaunchRayOutputs]:
    """Writes what the platform gave each process that it starts under the distribution ray: what
    record_launch does. It does not connect to the Ray cluster.

    Inputs:
        folder: uri_folder. Any folder. How it reaches a process is recorded, but none of its content.
        text: string. A text that a shell could change.
        number: number, 0 to 1. A number, whose text is recorded.
        flag: boolean. A boolean, whose text is recorded.
        absent: string, optional. An input without a value. What its argument becomes is recorded.

    Outputs:
        records: uri_folder. rank-N.HOST.PID.json for each process, a JSON object with what it was
            given. Values of secrets are left out.

    allranks_record_launch_ray 0.1.0: see docs/components.md#record_launch_ray
    """

class RecordLaunchSingleOutputs:
    records: Output

def record_launch_single(*, folder: Data, text: str | Output = 'two words, a "quote" and a $sign', number: float | Output = 0.5, flag: bool | Output = True, absent: str | Output | None = None) -> Step[RecordLaunchSingleOutputs]:
    """Writes what the platform gave the process of a step without a distribution: what record_launch does.

    Inputs:
        folder: uri_folder. Any folder. How it reaches a process is recorded, but none of its content.
        text: string. A text that a shell could change.
        number: number, 0 to 1. A number, whose text is recorded.
        flag: boolean. A boolean, whose text is recorded.
        absent: string, optional. An input without a value. What its argument becomes is recorded.

    Outputs:
        records: uri_folder. rank-N.HOST.PID.json for each process, a JSON object with what it was
            given. Values of secrets are left out.

    allranks_record_launch_single 0.1.0: see docs/components.md#record_launch_single
    """

class RecordLaunchTensorflowOutputs:
    records: Output

def record_launch_tensorflow(*, folder: Data, text: str | Output = 'two words, a "quote" and a $sign', number: float | Output = 0.5, flag: bool | Output = True, absent: str | Output | None = None) -> Step[RecordLaunchTensorflowOutputs]:
    """Writes on every worker what the platform gave its process, with TF_CONFIG: what record_launch does,
    under the distribution tensorflow. It does not import TensorFlow.

    Inputs:
        folder: uri_folder. Any folder. How it reaches a process is recorded, but none of its content.
        text: string. A text that a shell could change.
        number: number, 0 to 1. A number, whose text is recorded.
        flag: boolean. A boolean, whose text is recorded.
        absent: string, optional. An input without a value. What its argument becomes is recorded.

    Outputs:
        records: uri_folder. rank-N.HOST.PID.json for each process, a JSON object with what it was
            given. Values of secrets are left out.

    allranks_record_launch_tensorflow 0.1.0: see docs/components.md#record_launch_tensorflow
    """

class RegisterModelOutputs:
    registration: Output

def register_model(*, model: Data, metrics: Data, name: str | Output, metric: str | Output = 'accuracy', goal: Literal['maximize', 'minimize'] | Enum | Output = 'maximize', threshold: float | Output | None = None) -> Step[RegisterModelOutputs]:
    """Registers an MLflow model under a name, as a new version, if a metric of its evaluation reaches a
    threshold. The version carries the metric, the data and the run as tags. For example:
    register_model(model=train.outputs.model, metrics=evaluate.outputs.metrics, name="my-model",
    metric="loss", goal="minimize", threshold=2.5).

    Inputs:
        model: mlflow_model. The model, in any of MLflow's formats: a folder with a file MLmodel.
        metrics: uri_folder. The output `metrics` of an evaluation: metrics.json, an object of numbers
            by name.
        name: string. The name under which the model is registered.
        metric: string. The metric in metrics.json that decides.
        goal: string, one of maximize, minimize. Whether a higher or a lower value is better.
        threshold: number, -1000000000 to 1000000000, optional. The least good value with which a model
            is registered. Without it, every value is good enough.

    Outputs:
        registration: uri_folder. registration.json: the name, the version (null if not registered), the
            metric and its value.

    allranks_register_model 0.1.0: see docs/components.md#register_model
    """

class RunAccelerateOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_accelerate(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, config: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None, processes: int | Output = 0, mixed_precision: Literal['no', 'fp16', 'bf16'] | Enum | Output | None = None) -> Step[RunAccelerateOutputs]:
    """Runs a script of yours by accelerate launch, which starts the processes of every instance. The
    script creates an Accelerator. For example: run_accelerate(source=folder, script="train.py",
    mixed_precision="bf16").

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        config: uri_file, optional. A configuration of Accelerate as YAML, such as accelerate config
            writes it, with FSDP or DeepSpeed.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.
        processes: integer, 0 to 1024. Processes on each instance. 0 is one for each GPU, and one where
            there is none.
        mixed_precision: string, one of no, fp16, bf16, optional. The precision of the Accelerator,
            unless the script chooses another one. Without it, that of the input config, or float32.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_accelerate 0.2.0: see docs/components.md#run_accelerate
    """

class RunDeepspeedOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_deepspeed(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None, processes: int | Output = 0) -> Step[RunDeepspeedOutputs]:
    """Runs a script of yours by DeepSpeed's own launcher on every instance, with a hostfile and without
    ssh. The script calls deepspeed.initialize. For example: run_deepspeed(source=folder,
    script="train.py", arguments="--deepspeed --deepspeed_config $AZURE_ML_INPUT_file", file=config). To
    tune: autotune_deepspeed.

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.
        processes: integer, 0 to 1024. Processes on each instance. 0 is one for each GPU, and one where
            there is none.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_deepspeed 0.2.0: see docs/components.md#run_deepspeed
    """

class RunHorovodOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_horovod(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None) -> Step[RunHorovodOutputs]:
    """Runs a script of yours that calls horovod.torch.init() on every rank, which mpirun starts. For
    example: run_horovod(source=folder, script="train.py").

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_horovod 0.2.0: see docs/components.md#run_horovod
    """

class RunMpiOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_mpi(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None) -> Step[RunMpiOutputs]:
    """Runs a program of yours on every rank of an MPI job, which Open MPI's mpirun starts - a script with
    mpi4py or Horovod, or a compiled program. A rank that fails ends the others with it. For example:
    run_mpi(source=folder, script="solver", arguments="--steps 100").

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_mpi 0.2.0: see docs/components.md#run_mpi
    """

class RunPytorchOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_pytorch(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None) -> Step[RunPytorchOutputs]:
    """Runs a script of yours in every process that the platform starts: the variables of torch.distributed
    are set, and the script calls init_process_group. For example: run_pytorch(source=folder,
    script="train.py", arguments="--epochs 3").

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_pytorch 0.2.0: see docs/components.md#run_pytorch
    """

class RunRayOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_ray(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None, join_seconds: float | Output = 300.0) -> Step[RunRayOutputs]:
    """Runs a script of yours on the head of a Ray cluster that spans all instances, once every one has
    joined it. The script calls ray.init() without an address. For example: run_ray(source=folder,
    script="tune.py").

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.
        join_seconds: number, 1 to 86400. How long the instances may take to join the cluster.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_ray 0.2.0: see docs/components.md#run_ray
    """

class RunTensorflowOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_tensorflow(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None) -> Step[RunTensorflowOutputs]:
    """Runs a script of yours on every worker of a TensorFlow job, which TF_CONFIG describes, for
    MultiWorkerMirroredStrategy. For example: run_tensorflow(source=folder, script="train.py").

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_tensorflow 0.2.0: see docs/components.md#run_tensorflow
    """

class RunTensorflowParameterServerOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_tensorflow_parameter_server(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None) -> Step[RunTensorflowParameterServerOutputs]:
    """Runs a script of yours on the workers and the parameter servers of a TensorFlow job. TF_CONFIG names
    the role of each, and a server ends with the chief. For example:
    run_tensorflow_parameter_server(source=folder).

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_tensorflow_parameter_server 0.2.0: see docs/components.md#run_tensorflow_parameter_server
    """

class RunTorchrunOutputs:
    results: Output
    model: Output
    checkpoints: Output
    metrics: Output

def run_torchrun(*, source: Data | None = None, data: Data | None = None, data_2: Data | None = None, data_3: Data | None = None, file: Data | None = None, initial_model: Data | None = None, script: str | Output = 'train.py', arguments: str | Output | None = None, processes: int | Output = 0, min_instances: int | Output = 0, max_restarts: int | Output = 0) -> Step[RunTorchrunOutputs]:
    """Runs a script of yours in several processes on every instance: the platform starts one, which is
    torchrun, and torchrun starts the rest, also again after a failure. For example:
    run_torchrun(source=folder, script="train.py", processes=4, max_restarts=2).

    Inputs:
        source: uri_folder, optional. The folder with the script and what it imports. Without it, the
            script is in the code of the node.
        data: uri_folder, optional. A folder of data of any kind, which the script finds in the
            environment variable AZURE_ML_INPUT_data.
        data_2: uri_folder, optional. A second folder of data, such as the one to evaluate on, in
            AZURE_ML_INPUT_data_2.
        data_3: uri_folder, optional. A third folder of data, or checkpoints of an earlier run, in
            AZURE_ML_INPUT_data_3.
        file: uri_file, optional. A file of any kind, such as a configuration, in AZURE_ML_INPUT_file.
        initial_model: mlflow_model, optional. An MLflow model to begin with, in
            AZURE_ML_INPUT_initial_model.
        script: string. The script's path in its folder - a Python file, a shell script, or another
            program.
        arguments: string, optional. The script's arguments, split as a shell does, with double quotes.
            Variables are replaced in each process, such as $RANK, $LOCAL_RANK, $AZURE_ML_INPUT_data and
            $AZURE_ML_OUTPUT_results; $$ is a dollar sign.
        processes: integer, 0 to 1024. Processes on each instance. 0 is one for each GPU, and one where
            there is none.
        min_instances: integer, 0 to 4000. Minimum number of instances: the script starts and continues
            without the others. 0 is all. Fewer than all need max_restarts.
        max_restarts: integer, 0 to 1000. How often all processes are started again after one has
            failed.

    Outputs:
        results: uri_folder. What the script writes into the folder that the environment variable
            AZURE_ML_OUTPUT_results names.
        model: mlflow_model. An MLflow model, if the script writes one into AZURE_ML_OUTPUT_model.
            register_model takes it.
        checkpoints: uri_folder. What the script needs to resume after an eviction, in
            AZURE_ML_OUTPUT_checkpoints.
        metrics: uri_folder. metrics.json, a JSON object with a number for each metric, if the script
            writes it into AZURE_ML_OUTPUT_metrics. register_model and check_metric take it.

    allranks_run_torchrun 0.2.0: see docs/components.md#run_torchrun
    """

class SampleTextOutputs:
    text: Output

def sample_text(*, model: Data, prompt: str | Output = 'def ', samples: int | Output = 2, max_tokens: int | Output = 120, temperature: float | Output = 0.7, top_k: int | Output = 50, seed: int | Output = 0) -> Step[SampleTextOutputs]:
    """Generates several continuations of a prompt with a language model, writes and prints them. The same
    seed gives the same texts. For example: sample_text(model=train.outputs.model, prompt="def main(",
    temperature=0.5).

    Inputs:
        model: mlflow_model. The output `model` of train_language_model, or of finetune_language_model
            for a model of the type llama whose adapter is merged.
        prompt: string. What the texts begin with. It may hold no single quote, in which the command
            puts it.
        samples: integer, 1 to 1000. Texts that are written.
        max_tokens: integer, 1 to 100000. Tokens of a text at most, where the model does not end it
            before.
        temperature: number, 0 to 10. 0 takes the likeliest token each time, 1 draws as the model says,
            less than 1 more carefully.
        top_k: integer, 0 to 65536. Tokens among which each is drawn, the likeliest ones. 0 draws among
            all.
        seed: integer, 0 to any. Seed of the draws.

    Outputs:
        text: uri_file. The texts in UTF-8, a line of dashes between two.

    allranks_sample_text 0.2.0: see docs/components.md#sample_text
    """

class SelectBestOutputs:
    index: Output
    value: Output

def select_best(*, numbers: str | Output, goal: Literal['maximize', 'minimize'] | Enum | Output = 'maximize') -> Step[SelectBestOutputs]:
    """Finds the best of the numbers that the iterations of a parallel_for loop wrote, and gives its place
    in the list. Of equal numbers the first one is the best.

    Inputs:
        numbers: string. The numbers as a JSON list: a number output of a parallel_for loop.
        goal: string, one of maximize, minimize. Which number is the best.

    Outputs:
        index: integer. The place of the best number in the list, from 0.
        value: number. The best number.

    allranks_select_best 0.1.0: see docs/components.md#select_best
    """

class SelectNewDataOutputs:
    images: Output
    selection: Output

def select_new_data(*, folder: Data | None = None, champion: Data | None = None, source: Literal['digits', 'folder'] | Enum | Output = 'digits', arrived: float | Output = 1.0, image_size: int | Output = 32, validation_fraction: float | Output = 0.1, test_fraction: float | Output = 0.2, minimum_new: int | Output = 1) -> Step[SelectNewDataOutputs]:
    """Of labelled images that keep coming, selects for training those that the champion has not been
    trained on, by their content. An image's content alone also decides whether it is held out, so it is
    held out in every recurrence, and what was trained on is never tested on. For example:
    select_new_data(source="folder", folder=images).

    Inputs:
        folder: uri_folder, optional. For source 'folder': a folder with one sub-folder of images (PNG,
            JPEG and others that Pillow reads) for each class, to which images keep being added, in sub-
            folders of their own or not.
        champion: mlflow_model, optional. The output `model` of get_champion, with the file
            trained_on.json of what it was trained on. Without it, or without that file, all data is
            new.
        source: string, one of digits, folder. Where the images come from, scikit-learn's digits (to try
            it out) or a folder.
        arrived: number, 0.1 to 1. For source 'digits', the share of them that has come by now.
        image_size: integer, 8 to 512. For source 'folder', width and height in pixels of every image.
        validation_fraction: number, 0.01 to 0.4. Share of the images that training is watched by.
        test_fraction: number, 0.01 to 0.4. Share of the images that is held out, on which champion and
            challenger are compared.
        minimum_new: integer, 1 to 1000000000. Where there are fewer new training images than this, they
            wait for the next recurrence.

    Outputs:
        images: uri_folder. New training images, and all validation and test images, as prepare_images
            writes them. Where nothing is new, there is no training image.
        selection: uri_folder. selection.json: how many images are new, and versions of the data;
            trained_on.json: all training images.

    allranks_select_new_data 0.1.0: see docs/components.md#select_new_data
    """

class ShardDatasetOutputs:
    shards: Output

def shard_dataset(*, data: Data, samples_per_shard: int | Output = 1000, seed: int | Output = 0, verify: bool | Output = True) -> Step[ShardDatasetOutputs]:
    """Writes labelled images, or a folder of any files, as WebDataset shards that trainings stream, each
    rank a part of the shards. The shards depend on the data and the seed, not on the number of ranks.
    For example: shard_dataset(data=photographs, samples_per_shard=2000).

    Inputs:
        data: uri_folder. Arrays, as prepare_images writes them; a folder of image files,
            SPLIT/CLASS/NAME.jpg, of the splits train, validation and test; or a folder of any files, of
            which those with the same name up to the first dot are one sample of the split train.
        samples_per_shard: integer, 1 to 10000000. Samples in a tar file. There should be as many files
            as loader processes on all ranks, or more.
        seed: integer, 0 to 4294967295. Seed of the order in which samples are written.
        verify: boolean. Whether every image file is decoded, so that a damaged one is found here.

    Outputs:
        shards: uri_folder. SPLIT-000000.tar and so on, and index.json with the classes and each shard's
            split, number of samples, size and SHA-256 checksum.

    allranks_shard_dataset 0.1.0: see docs/components.md#shard_dataset
    """

class TrainGradientBoostingOutputs:
    model: Output
    checkpoints: Output
    history: Output
    feature_importance: Output

def train_gradient_boosting(*, data: Data, resume_from_checkpoint: Data | None = None, initial_model: Data | None = None, label_column: str | Output | None = None, weight_column: str | Output | None = None, categorical_columns: str | Output | None = None, ignored_columns: str | Output | None = None, objective: Literal['auto', 'binary', 'multiclass', 'regression', 'regression_l1', 'poisson'] | Enum | Output = 'auto', tree_learner: Literal['data', 'voting'] | Enum | Output = 'data', num_iterations: int | Output = 200, learning_rate: float | Output = 0.1, num_leaves: int | Output = 31, max_depth: int | Output = -1, min_data_in_leaf: int | Output = 20, feature_fraction: float | Output = 1.0, bagging_fraction: float | Output = 1.0, bagging_freq: int | Output = 0, lambda_l1: float | Output = 0.0, lambda_l2: float | Output = 0.0, max_bin: int | Output = 255, params: str | Output | None = None, metric: Literal['auto', 'auc', 'accuracy', 'macro_f1', 'log_loss', 'rmse', 'mae'] | Enum | Output = 'auto', early_stopping_round: int | Output = 0, eval_steps: int | Output = 10, save_steps: int | Output = 50, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainGradientBoostingOutputs]:
    """Trains gradient boosted trees with LightGBM, on one instance or on many: every rank reads its share
    of the rows, and the ranks exchange histograms over sockets. It needs no GPU. An evicted job resumes
    from its last checkpoint. For example: train_gradient_boosting(data=prepare.outputs.table,
    num_iterations=500, early_stopping_round=50).

    Inputs:
        data: uri_folder. The table, as prepare_table writes it; or a folder with the sub-folders train
            and validation, each with Parquet or CSV files of numbers, and the columns named below.
            Parquet is read by row groups, CSV by files.
        resume_from_checkpoint: uri_folder, optional. The output checkpoints of another training to
            resume from, if this one has no checkpoints of its own.
        initial_model: mlflow_model, optional. A model of the same features in MLflow's LightGBM flavor,
            to which trees are added.
        label_column: string, optional. The column to predict. By default that of table.json. Classes
            are whole numbers from 0.
        weight_column: string, optional. A column with the weight of each row. By default that of
            table.json.
        categorical_columns: string, optional. Columns of whole numbers that stand for categories,
            separated by commas, beside those of table.json.
        ignored_columns: string, optional. Without table.json, columns that are not features, separated
            by commas.
        objective: string, one of auto, binary, multiclass, regression, regression_l1, poisson. What is
            minimised. auto follows from the classes in table.json.
        tree_learner: string, one of data, voting. How the ranks share the work. data: each has a share
            of the rows, and all histograms are added up. voting: only those of the features that most
            ranks find best, for many features and a slow network.
        num_iterations: integer, 1 to 1000000. Trees, of several classes for each class.
        learning_rate: number, 1e-05 to 1. By which every tree is multiplied.
        num_leaves: integer, 2 to 131072. Most leaves of a tree.
        max_depth: integer, -1 to 1000. Largest depth of a tree. -1 for any.
        min_data_in_leaf: integer, 0 to 10000000. Fewest rows of a leaf, over all ranks.
        feature_fraction: number, 0.01 to 1. Share of the features that each tree chooses from.
        bagging_fraction: number, 0.01 to 1. Share of the rows that a tree is made from, where
            bagging_freq is not 0.
        bagging_freq: integer, 0 to 1000000. After how many iterations other rows are drawn. 0 takes all
            rows.
        lambda_l1: number, 0 to 1000000. L1 regularisation.
        lambda_l2: number, 0 to 1000000. L2 regularisation.
        max_bin: integer, 2 to 65535. Most bins of a feature. Fewer are faster, and less to exchange.
        params: string, optional. Other parameters of LightGBM, such as "path_smooth=1
            extra_trees=true".
        metric: string, one of auto, auc, accuracy, macro_f1, log_loss, rmse, mae. The metric of the
            validation rows of all ranks that decides about early stopping. auto: auc of two classes,
            log_loss of more, rmse of a regression.
        early_stopping_round: integer, 0 to 1000000. Iterations without a better metric after which the
            training ends, with the best model. 0 for never.
        eval_steps: integer, 1 to 1000000. Iterations between two evaluations.
        save_steps: integer, 0 to 1000000. Iterations between two checkpoints. 0 saves only at the end
            and at an eviction.
        save_total_limit: integer, 0 to 1000. Checkpoints to keep, the newest ones. 0 keeps all.
        seed: integer, 0 to 2147483647. Seed of what LightGBM draws.

    Outputs:
        model: mlflow_model. The trees in MLflow's LightGBM flavor. It takes the features as columns of
            numbers and gives a probability for each class (of two classes only for the second), or a
            number.
        checkpoints: uri_folder. The last checkpoints, from which a training can resume with any number
            of ranks.
        history: uri_file. JSON with the loss, the seconds and the CPU seconds of the iterations.
            compare_scaling reads it.
        feature_importance: uri_file. JSON with the gain and the number of splits of each feature.

    allranks_train_gradient_boosting 0.1.0: see docs/components.md#train_gradient_boosting
    """

class TrainImageClassifierOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_image_classifier(*, data: Data, initial_model: Data | None = None, pretrained_model: Data | None = None, resume_from_checkpoint: Data | None = None, model: Literal['resnet_micro', 'convnextv2_micro', 'resnet18', 'resnet50', 'convnextv2_tiny', 'convnextv2_base', 'vit_small', 'vit_base', 'vit_large', 'swin_tiny', 'swin_base'] | Enum | Output = 'resnet50', image_size: int | Output = 0, drop_path_rate: float | Output | None = None, num_train_epochs: int | Output = 8, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 32, per_device_eval_batch_size: int | Output = 64, gradient_accumulation_steps: int | Output = 1, optim: Literal['adamw_torch', 'sgd'] | Enum | Output = 'adamw_torch', learning_rate: float | Output = 0.001, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_ratio: float | Output = 0.1, warmup_steps: int | Output = 0, weight_decay: float | Output = 0.01, max_grad_norm: float | Output = 0.0, label_smoothing_factor: float | Output = 0.0, ema_decay: float | Output = 0.0, min_crop_scale: float | Output = 1.0, max_shift: int | Output = 0, horizontal_flip: bool | Output = False, auto_augment: Literal['none', 'trivialaugment', 'randaugment'] | Enum | Output = 'none', mixup_alpha: float | Output = 0.0, cutmix_alpha: float | Output = 0.0, augment_on: Literal['worker', 'device'] | Enum | Output = 'worker', dataloader_num_workers: int | Output = 0, dataloader_drop_last: bool | Output = False, shuffle_window: int | Output = 1000, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', tf32: bool | Output = False, compile: bool | Output = False, channels_last: bool | Output = False, sync_batchnorm: bool | Output = False, activation_checkpointing: bool | Output = False, seed: int | Output = 0, logging_steps: int | Output = 10, eval_steps: int | Output = 0, save_steps: int | Output = 500, save_total_limit: int | Output = 2, strategy: Literal['ddp', 'fsdp'] | Enum | Output = 'ddp', offload: bool | Output = False) -> Step[TrainImageClassifierOutputs]:
    """Trains a classifier of images on all ranks with PyTorch - ResNet, ConvNeXt V2, ViT or Swin, as
    Transformers has them - from prepared arrays, folders of image files or WebDataset shards, by
    DistributedDataParallel or FSDP; train_image_classifier_deepspeed and train_image_classifier_horovod
    are the same by those. An evicted job resumes from its last checkpoint. For example:
    train_image_classifier(data=images, model="convnextv2_tiny", precision="bfloat16").

    Inputs:
        data: uri_folder. Labelled images in one of three forms. Arrays, as prepare_images writes them.
            A folder of image files, SPLIT/CLASS/NAME.jpg, of the splits train and, if there are,
            validation and test. WebDataset shards with index.json, as shard_dataset writes them, which
            are streamed; for more than about 100,000 images.
        initial_model: mlflow_model, optional. The output `model` of this component to start from,
            instead of random weights. Its head is new if the classes differ. no_model.json in its place
            stands for none. If there is no training image, this model is passed on.
        pretrained_model: uri_folder, optional. A folder with config.json and weights of an image model,
            as save_pretrained of Transformers writes it, to start from. Its architecture is used, not
            `model`. Its head is new if the classes differ.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training to
            resume, with any number of ranks, if this one has none yet. It has to have one.
        model: string, one of resnet_micro, convnextv2_micro, resnet18, resnet50, convnextv2_tiny,
            convnextv2_base, vit_small, vit_base, vit_large, swin_tiny, swin_base. The architecture,
            with random weights. The micro models are for images of 8 to 64 pixels.
        image_size: integer, 0 to 4096. Height and width in pixels that the model computes with. Arrays
            are resized to it inside of the model, files when they are decoded. 0 for the size of the
            arrays, and for 224 with files.
        drop_path_rate: number, 0 to 0.9, optional. Stochastic depth of ConvNeXt V2 and Swin. Without
            it, the architecture's default (0.0 and 0.1).
        num_train_epochs: integer, 1 to 100000. Passes over the training images.
        max_steps: integer, -1 to 100000000. Optimizer steps, instead of num_train_epochs. -1 for
            num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Images of a rank in a forward and backward
            pass.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a rank in a forward pass of the
            validation.
        gradient_accumulation_steps: integer, 1 to 65536. Backward passes per optimizer step.
        optim: string, one of adamw_torch, sgd. AdamW, or SGD with a Nesterov momentum of 0.9.
        learning_rate: number, 1e-08 to 100. The highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate falls after the warm-up. constant has no warm-up.
        warmup_ratio: number, 0 to 0.99. Share of the steps in which the learning rate rises linearly to
            its highest value.
        warmup_steps: integer, 0 to 100000000. Steps in which it rises, instead of warmup_ratio, fewer
            than all. 0 for warmup_ratio.
        weight_decay: number, 0 to 10. Weight decay of all weights but biases and those of
            normalization.
        max_grad_norm: number, 0 to 1000000. Maximum L2 norm of the gradient of all parameters. 0 for no
            clipping.
        label_smoothing_factor: number, 0 to 0.99. Probability that the targets give to the other
            classes together.
        ema_decay: number, 0 to 0.999999. Decay per step of an exponential moving average of the
            weights, which is then what is validated and written. 0 for none.
        min_crop_scale: number, 0.01 to 1. Smallest share of an image's area that a random resized crop
            takes. 1 for no random crop.
        max_shift: integer, 0 to 512. Pixels by which a training image is shifted at random in each
            direction.
        horizontal_flip: boolean. Whether training images are mirrored at random. Good for photographs,
            wrong for digits.
        auto_augment: string, one of none, trivialaugment, randaugment. A policy of random operations on
            training images.
        mixup_alpha: number, 0 to 10. Parameter of the distribution of mixup's shares. 0 for no mixup.
        cutmix_alpha: number, 0 to 10. Parameter of the distribution of CutMix's shares. 0 for no
            CutMix. With mixup, each batch has one of both.
        augment_on: string, one of worker, device. Where images are changed, by the loader's processes
            or on the rank's device. The results are the same.
        dataloader_num_workers: integer, 0 to 256. Processes per rank that read, decode and change
            images. 0 for the training's own process.
        dataloader_drop_last: boolean. Whether the last images of an epoch are left out if they do not
            fill a batch.
        shuffle_window: integer, 1 to 1000000. For shards, consecutive samples of a shard that are
            shuffled together. Each loader process holds as many image files in memory. The shards are
            shuffled too.
        precision: string, one of auto, float32, bfloat16, float16. What is computed in. The weights
            that are updated and written are float32. auto: bfloat16 on GPUs that have it, float16 with
            a scaled loss on older ones (V100, T4), float32 on CPUs.
        tf32: boolean. Whether float32 matrix products are computed in TF32 on GPUs that have it. CPUs
            ignore it, with a note.
        compile: boolean. Whether the model's blocks are compiled with torch.compile.
        channels_last: boolean. Whether images are in the memory format channels_last, which is faster
            for convolutions on GPUs. So are the weights, if they are not sharded.
        sync_batchnorm: boolean. Whether batch normalization computes its statistics over all ranks.
            GPUs only.
        activation_checkpointing: boolean. Whether blocks are computed again in the backward pass, which
            takes time and saves memory.
        seed: integer, 0 to 4294967295. Seed of the first weights, of the order of the images and of
            their random changes.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 100000000. Steps between two validations. 0 for one at the end of each
            epoch. There is one after the last step.
        save_steps: integer, 1 to 100000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Newest checkpoints that are kept, besides the one with the
            best validation accuracy.
        strategy: string, one of ddp, fsdp. How the model is distributed over the ranks, by PyTorch's
            DistributedDataParallel or fully_shard.
        offload: boolean. For fsdp, whether GPUs store their shards in CPU memory.

    Outputs:
        model: mlflow_model. The trained model in MLflow's PyTorch flavor, which loads without this
            code. It takes pixels (uint8, 0 to 255, of shape count x channels x height x width) and
            gives a score for each class (float32, of shape count x classes). Its metadata has the
            classes, the size of the images, and the configuration of the network.
        checkpoints: uri_folder. The last checkpoints, and the one with the best validation accuracy. A
            training resumes from the last one with any number of ranks. Each validation makes one.
        history: uri_file. JSON with loss, seconds, images and memory of the logged steps.
            compare_scaling reads it.

    allranks_train_image_classifier 0.1.0: see docs/components.md#train_image_classifier
    """

class TrainImageClassifierDeepspeedOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_image_classifier_deepspeed(*, data: Data, initial_model: Data | None = None, pretrained_model: Data | None = None, resume_from_checkpoint: Data | None = None, deepspeed: Data | None = None, model: Literal['resnet_micro', 'convnextv2_micro', 'resnet18', 'resnet50', 'convnextv2_tiny', 'convnextv2_base', 'vit_small', 'vit_base', 'vit_large', 'swin_tiny', 'swin_base'] | Enum | Output = 'resnet50', image_size: int | Output = 0, drop_path_rate: float | Output | None = None, num_train_epochs: int | Output = 8, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 32, per_device_eval_batch_size: int | Output = 64, gradient_accumulation_steps: int | Output = 1, optim: Literal['adamw_torch', 'sgd'] | Enum | Output = 'adamw_torch', learning_rate: float | Output = 0.001, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_ratio: float | Output = 0.1, warmup_steps: int | Output = 0, weight_decay: float | Output = 0.01, max_grad_norm: float | Output = 0.0, label_smoothing_factor: float | Output = 0.0, ema_decay: float | Output = 0.0, min_crop_scale: float | Output = 1.0, max_shift: int | Output = 0, horizontal_flip: bool | Output = False, auto_augment: Literal['none', 'trivialaugment', 'randaugment'] | Enum | Output = 'none', mixup_alpha: float | Output = 0.0, cutmix_alpha: float | Output = 0.0, augment_on: Literal['worker', 'device'] | Enum | Output = 'worker', dataloader_num_workers: int | Output = 0, dataloader_drop_last: bool | Output = False, shuffle_window: int | Output = 1000, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', tf32: bool | Output = False, compile: bool | Output = False, channels_last: bool | Output = False, sync_batchnorm: bool | Output = False, activation_checkpointing: bool | Output = False, seed: int | Output = 0, logging_steps: int | Output = 10, eval_steps: int | Output = 0, save_steps: int | Output = 500, save_total_limit: int | Output = 2, strategy: Literal['ddp', 'fsdp', 'deepspeed'] | Enum | Output = 'deepspeed', offload: bool | Output = False, deepspeed_stage: int | Output = 2) -> Step[TrainImageClassifierDeepspeedOutputs]:
    """Trains a classifier of images on all ranks with PyTorch and DeepSpeed's ZeRO: what
    train_image_classifier does, with the same inputs and those of DeepSpeed. For example:
    train_image_classifier_deepspeed(data=prepare.outputs.images, model="vit_large", deepspeed_stage=3).

    Inputs:
        data: uri_folder. Labelled images in one of three forms. Arrays, as prepare_images writes them.
            A folder of image files, SPLIT/CLASS/NAME.jpg, of the splits train and, if there are,
            validation and test. WebDataset shards with index.json, as shard_dataset writes them, which
            are streamed; for more than about 100,000 images.
        initial_model: mlflow_model, optional. The output `model` of this component to start from,
            instead of random weights. Its head is new if the classes differ. no_model.json in its place
            stands for none. If there is no training image, this model is passed on.
        pretrained_model: uri_folder, optional. A folder with config.json and weights of an image model,
            as save_pretrained of Transformers writes it, to start from. Its architecture is used, not
            `model`. Its head is new if the classes differ.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training to
            resume, with any number of ranks, if this one has none yet. It has to have one.
        deepspeed: uri_file, optional. For deepspeed, its configuration as JSON, such as the output
            `best` of autotune_deepspeed. Its values replace the defaults of inputs, and inputs that are
            not at their defaults must agree with it. "auto" stands for the input.
        model: string, one of resnet_micro, convnextv2_micro, resnet18, resnet50, convnextv2_tiny,
            convnextv2_base, vit_small, vit_base, vit_large, swin_tiny, swin_base. The architecture,
            with random weights. The micro models are for images of 8 to 64 pixels.
        image_size: integer, 0 to 4096. Height and width in pixels that the model computes with. Arrays
            are resized to it inside of the model, files when they are decoded. 0 for the size of the
            arrays, and for 224 with files.
        drop_path_rate: number, 0 to 0.9, optional. Stochastic depth of ConvNeXt V2 and Swin. Without
            it, the architecture's default (0.0 and 0.1).
        num_train_epochs: integer, 1 to 100000. Passes over the training images.
        max_steps: integer, -1 to 100000000. Optimizer steps, instead of num_train_epochs. -1 for
            num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Images of a rank in a forward and backward
            pass.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a rank in a forward pass of the
            validation.
        gradient_accumulation_steps: integer, 1 to 65536. Backward passes per optimizer step.
        optim: string, one of adamw_torch, sgd. AdamW, or SGD with a Nesterov momentum of 0.9.
        learning_rate: number, 1e-08 to 100. The highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate falls after the warm-up. constant has no warm-up.
        warmup_ratio: number, 0 to 0.99. Share of the steps in which the learning rate rises linearly to
            its highest value.
        warmup_steps: integer, 0 to 100000000. Steps in which it rises, instead of warmup_ratio, fewer
            than all. 0 for warmup_ratio.
        weight_decay: number, 0 to 10. Weight decay of all weights but biases and those of
            normalization.
        max_grad_norm: number, 0 to 1000000. Maximum L2 norm of the gradient of all parameters. 0 for no
            clipping.
        label_smoothing_factor: number, 0 to 0.99. Probability that the targets give to the other
            classes together.
        ema_decay: number, 0 to 0.999999. Decay per step of an exponential moving average of the
            weights, which is then what is validated and written. 0 for none.
        min_crop_scale: number, 0.01 to 1. Smallest share of an image's area that a random resized crop
            takes. 1 for no random crop.
        max_shift: integer, 0 to 512. Pixels by which a training image is shifted at random in each
            direction.
        horizontal_flip: boolean. Whether training images are mirrored at random. Good for photographs,
            wrong for digits.
        auto_augment: string, one of none, trivialaugment, randaugment. A policy of random operations on
            training images.
        mixup_alpha: number, 0 to 10. Parameter of the distribution of mixup's shares. 0 for no mixup.
        cutmix_alpha: number, 0 to 10. Parameter of the distribution of CutMix's shares. 0 for no
            CutMix. With mixup, each batch has one of both.
        augment_on: string, one of worker, device. Where images are changed, by the loader's processes
            or on the rank's device. The results are the same.
        dataloader_num_workers: integer, 0 to 256. Processes per rank that read, decode and change
            images. 0 for the training's own process.
        dataloader_drop_last: boolean. Whether the last images of an epoch are left out if they do not
            fill a batch.
        shuffle_window: integer, 1 to 1000000. For shards, consecutive samples of a shard that are
            shuffled together. Each loader process holds as many image files in memory. The shards are
            shuffled too.
        precision: string, one of auto, float32, bfloat16, float16. What is computed in. The weights
            that are updated and written are float32. auto: bfloat16 on GPUs that have it, float16 with
            a scaled loss on older ones (V100, T4), float32 on CPUs.
        tf32: boolean. Whether float32 matrix products are computed in TF32 on GPUs that have it. CPUs
            ignore it, with a note.
        compile: boolean. Whether the model's blocks are compiled with torch.compile.
        channels_last: boolean. Whether images are in the memory format channels_last, which is faster
            for convolutions on GPUs. So are the weights, if they are not sharded.
        sync_batchnorm: boolean. Whether batch normalization computes its statistics over all ranks.
            GPUs only.
        activation_checkpointing: boolean. Whether blocks are computed again in the backward pass, which
            takes time and saves memory.
        seed: integer, 0 to 4294967295. Seed of the first weights, of the order of the images and of
            their random changes.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 100000000. Steps between two validations. 0 for one at the end of each
            epoch. There is one after the last step.
        save_steps: integer, 1 to 100000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Newest checkpoints that are kept, besides the one with the
            best validation accuracy.
        strategy: string, one of ddp, fsdp, deepspeed. How the model is distributed over the ranks, by
            PyTorch's DistributedDataParallel or fully_shard, or by DeepSpeed.
        offload: boolean. For fsdp and deepspeed, whether GPUs store their shards in CPU memory.
        deepspeed_stage: integer, 0 to 3. For deepspeed, what is sharded - 0 nothing, 1 the optimizer's
            state, 2 also gradients, 3 also weights.

    Outputs:
        model: mlflow_model. The trained model in MLflow's PyTorch flavor, which loads without this
            code. It takes pixels (uint8, 0 to 255, of shape count x channels x height x width) and
            gives a score for each class (float32, of shape count x classes). Its metadata has the
            classes, the size of the images, and the configuration of the network.
        checkpoints: uri_folder. The last checkpoints, and the one with the best validation accuracy. A
            training resumes from the last one with any number of ranks. Each validation makes one.
        history: uri_file. JSON with loss, seconds, images and memory of the logged steps.
            compare_scaling reads it.

    allranks_train_image_classifier_deepspeed 0.1.0: see docs/components.md#train_image_classifier_deepspeed
    """

class TrainImageClassifierHorovodOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_image_classifier_horovod(*, data: Data, initial_model: Data | None = None, pretrained_model: Data | None = None, resume_from_checkpoint: Data | None = None, model: Literal['resnet_micro', 'convnextv2_micro', 'resnet18', 'resnet50', 'convnextv2_tiny', 'convnextv2_base', 'vit_small', 'vit_base', 'vit_large', 'swin_tiny', 'swin_base'] | Enum | Output = 'resnet50', image_size: int | Output = 0, drop_path_rate: float | Output | None = None, num_train_epochs: int | Output = 8, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 32, per_device_eval_batch_size: int | Output = 64, gradient_accumulation_steps: int | Output = 1, optim: Literal['adamw_torch', 'sgd'] | Enum | Output = 'adamw_torch', learning_rate: float | Output = 0.001, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_ratio: float | Output = 0.1, warmup_steps: int | Output = 0, weight_decay: float | Output = 0.01, max_grad_norm: float | Output = 0.0, label_smoothing_factor: float | Output = 0.0, ema_decay: float | Output = 0.0, min_crop_scale: float | Output = 1.0, max_shift: int | Output = 0, horizontal_flip: bool | Output = False, auto_augment: Literal['none', 'trivialaugment', 'randaugment'] | Enum | Output = 'none', mixup_alpha: float | Output = 0.0, cutmix_alpha: float | Output = 0.0, augment_on: Literal['worker', 'device'] | Enum | Output = 'worker', dataloader_num_workers: int | Output = 0, dataloader_drop_last: bool | Output = False, shuffle_window: int | Output = 1000, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', tf32: bool | Output = False, compile: bool | Output = False, channels_last: bool | Output = False, sync_batchnorm: bool | Output = False, activation_checkpointing: bool | Output = False, seed: int | Output = 0, logging_steps: int | Output = 10, eval_steps: int | Output = 0, save_steps: int | Output = 500, save_total_limit: int | Output = 2, strategy: Literal['ddp', 'fsdp', 'horovod'] | Enum | Output = 'horovod', offload: bool | Output = False) -> Step[TrainImageClassifierHorovodOutputs]:
    """Trains a classifier of images on all ranks with PyTorch and Horovod, which mpirun starts: what
    train_image_classifier does, with the same inputs. For example:
    train_image_classifier_horovod(data=prepare.outputs.images, num_train_epochs=20).

    Inputs:
        data: uri_folder. Labelled images in one of three forms. Arrays, as prepare_images writes them.
            A folder of image files, SPLIT/CLASS/NAME.jpg, of the splits train and, if there are,
            validation and test. WebDataset shards with index.json, as shard_dataset writes them, which
            are streamed; for more than about 100,000 images.
        initial_model: mlflow_model, optional. The output `model` of this component to start from,
            instead of random weights. Its head is new if the classes differ. no_model.json in its place
            stands for none. If there is no training image, this model is passed on.
        pretrained_model: uri_folder, optional. A folder with config.json and weights of an image model,
            as save_pretrained of Transformers writes it, to start from. Its architecture is used, not
            `model`. Its head is new if the classes differ.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training to
            resume, with any number of ranks, if this one has none yet. It has to have one.
        model: string, one of resnet_micro, convnextv2_micro, resnet18, resnet50, convnextv2_tiny,
            convnextv2_base, vit_small, vit_base, vit_large, swin_tiny, swin_base. The architecture,
            with random weights. The micro models are for images of 8 to 64 pixels.
        image_size: integer, 0 to 4096. Height and width in pixels that the model computes with. Arrays
            are resized to it inside of the model, files when they are decoded. 0 for the size of the
            arrays, and for 224 with files.
        drop_path_rate: number, 0 to 0.9, optional. Stochastic depth of ConvNeXt V2 and Swin. Without
            it, the architecture's default (0.0 and 0.1).
        num_train_epochs: integer, 1 to 100000. Passes over the training images.
        max_steps: integer, -1 to 100000000. Optimizer steps, instead of num_train_epochs. -1 for
            num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Images of a rank in a forward and backward
            pass.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a rank in a forward pass of the
            validation.
        gradient_accumulation_steps: integer, 1 to 65536. Backward passes per optimizer step.
        optim: string, one of adamw_torch, sgd. AdamW, or SGD with a Nesterov momentum of 0.9.
        learning_rate: number, 1e-08 to 100. The highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate falls after the warm-up. constant has no warm-up.
        warmup_ratio: number, 0 to 0.99. Share of the steps in which the learning rate rises linearly to
            its highest value.
        warmup_steps: integer, 0 to 100000000. Steps in which it rises, instead of warmup_ratio, fewer
            than all. 0 for warmup_ratio.
        weight_decay: number, 0 to 10. Weight decay of all weights but biases and those of
            normalization.
        max_grad_norm: number, 0 to 1000000. Maximum L2 norm of the gradient of all parameters. 0 for no
            clipping.
        label_smoothing_factor: number, 0 to 0.99. Probability that the targets give to the other
            classes together.
        ema_decay: number, 0 to 0.999999. Decay per step of an exponential moving average of the
            weights, which is then what is validated and written. 0 for none.
        min_crop_scale: number, 0.01 to 1. Smallest share of an image's area that a random resized crop
            takes. 1 for no random crop.
        max_shift: integer, 0 to 512. Pixels by which a training image is shifted at random in each
            direction.
        horizontal_flip: boolean. Whether training images are mirrored at random. Good for photographs,
            wrong for digits.
        auto_augment: string, one of none, trivialaugment, randaugment. A policy of random operations on
            training images.
        mixup_alpha: number, 0 to 10. Parameter of the distribution of mixup's shares. 0 for no mixup.
        cutmix_alpha: number, 0 to 10. Parameter of the distribution of CutMix's shares. 0 for no
            CutMix. With mixup, each batch has one of both.
        augment_on: string, one of worker, device. Where images are changed, by the loader's processes
            or on the rank's device. The results are the same.
        dataloader_num_workers: integer, 0 to 256. Processes per rank that read, decode and change
            images. 0 for the training's own process.
        dataloader_drop_last: boolean. Whether the last images of an epoch are left out if they do not
            fill a batch.
        shuffle_window: integer, 1 to 1000000. For shards, consecutive samples of a shard that are
            shuffled together. Each loader process holds as many image files in memory. The shards are
            shuffled too.
        precision: string, one of auto, float32, bfloat16, float16. What is computed in. The weights
            that are updated and written are float32. auto: bfloat16 on GPUs that have it, float16 with
            a scaled loss on older ones (V100, T4), float32 on CPUs.
        tf32: boolean. Whether float32 matrix products are computed in TF32 on GPUs that have it. CPUs
            ignore it, with a note.
        compile: boolean. Whether the model's blocks are compiled with torch.compile.
        channels_last: boolean. Whether images are in the memory format channels_last, which is faster
            for convolutions on GPUs. So are the weights, if they are not sharded.
        sync_batchnorm: boolean. Whether batch normalization computes its statistics over all ranks.
            GPUs only.
        activation_checkpointing: boolean. Whether blocks are computed again in the backward pass, which
            takes time and saves memory.
        seed: integer, 0 to 4294967295. Seed of the first weights, of the order of the images and of
            their random changes.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 100000000. Steps between two validations. 0 for one at the end of each
            epoch. There is one after the last step.
        save_steps: integer, 1 to 100000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Newest checkpoints that are kept, besides the one with the
            best validation accuracy.
        strategy: string, one of ddp, fsdp, horovod. How the model is distributed over the ranks, by
            PyTorch's DistributedDataParallel or fully_shard, or by Horovod.
        offload: boolean. For fsdp, whether GPUs store their shards in CPU memory.

    Outputs:
        model: mlflow_model. The trained model in MLflow's PyTorch flavor, which loads without this
            code. It takes pixels (uint8, 0 to 255, of shape count x channels x height x width) and
            gives a score for each class (float32, of shape count x classes). Its metadata has the
            classes, the size of the images, and the configuration of the network.
        checkpoints: uri_folder. The last checkpoints, and the one with the best validation accuracy. A
            training resumes from the last one with any number of ranks. Each validation makes one.
        history: uri_file. JSON with loss, seconds, images and memory of the logged steps.
            compare_scaling reads it.

    allranks_train_image_classifier_horovod 0.1.0: see docs/components.md#train_image_classifier_horovod
    """

class TrainLanguageModelOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_language_model(*, data: Data, initial_model: Data | None = None, resume_from_checkpoint: Data | None = None, deepspeed: Data | None = None, model_size: Literal['3M', '30M', '124M', '350M', '1B', '3B', '7B'] | Enum | Output = '3M', max_seq_length: int | Output | None = None, hidden_size: int | Output | None = None, num_hidden_layers: int | Output | None = None, num_attention_heads: int | Output | None = None, num_key_value_heads: int | Output | None = None, intermediate_size: int | Output | None = None, num_train_epochs: float | Output = 1.0, max_steps: int | Output = -1, per_device_train_batch_size: int | Output | None = None, per_device_eval_batch_size: int | Output = 8, gradient_accumulation_steps: int | Output | None = None, learning_rate: float | Output | None = None, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_steps: int | Output | None = None, min_lr_ratio: float | Output = 0.1, weight_decay: float | Output = 0.1, max_grad_norm: float | Output | None = None, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output | None = None, tf32: bool | Output = True, compile: bool | Output = False, activation_checkpointing: bool | Output = False, strategy: Literal['ddp', 'fsdp', 'deepspeed'] | Enum | Output = 'ddp', shard_group_size: int | Output | None = None, deepspeed_stage: int | Output | None = None, offload: bool | Output = False, dataloader_num_workers: int | Output = 0, verify_data: bool | Output = True, logging_steps: int | Output = 10, eval_steps: int | Output = 0, max_eval_samples: int | Output = -1, save_steps: int | Output = 500, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainLanguageModelOutputs]:
    """Trains a GPT from 3 million to 7 billion parameters on all ranks with PyTorch, by
    DistributedDataParallel, FSDP or DeepSpeed. The model has the format of Llama in Transformers. An
    evicted job resumes from its last checkpoint. For example:
    train_language_model(data=prepare.outputs.text, model_size="124M", strategy="fsdp",
    precision="bfloat16").

    Inputs:
        data: uri_folder. The output `text` of prepare_text. It is downloaded to each instance, because
            sequences are read in random order; a corpus that is larger than the disk can be mounted
            instead (mode ro_mount).
        initial_model: mlflow_model, optional. The output `model` of an earlier training, whose weights
            and shape this one starts with.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training of
            this component, to resume from if this one has none of its own yet.
        deepspeed: uri_file, optional. For deepspeed, its configuration as JSON, such as the output
            `best` of autotune_deepspeed. Its values replace the defaults of inputs, and inputs that are
            not at their defaults must agree with it. "auto" stands for the input.
        model_size: string, one of 3M, 30M, 124M, 350M, 1B, 3B, 7B. Number of parameters. hidden_size x
            num_hidden_layers, max_seq_length - 3M 256 x 3, 128; 30M 512 x 8, 512; 124M 768 x 12, 1024;
            350M 1024 x 24, 1024; 1B 2048 x 22, 2048; 3B 3072 x 28, 4096; 7B 4096 x 32, 4096.
        max_seq_length: integer, 1 to 1048576, optional. Tokens of a sequence. By default that of
            model_size.
        hidden_size: integer, 2 to 65536, optional. Embedding dimension. By default that of model_size.
        num_hidden_layers: integer, 1 to 1024, optional. Number of blocks. By default that of
            model_size.
        num_attention_heads: integer, 1 to 1024, optional. Attention heads of a block. By default those
            of model_size.
        num_key_value_heads: integer, 1 to 1024, optional. Heads of keys and values, a divisor of
            num_attention_heads; fewer of them make grouped-query attention. By default those of
            model_size.
        intermediate_size: integer, 1 to 1048576, optional. Inner dimension of the feed-forward network.
            By default that of model_size, or 8/3 of hidden_size.
        num_train_epochs: number, 1e-06 to 1000000. Passes over the training tokens.
        max_steps: integer, -1 to 1000000000. Optimizer steps. -1 trains for num_train_epochs.
        per_device_train_batch_size: integer, 1 to 1048576, optional. Sequences of a rank in one forward
            pass. By default 8.
        per_device_eval_batch_size: integer, 1 to 1048576. Sequences of a rank in one forward pass of an
            evaluation.
        gradient_accumulation_steps: integer, 1 to 1048576, optional. Forward and backward passes of an
            optimizer step. By default 1.
        learning_rate: number, 1e-09 to 10, optional. The highest learning rate. By default it depends
            on model_size, from 0.002 (3M) to 0.0003 (7B).
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. The learning
            rate schedule. All but constant start with a linear warm-up.
        warmup_steps: integer, 0 to 1000000000, optional. Steps of the warm-up. By default a tenth of
            all steps.
        min_lr_ratio: number, 0 to 1. For linear and cosine, the last learning rate as a fraction of the
            highest.
        weight_decay: number, 0 to 1. AdamW's weight decay of the matrices.
        max_grad_norm: number, 0 to 1000000, optional. Maximum norm of the gradient of all parameters
            over all ranks. 0 disables clipping. By default 1.
        precision: string, one of auto, float32, bfloat16, float16, optional. Precision of the
            computation; the weights that are kept are float32. float16 scales the loss. auto, the
            default: bfloat16 on GPUs that have it, float16 on older ones (V100, T4), float32 on CPUs.
        tf32: boolean. For float32, whether GPUs that have TF32 compute matrix products in it.
        compile: boolean. Whether torch.compile compiles the blocks.
        activation_checkpointing: boolean. Whether blocks are computed again in the backward pass, which
            takes time and saves memory.
        strategy: string, one of ddp, fsdp, deepspeed. How the model is distributed over the ranks.
        shard_group_size: integer, 1 to 65536, optional. For fsdp, the ranks that share one copy of the
            model, such as those of an instance (HSDP). By default all ranks.
        deepspeed_stage: integer, 0 to 3, optional. For deepspeed, what is sharded - 0 nothing, 1 the
            optimizer's state, 2 gradients too, 3 weights too. By default 2.
        offload: boolean. For fsdp and deepspeed, whether what is sharded is kept in CPU memory.
        dataloader_num_workers: integer, 0 to 1024. Processes of a rank that read sequences. 0 reads
            them in the training's own process.
        verify_data: boolean. Whether the files' checksums are compared with their content first.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 1000000000. Steps between two evaluations on the validation tokens,
            and one at the end, each with a checkpoint. 0 makes none.
        max_eval_samples: integer, -1 to 1000000000. Sequences of such an evaluation. -1 takes all.
        save_steps: integer, 1 to 1000000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Number of the newest checkpoints to keep. The one with the
            lowest validation loss is kept as well.
        seed: integer, 0 to any. Seed of the first weights and of the order of the sequences.

    Outputs:
        model: mlflow_model. The trained model as an MLflow model that continues prompts (a column of
            strings). In artifacts/language_model it holds config.json, model.safetensors and
            tokenizer.json, which Transformers loads.
        checkpoints: uri_folder. The last checkpoints, from which a training can resume with any number
            of ranks.
        history: uri_file. JSON with loss, seconds and memory of the logged steps. compare_trainings and
            compare_scaling read it.

    allranks_train_language_model 0.2.0: see docs/components.md#train_language_model
    """

class TrainLanguageModelHorovodOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_language_model_horovod(*, data: Data, initial_model: Data | None = None, resume_from_checkpoint: Data | None = None, deepspeed: Data | None = None, model_size: Literal['3M', '30M', '124M', '350M', '1B', '3B', '7B'] | Enum | Output = '3M', max_seq_length: int | Output | None = None, hidden_size: int | Output | None = None, num_hidden_layers: int | Output | None = None, num_attention_heads: int | Output | None = None, num_key_value_heads: int | Output | None = None, intermediate_size: int | Output | None = None, num_train_epochs: float | Output = 1.0, max_steps: int | Output = -1, per_device_train_batch_size: int | Output | None = None, per_device_eval_batch_size: int | Output = 8, gradient_accumulation_steps: int | Output | None = None, learning_rate: float | Output | None = None, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_steps: int | Output | None = None, min_lr_ratio: float | Output = 0.1, weight_decay: float | Output = 0.1, max_grad_norm: float | Output | None = None, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output | None = None, tf32: bool | Output = True, compile: bool | Output = False, activation_checkpointing: bool | Output = False, strategy: Literal['horovod', 'ddp', 'fsdp'] | Enum | Output = 'horovod', shard_group_size: int | Output | None = None, deepspeed_stage: int | Output | None = None, offload: bool | Output = False, dataloader_num_workers: int | Output = 0, verify_data: bool | Output = True, logging_steps: int | Output = 10, eval_steps: int | Output = 0, max_eval_samples: int | Output = -1, save_steps: int | Output = 500, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainLanguageModelHorovodOutputs]:
    """Trains a GPT from 3 million to 7 billion parameters on all ranks, which mpirun starts, with Horovod
    or DistributedDataParallel. The other inputs are those of train_language_model. For example:
    train_language_model_horovod(data=prepare.outputs.text, model_size="124M").

    Inputs:
        data: uri_folder. The output `text` of prepare_text. It is downloaded to each instance, because
            sequences are read in random order; a corpus that is larger than the disk can be mounted
            instead (mode ro_mount).
        initial_model: mlflow_model, optional. The output `model` of an earlier training, whose weights
            and shape this one starts with.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training of
            this component, to resume from if this one has none of its own yet.
        deepspeed: uri_file, optional. For deepspeed, its configuration as JSON, such as the output
            `best` of autotune_deepspeed. Its values replace the defaults of inputs, and inputs that are
            not at their defaults must agree with it. "auto" stands for the input.
        model_size: string, one of 3M, 30M, 124M, 350M, 1B, 3B, 7B. Number of parameters. hidden_size x
            num_hidden_layers, max_seq_length - 3M 256 x 3, 128; 30M 512 x 8, 512; 124M 768 x 12, 1024;
            350M 1024 x 24, 1024; 1B 2048 x 22, 2048; 3B 3072 x 28, 4096; 7B 4096 x 32, 4096.
        max_seq_length: integer, 1 to 1048576, optional. Tokens of a sequence. By default that of
            model_size.
        hidden_size: integer, 2 to 65536, optional. Embedding dimension. By default that of model_size.
        num_hidden_layers: integer, 1 to 1024, optional. Number of blocks. By default that of
            model_size.
        num_attention_heads: integer, 1 to 1024, optional. Attention heads of a block. By default those
            of model_size.
        num_key_value_heads: integer, 1 to 1024, optional. Heads of keys and values, a divisor of
            num_attention_heads; fewer of them make grouped-query attention. By default those of
            model_size.
        intermediate_size: integer, 1 to 1048576, optional. Inner dimension of the feed-forward network.
            By default that of model_size, or 8/3 of hidden_size.
        num_train_epochs: number, 1e-06 to 1000000. Passes over the training tokens.
        max_steps: integer, -1 to 1000000000. Optimizer steps. -1 trains for num_train_epochs.
        per_device_train_batch_size: integer, 1 to 1048576, optional. Sequences of a rank in one forward
            pass. By default 8.
        per_device_eval_batch_size: integer, 1 to 1048576. Sequences of a rank in one forward pass of an
            evaluation.
        gradient_accumulation_steps: integer, 1 to 1048576, optional. Forward and backward passes of an
            optimizer step. By default 1.
        learning_rate: number, 1e-09 to 10, optional. The highest learning rate. By default it depends
            on model_size, from 0.002 (3M) to 0.0003 (7B).
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. The learning
            rate schedule. All but constant start with a linear warm-up.
        warmup_steps: integer, 0 to 1000000000, optional. Steps of the warm-up. By default a tenth of
            all steps.
        min_lr_ratio: number, 0 to 1. For linear and cosine, the last learning rate as a fraction of the
            highest.
        weight_decay: number, 0 to 1. AdamW's weight decay of the matrices.
        max_grad_norm: number, 0 to 1000000, optional. Maximum norm of the gradient of all parameters
            over all ranks. 0 disables clipping. By default 1.
        precision: string, one of auto, float32, bfloat16, float16, optional. Precision of the
            computation; the weights that are kept are float32. float16 scales the loss. auto, the
            default: bfloat16 on GPUs that have it, float16 on older ones (V100, T4), float32 on CPUs.
        tf32: boolean. For float32, whether GPUs that have TF32 compute matrix products in it.
        compile: boolean. Whether torch.compile compiles the blocks.
        activation_checkpointing: boolean. Whether blocks are computed again in the backward pass, which
            takes time and saves memory.
        strategy: string, one of horovod, ddp, fsdp. How the model is distributed over the ranks.
        shard_group_size: integer, 1 to 65536, optional. For fsdp, the ranks that share one copy of the
            model, such as those of an instance (HSDP). By default all ranks.
        deepspeed_stage: integer, 0 to 3, optional. For deepspeed, what is sharded - 0 nothing, 1 the
            optimizer's state, 2 gradients too, 3 weights too. By default 2.
        offload: boolean. For fsdp and deepspeed, whether what is sharded is kept in CPU memory.
        dataloader_num_workers: integer, 0 to 1024. Processes of a rank that read sequences. 0 reads
            them in the training's own process.
        verify_data: boolean. Whether the files' checksums are compared with their content first.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 1000000000. Steps between two evaluations on the validation tokens,
            and one at the end, each with a checkpoint. 0 makes none.
        max_eval_samples: integer, -1 to 1000000000. Sequences of such an evaluation. -1 takes all.
        save_steps: integer, 1 to 1000000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Number of the newest checkpoints to keep. The one with the
            lowest validation loss is kept as well.
        seed: integer, 0 to any. Seed of the first weights and of the order of the sequences.

    Outputs:
        model: mlflow_model. The trained model as an MLflow model that continues prompts (a column of
            strings). In artifacts/language_model it holds config.json, model.safetensors and
            tokenizer.json, which Transformers loads.
        checkpoints: uri_folder. The last checkpoints, from which a training can resume with any number
            of ranks.
        history: uri_file. JSON with loss, seconds and memory of the logged steps. compare_trainings and
            compare_scaling read it.

    allranks_train_language_model_horovod 0.2.0: see docs/components.md#train_language_model_horovod
    """

class TrainLanguageModelMpiOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_language_model_mpi(*, data: Data, initial_model: Data | None = None, resume_from_checkpoint: Data | None = None, deepspeed: Data | None = None, model_size: Literal['3M', '30M', '124M', '350M', '1B', '3B', '7B'] | Enum | Output = '3M', max_seq_length: int | Output | None = None, hidden_size: int | Output | None = None, num_hidden_layers: int | Output | None = None, num_attention_heads: int | Output | None = None, num_key_value_heads: int | Output | None = None, intermediate_size: int | Output | None = None, num_train_epochs: float | Output = 1.0, max_steps: int | Output = -1, per_device_train_batch_size: int | Output | None = None, per_device_eval_batch_size: int | Output = 8, gradient_accumulation_steps: int | Output | None = None, learning_rate: float | Output | None = None, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_steps: int | Output | None = None, min_lr_ratio: float | Output = 0.1, weight_decay: float | Output = 0.1, max_grad_norm: float | Output | None = None, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output | None = None, tf32: bool | Output = True, compile: bool | Output = False, activation_checkpointing: bool | Output = False, strategy: Literal['ddp', 'fsdp', 'deepspeed'] | Enum | Output = 'deepspeed', shard_group_size: int | Output | None = None, deepspeed_stage: int | Output | None = None, offload: bool | Output = False, dataloader_num_workers: int | Output = 0, verify_data: bool | Output = True, logging_steps: int | Output = 10, eval_steps: int | Output = 0, max_eval_samples: int | Output = -1, save_steps: int | Output = 500, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainLanguageModelMpiOutputs]:
    """Trains a GPT from 3 million to 7 billion parameters on all ranks, which mpirun starts: what
    train_language_model does, with the same inputs. For example:
    train_language_model_mpi(data=prepare.outputs.text, strategy="deepspeed", deepspeed_stage=2).

    Inputs:
        data: uri_folder. The output `text` of prepare_text. It is downloaded to each instance, because
            sequences are read in random order; a corpus that is larger than the disk can be mounted
            instead (mode ro_mount).
        initial_model: mlflow_model, optional. The output `model` of an earlier training, whose weights
            and shape this one starts with.
        resume_from_checkpoint: uri_folder, optional. The output `checkpoints` of an earlier training of
            this component, to resume from if this one has none of its own yet.
        deepspeed: uri_file, optional. For deepspeed, its configuration as JSON, such as the output
            `best` of autotune_deepspeed. Its values replace the defaults of inputs, and inputs that are
            not at their defaults must agree with it. "auto" stands for the input.
        model_size: string, one of 3M, 30M, 124M, 350M, 1B, 3B, 7B. Number of parameters. hidden_size x
            num_hidden_layers, max_seq_length - 3M 256 x 3, 128; 30M 512 x 8, 512; 124M 768 x 12, 1024;
            350M 1024 x 24, 1024; 1B 2048 x 22, 2048; 3B 3072 x 28, 4096; 7B 4096 x 32, 4096.
        max_seq_length: integer, 1 to 1048576, optional. Tokens of a sequence. By default that of
            model_size.
        hidden_size: integer, 2 to 65536, optional. Embedding dimension. By default that of model_size.
        num_hidden_layers: integer, 1 to 1024, optional. Number of blocks. By default that of
            model_size.
        num_attention_heads: integer, 1 to 1024, optional. Attention heads of a block. By default those
            of model_size.
        num_key_value_heads: integer, 1 to 1024, optional. Heads of keys and values, a divisor of
            num_attention_heads; fewer of them make grouped-query attention. By default those of
            model_size.
        intermediate_size: integer, 1 to 1048576, optional. Inner dimension of the feed-forward network.
            By default that of model_size, or 8/3 of hidden_size.
        num_train_epochs: number, 1e-06 to 1000000. Passes over the training tokens.
        max_steps: integer, -1 to 1000000000. Optimizer steps. -1 trains for num_train_epochs.
        per_device_train_batch_size: integer, 1 to 1048576, optional. Sequences of a rank in one forward
            pass. By default 8.
        per_device_eval_batch_size: integer, 1 to 1048576. Sequences of a rank in one forward pass of an
            evaluation.
        gradient_accumulation_steps: integer, 1 to 1048576, optional. Forward and backward passes of an
            optimizer step. By default 1.
        learning_rate: number, 1e-09 to 10, optional. The highest learning rate. By default it depends
            on model_size, from 0.002 (3M) to 0.0003 (7B).
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. The learning
            rate schedule. All but constant start with a linear warm-up.
        warmup_steps: integer, 0 to 1000000000, optional. Steps of the warm-up. By default a tenth of
            all steps.
        min_lr_ratio: number, 0 to 1. For linear and cosine, the last learning rate as a fraction of the
            highest.
        weight_decay: number, 0 to 1. AdamW's weight decay of the matrices.
        max_grad_norm: number, 0 to 1000000, optional. Maximum norm of the gradient of all parameters
            over all ranks. 0 disables clipping. By default 1.
        precision: string, one of auto, float32, bfloat16, float16, optional. Precision of the
            computation; the weights that are kept are float32. float16 scales the loss. auto, the
            default: bfloat16 on GPUs that have it, float16 on older ones (V100, T4), float32 on CPUs.
        tf32: boolean. For float32, whether GPUs that have TF32 compute matrix products in it.
        compile: boolean. Whether torch.compile compiles the blocks.
        activation_checkpointing: boolean. Whether blocks are computed again in the backward pass, which
            takes time and saves memory.
        strategy: string, one of ddp, fsdp, deepspeed. How the model is distributed over the ranks.
        shard_group_size: integer, 1 to 65536, optional. For fsdp, the ranks that share one copy of the
            model, such as those of an instance (HSDP). By default all ranks.
        deepspeed_stage: integer, 0 to 3, optional. For deepspeed, what is sharded - 0 nothing, 1 the
            optimizer's state, 2 gradients too, 3 weights too. By default 2.
        offload: boolean. For fsdp and deepspeed, whether what is sharded is kept in CPU memory.
        dataloader_num_workers: integer, 0 to 1024. Processes of a rank that read sequences. 0 reads
            them in the training's own process.
        verify_data: boolean. Whether the files' checksums are compared with their content first.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 1000000000. Steps between two evaluations on the validation tokens,
            and one at the end, each with a checkpoint. 0 makes none.
        max_eval_samples: integer, -1 to 1000000000. Sequences of such an evaluation. -1 takes all.
        save_steps: integer, 1 to 1000000000. Steps between two checkpoints.
        save_total_limit: integer, 1 to 1000. Number of the newest checkpoints to keep. The one with the
            lowest validation loss is kept as well.
        seed: integer, 0 to any. Seed of the first weights and of the order of the sequences.

    Outputs:
        model: mlflow_model. The trained model as an MLflow model that continues prompts (a column of
            strings). In artifacts/language_model it holds config.json, model.safetensors and
            tokenizer.json, which Transformers loads.
        checkpoints: uri_folder. The last checkpoints, from which a training can resume with any number
            of ranks.
        history: uri_file. JSON with loss, seconds and memory of the logged steps. compare_trainings and
            compare_scaling read it.

    allranks_train_language_model_mpi 0.2.0: see docs/components.md#train_language_model_mpi
    """

class TrainLightningOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_lightning(*, data: Data, resume_from_checkpoint: Data | None = None, devices: int | Output | None = None, num_nodes: int | Output | None = None, preset: Literal['resnet_micro', 'convnextv2_micro', 'resnet18', 'resnet50', 'convnextv2_tiny', 'convnextv2_base', 'vit_small', 'vit_base', 'vit_large', 'swin_tiny', 'swin_base'] | Enum | Output = 'resnet50', image_size: int | Output = 0, num_train_epochs: int | Output = 8, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 32, per_device_eval_batch_size: int | Output = 64, gradient_accumulation_steps: int | Output = 1, learning_rate: float | Output = 0.001, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_ratio: float | Output = 0.1, warmup_steps: int | Output = 0, weight_decay: float | Output = 0.01, max_grad_norm: float | Output = 0.0, label_smoothing_factor: float | Output = 0.0, max_shift: int | Output = 0, horizontal_flip: bool | Output = False, dataloader_num_workers: int | Output = 0, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', compile: bool | Output = False, strategy: Literal['ddp', 'fsdp'] | Enum | Output = 'ddp', logging_steps: int | Output = 10, save_steps: int | Output = 500, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainLightningOutputs]:
    """Trains a classifier of images with Lightning. Where the platform starts one process on each
    instance, Lightning starts the rest; under a launch that starts every process it starts none. An
    evicted job goes on within its epoch. For example: train_lightning(data=prepare.outputs.images,
    preset="resnet50", devices=4).

    Inputs:
        data: uri_folder. The images, as prepare_images writes them: NumPy files of pixels (uint8, 0 to
            255, of shape count x channels x height x width) and labels (int64) for each set, and
            dataset.json.
        resume_from_checkpoint: uri_folder, optional. The output checkpoints of another training, to go
            on from. Its own checkpoints come first.
        devices: integer, 1 to 1024, optional. Processes on each instance, as a rule its GPUs. Without
            it, as many as the platform starts.
        num_nodes: integer, 1 to 65536, optional. Instances. Another number than the launch has is
            refused, where Lightning would hang or train alone.
        preset: string, one of resnet_micro, convnextv2_micro, resnet18, resnet50, convnextv2_tiny,
            convnextv2_base, vit_small, vit_base, vit_large, swin_tiny, swin_base. The architecture,
            with random weights, as in train_image_classifier.
        image_size: integer, 0 to 4096. Height and width in pixels to which the model resizes its
            images. 0 for the size of the images.
        num_train_epochs: integer, 1 to 100000. Passes over the training images.
        max_steps: integer, -1 to 100000000. Optimizer steps, instead of num_train_epochs. -1 for
            num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Images of a rank in a forward and backward
            pass.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a rank in a forward pass of the
            validation.
        gradient_accumulation_steps: integer, 1 to 65536. Backward passes per optimizer step.
        learning_rate: number, 1e-08 to 100. AdamW's highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate falls after the warm-up. constant has no warm-up.
        warmup_ratio: number, 0 to 0.99. Share of the steps in which the learning rate rises linearly to
            its highest value.
        warmup_steps: integer, 0 to 100000000. Steps in which it rises, instead of warmup_ratio. 0 for
            warmup_ratio.
        weight_decay: number, 0 to 10. Weight decay of all weights but biases and those of
            normalization.
        max_grad_norm: number, 0 to 1000000. Maximum L2 norm of the gradient of all parameters. 0 for no
            clipping.
        label_smoothing_factor: number, 0 to 0.99. Probability that the targets give to all classes
            alike.
        max_shift: integer, 0 to 64. Most pixels by which training images are shifted at random.
        horizontal_flip: boolean. Whether training images are mirrored at random. Good for photographs,
            wrong for digits.
        dataloader_num_workers: integer, 0 to 256. Processes of a rank that load images. 0 loads them in
            the rank itself.
        precision: string, one of auto, float32, bfloat16, float16. What the network computes in. The
            weights stay float32. float16 needs GPUs. auto: bfloat16 on GPUs that have it, float16 with
            a scaled loss on older ones (V100, T4), float32 on CPUs.
        compile: boolean. Whether the model is compiled by torch.compile.
        strategy: string, one of ddp, fsdp. How the model is spread over the ranks. Lightning does fsdp
            on GPUs alone.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        save_steps: integer, 1 to 1000000000. Steps between two checkpoints.
        save_total_limit: integer, 0 to 1000. Checkpoints to keep beside the last one. 0 keeps all.
        seed: integer, 0 to 4294967295. Seed of the first weights and of the order of the images.

    Outputs:
        model: mlflow_model. The trained model in MLflow's PyTorch flavor. It takes pixels (uint8, 0 to
            255, of shape count x channels x height x width) and gives a score for each class (float32,
            of shape count x classes).
        checkpoints: uri_folder. Lightning's last checkpoints, from which a training goes on.
        history: uri_file. JSON with the loss, the seconds and the images of the steps. compare_scaling
            reads it.

    allranks_train_lightning 0.1.0: see docs/components.md#train_lightning
    """

class TrainTensorflowOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_tensorflow(*, data: Data, resume_from_checkpoint: Data | None = None, preset: Literal['resnet_micro', 'mobilenet_v2', 'resnet50', 'efficientnetv2_s', 'convnext_tiny'] | Enum | Output = 'resnet50', image_size: int | Output = 0, num_train_epochs: int | Output = 8, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 32, per_device_eval_batch_size: int | Output = 64, learning_rate: float | Output = 0.001, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_ratio: float | Output = 0.1, warmup_steps: int | Output = 0, weight_decay: float | Output = 0.01, max_grad_norm: float | Output = 0.0, label_smoothing_factor: float | Output = 0.0, max_shift: int | Output = 0, horizontal_flip: bool | Output = False, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', logging_steps: int | Output = 10, eval_steps: int | Output = 0, save_steps: int | Output = 500, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainTensorflowOutputs]:
    """Trains a classifier of images with TensorFlow on all workers and their GPUs, each taking its part of
    every batch (MultiWorkerMirroredStrategy). The losses are the same for every number of workers. An
    evicted job resumes from its last checkpoint. For example:
    train_tensorflow(data=prepare.outputs.images, preset="resnet50", precision="bfloat16").

    Inputs:
        data: uri_folder. The images, as prepare_images writes them: NumPy files of pixels (uint8, 0 to
            255, of shape count x channels x height x width) and labels (int64) for each set, and
            dataset.json. They are read at random, so they are downloaded.
        resume_from_checkpoint: uri_folder, optional. The output checkpoints of another training to
            resume from, if this one has no checkpoints of its own.
        preset: string, one of resnet_micro, mobilenet_v2, resnet50, efficientnetv2_s, convnext_tiny.
            The architecture, with random weights. resnet_micro is for small images, such as digits.
        image_size: integer, 0 to 4096. Height and width in pixels to which the model resizes its
            images. 0 for the size of the images.
        num_train_epochs: integer, 1 to 100000. Passes over the training images.
        max_steps: integer, -1 to 100000000. Optimizer steps, instead of num_train_epochs. -1 for
            num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Images of a device in a step.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a device in a step of the validation.
        learning_rate: number, 1e-08 to 100. AdamW's highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate falls after the warm-up. constant has no warm-up.
        warmup_ratio: number, 0 to 0.99. Share of the steps in which the learning rate rises linearly to
            its highest value.
        warmup_steps: integer, 0 to 100000000. Steps in which it rises, instead of warmup_ratio. 0 for
            warmup_ratio.
        weight_decay: number, 0 to 10. Weight decay of all weights but biases and those of
            normalization.
        max_grad_norm: number, 0 to 1000000. Maximum L2 norm of the gradient of all parameters. 0 for no
            clipping.
        label_smoothing_factor: number, 0 to 0.99. Probability that the targets give to all classes
            alike.
        max_shift: integer, 0 to 64. Most pixels by which training images are shifted at random.
        horizontal_flip: boolean. Whether training images are mirrored at random. Good for photographs,
            wrong for digits.
        precision: string, one of auto, float32, bfloat16, float16. What the network computes in. The
            weights stay float32. In float16 the loss is scaled. auto: bfloat16 on GPUs that have it,
            float16 on older ones (V100, T4), float32 on CPUs.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 1000000000. Steps between two validations. 0 for each epoch.
        save_steps: integer, 1 to 1000000000. Steps between two checkpoints.
        save_total_limit: integer, 0 to 1000. Checkpoints to keep, the newest ones. 0 keeps all.
        seed: integer, 0 to 4294967295. Seed of the first weights, of the order of the images and of
            their changes.

    Outputs:
        model: mlflow_model. The trained model in MLflow's TensorFlow flavor, a Keras model. It takes
            pixels (uint8, 0 to 255, of shape count x channels x height x width) and gives a score for
            each class (float32, of shape count x classes).
        checkpoints: uri_folder. The last checkpoints in TensorFlow's format, from which a training can
            resume with any number of workers.
        history: uri_file. JSON with the loss, the seconds and the images of the steps. compare_scaling
            reads it.

    allranks_train_tensorflow 0.1.0: see docs/components.md#train_tensorflow
    """

class TrainTensorflowHorovodOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_tensorflow_horovod(*, data: Data, resume_from_checkpoint: Data | None = None, preset: Literal['resnet_micro', 'mobilenet_v2', 'resnet50', 'efficientnetv2_s', 'convnext_tiny'] | Enum | Output = 'resnet50', image_size: int | Output = 0, num_train_epochs: int | Output = 8, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 32, per_device_eval_batch_size: int | Output = 64, learning_rate: float | Output = 0.001, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_ratio: float | Output = 0.1, warmup_steps: int | Output = 0, weight_decay: float | Output = 0.01, max_grad_norm: float | Output = 0.0, label_smoothing_factor: float | Output = 0.0, max_shift: int | Output = 0, horizontal_flip: bool | Output = False, precision: Literal['auto', 'float32', 'bfloat16', 'float16'] | Enum | Output = 'auto', logging_steps: int | Output = 10, eval_steps: int | Output = 0, save_steps: int | Output = 500, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainTensorflowHorovodOutputs]:
    """Trains a classifier of images with TensorFlow and Horovod, which mpirun starts, one process for each
    GPU: what train_tensorflow does, with the same inputs and the same losses. For example:
    train_tensorflow_horovod(data=prepare.outputs.images, preset="resnet50").

    Inputs:
        data: uri_folder. The images, as prepare_images writes them: NumPy files of pixels (uint8, 0 to
            255, of shape count x channels x height x width) and labels (int64) for each set, and
            dataset.json. They are read at random, so they are downloaded.
        resume_from_checkpoint: uri_folder, optional. The output checkpoints of another training to
            resume from, if this one has no checkpoints of its own.
        preset: string, one of resnet_micro, mobilenet_v2, resnet50, efficientnetv2_s, convnext_tiny.
            The architecture, with random weights. resnet_micro is for small images, such as digits.
        image_size: integer, 0 to 4096. Height and width in pixels to which the model resizes its
            images. 0 for the size of the images.
        num_train_epochs: integer, 1 to 100000. Passes over the training images.
        max_steps: integer, -1 to 100000000. Optimizer steps, instead of num_train_epochs. -1 for
            num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Images of a device in a step.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a device in a step of the validation.
        learning_rate: number, 1e-08 to 100. AdamW's highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate falls after the warm-up. constant has no warm-up.
        warmup_ratio: number, 0 to 0.99. Share of the steps in which the learning rate rises linearly to
            its highest value.
        warmup_steps: integer, 0 to 100000000. Steps in which it rises, instead of warmup_ratio. 0 for
            warmup_ratio.
        weight_decay: number, 0 to 10. Weight decay of all weights but biases and those of
            normalization.
        max_grad_norm: number, 0 to 1000000. Maximum L2 norm of the gradient of all parameters. 0 for no
            clipping.
        label_smoothing_factor: number, 0 to 0.99. Probability that the targets give to all classes
            alike.
        max_shift: integer, 0 to 64. Most pixels by which training images are shifted at random.
        horizontal_flip: boolean. Whether training images are mirrored at random. Good for photographs,
            wrong for digits.
        precision: string, one of auto, float32, bfloat16, float16. What the network computes in. The
            weights stay float32. In float16 the loss is scaled. auto: bfloat16 on GPUs that have it,
            float16 on older ones (V100, T4), float32 on CPUs.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        eval_steps: integer, 0 to 1000000000. Steps between two validations. 0 for each epoch.
        save_steps: integer, 1 to 1000000000. Steps between two checkpoints.
        save_total_limit: integer, 0 to 1000. Checkpoints to keep, the newest ones. 0 keeps all.
        seed: integer, 0 to 4294967295. Seed of the first weights, of the order of the images and of
            their changes.

    Outputs:
        model: mlflow_model. The trained model in MLflow's TensorFlow flavor, a Keras model. It takes
            pixels (uint8, 0 to 255, of shape count x channels x height x width) and gives a score for
            each class (float32, of shape count x classes).
        checkpoints: uri_folder. The last checkpoints in TensorFlow's format, from which a training can
            resume with any number of workers.
        history: uri_file. JSON with the loss, the seconds and the images of the steps. compare_scaling
            reads it.

    allranks_train_tensorflow_horovod 0.1.0: see docs/components.md#train_tensorflow_horovod
    """

class TrainTensorflowParameterServerOutputs:
    model: Output
    checkpoints: Output
    history: Output

def train_tensorflow_parameter_server(*, data: Data, resume_from_checkpoint: Data | None = None, preset: Literal['resnet_micro', 'mobilenet_v2', 'resnet50', 'efficientnetv2_s', 'convnext_tiny'] | Enum | Output = 'resnet50', image_size: int | Output = 0, num_train_epochs: int | Output = 8, max_steps: int | Output = -1, per_device_train_batch_size: int | Output = 32, per_device_eval_batch_size: int | Output = 64, learning_rate: float | Output = 0.001, lr_scheduler_type: Literal['linear', 'cosine', 'constant', 'constant_with_warmup'] | Enum | Output = 'cosine', warmup_ratio: float | Output = 0.1, warmup_steps: int | Output = 0, weight_decay: float | Output = 0.01, max_grad_norm: float | Output = 0.0, label_smoothing_factor: float | Output = 0.0, horizontal_flip: bool | Output = False, precision: Literal['auto', 'float32', 'bfloat16'] | Enum | Output = 'auto', logging_steps: int | Output = 10, save_steps: int | Output = 500, save_total_limit: int | Output = 2, seed: int | Output = 0) -> Step[TrainTensorflowParameterServerOutputs]:
    """Trains a classifier of images with TensorFlow's parameter servers (ParameterServerStrategy): workers
    take steps as they come and none waits for another, so that two trainings differ. Worker 0
    coordinates and trains nothing. For example:
    train_tensorflow_parameter_server(data=prepare.outputs.images, preset="resnet50").

    Inputs:
        data: uri_folder. The images, as prepare_images writes them: NumPy files of pixels (uint8, 0 to
            255, of shape count x channels x height x width) and labels (int64) for each set, and
            dataset.json. They are read at random, so they are downloaded.
        resume_from_checkpoint: uri_folder, optional. The output checkpoints of another training to
            resume from, if this one has no checkpoints of its own.
        preset: string, one of resnet_micro, mobilenet_v2, resnet50, efficientnetv2_s, convnext_tiny.
            The architecture, with random weights. resnet_micro is for small images, such as digits.
        image_size: integer, 0 to 4096. Height and width in pixels to which the model resizes its
            images. 0 for the size of the images.
        num_train_epochs: integer, 1 to 100000. Passes over the training images.
        max_steps: integer, -1 to 100000000. Optimizer steps, instead of num_train_epochs. -1 for
            num_train_epochs.
        per_device_train_batch_size: integer, 1 to 65536. Images in a step, which one worker takes from
            its own share of the data.
        per_device_eval_batch_size: integer, 1 to 65536. Images of a device in a step of the validation.
        learning_rate: number, 1e-08 to 100. AdamW's highest learning rate.
        lr_scheduler_type: string, one of linear, cosine, constant, constant_with_warmup. How the
            learning rate falls after the warm-up. constant has no warm-up.
        warmup_ratio: number, 0 to 0.99. Share of the steps in which the learning rate rises linearly to
            its highest value.
        warmup_steps: integer, 0 to 100000000. Steps in which it rises, instead of warmup_ratio. 0 for
            warmup_ratio.
        weight_decay: number, 0 to 10. Weight decay of all weights but biases and those of
            normalization.
        max_grad_norm: number, 0 to 1000000. Maximum L2 norm of the gradient of all parameters. 0 for no
            clipping.
        label_smoothing_factor: number, 0 to 0.99. Probability that the targets give to all classes
            alike.
        horizontal_flip: boolean. Whether training images are mirrored at random. Good for photographs,
            wrong for digits.
        precision: string, one of auto, float32, bfloat16. What the network computes in. The weights
            stay float32. auto: bfloat16 on GPUs that have it, float32 on others and on CPUs.
        logging_steps: integer, 1 to 1000000. Steps between two points of the loss curve.
        save_steps: integer, 1 to 1000000000. Steps between two checkpoints.
        save_total_limit: integer, 0 to 1000. Checkpoints to keep, the newest ones. 0 keeps all.
        seed: integer, 0 to 4294967295. Seed of the first weights and of the order of each worker's
            images.

    Outputs:
        model: mlflow_model. The trained model in MLflow's TensorFlow flavor, a Keras model. It takes
            pixels (uint8, 0 to 255, of shape count x channels x height x width) and gives a score for
            each class (float32, of shape count x classes).
        checkpoints: uri_folder. The last checkpoints in TensorFlow's format, from which a training can
            resume with any number of workers.
        history: uri_file. JSON with the loss, the seconds and the images of the steps. compare_scaling
            reads it.

    allranks_train_tensorflow_parameter_server 0.1.0: see docs/components.md#train_tensorflow_parameter_server
    """

class VerifyEnvironmentOutputs:
    report: Output

def verify_environment(*, expectations: Data, variant: str | Output = 'auto') -> Step[VerifyEnvironmentOutputs]:
    """Proves on an instance of the cluster that an environment is what it says: versions of Python, Open
    MPI, UCX, OFED's user space, CUDA, NCCL and packages, libraries that load, what was built with what,
    two ranks under mpirun, an all-reduce. Give the step the environment to be proved, and that
    environment's expect.yaml.

    Inputs:
        expectations: uri_file. The expect.yaml of the environment, environments/NAME/expect.yaml: YAML
            with what must be true inside.
        variant: string. Which sections of it count: words of cuda or cpu, doca or distribution; auto
            takes those that the image says of itself.

    Outputs:
        report: uri_folder. verification.json, each thing that was looked at with what was expected and
            what was found.

    allranks_verify_environment 0.1.0: see docs/components.md#verify_environment
    """
