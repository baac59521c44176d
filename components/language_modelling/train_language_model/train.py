"""Train a Llama on all ranks, by the chosen strategy and under any launch."""

import start
import torch
import training_data
from saving import save
from throughput import flops_per_token, peak_flops
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from allranks import runtime
from allranks.runtime.output_room import full_output_refused, outputs_of_training, require_room
from allranks_steps.history import History, describe
from allranks_steps.loop import Loop
from allranks_steps.schedule import Schedule
from allranks_steps.text.prepared_text import read_description, read_tokenizer, read_tokens, verify
from allranks_steps.text.windows import Windows, divided
from allranks_steps.training_settings import parameter_groups, settings, total_steps

FLOAT32_BYTES = 4
CHECKPOINT_VALUES = 3
"""Values that a checkpoint holds for each parameter: the weight, and Adam's two moments."""

BETAS = (0.9, 0.95)
"""As in Brown et al., arXiv:2005.14165, appendix B, and Llama 2: shorter than Adam's own for the second moment."""


def train(ranks: runtime.Ranks) -> None:
    args = start.resolved(runtime.arguments(), ranks.full_world_size)
    data, tokenizer = read_description(args.data), read_tokenizer(args.data)
    config = start.config(args, data, tokenizer)
    length = config.max_position_embeddings
    windows, validation = (Windows(read_tokens(args.data, data, split), length) for split in ("train", "validation"))
    batch_size = args.per_device_train_batch_size * ranks.full_world_size
    training_data.require_batch(windows, args.per_device_train_batch_size, ranks.full_world_size)
    if args.eval_steps:
        training_data.require_window(validation)
    total = total_steps(args, len(windows) // batch_size)
    schedule = Schedule(
        args.lr_scheduler_type,
        total,
        total // 10 if args.warmup_steps is None else args.warmup_steps,
        args.min_lr_ratio,
    )
    sampler = runtime.ResumableSampler(
        len(windows),
        ranks,
        batch_size=batch_size,
        per_device_batch_size=args.per_device_train_batch_size,
        seed=args.seed,
        drop_last=True,
    )
    build = start.build(config, args.initial_model)
    if args.verify_data:
        shards = [shard for shards in data.shards.values() for shard in shards]
        verify(args.data, shards[ranks.local_rank :: ranks.local_world_size])

    torch.manual_seed(args.seed)
    model = ranks.strategy.create(build)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    size = FLOAT32_BYTES * parameters
    places = (args.model, size, args.checkpoints, CHECKPOINT_VALUES * size, args.save_total_limit)
    require_room(outputs_of_training(*places, best=args.eval_steps > 0), ranks)
    fused = ranks.device.type in ("cpu", "cuda")
    optimizer = torch.optim.AdamW(
        parameter_groups(model, args.weight_decay), lr=args.learning_rate, betas=BETAS, fused=fused
    )
    sharding = {"shard_group_size": args.shard_group_size, "deepspeed_stage": args.deepspeed_stage}
    training = ranks.strategy.prepare(
        model, optimizer, settings(args, (LlamaDecoderLayer,), schedule, sampler, **sharding), schedule
    )
    args.precision = training.precision  # what "auto" stands for here
    loader = runtime.DataLoader(windows, sampler, num_workers=args.dataloader_num_workers)
    history = History("token")
    checkpoints = runtime.Checkpoints(
        args.checkpoints,
        ranks,
        {"training": training, "loader": loader, "history": history},
        every_steps=args.save_steps,
        keep=args.save_total_limit,
    )
    step = checkpoints.load(start_from=args.resume_from_checkpoint, start_from_name="input resume_from_checkpoint")
    start.check_resumed(step, total, args.max_steps)

    tokens = batch_size * args.gradient_accumulation_steps * length
    about = describe(args, ranks, "token", parameters=parameters, samples_per_step=tokens)
    if ranks.is_main:
        by = f"on {ranks.world_size} ranks by {args.strategy} in {args.precision}"
        print(f"{parameters:,} parameters {by}, {total:,} steps", flush=True)
    peak = peak_flops(ranks.device, args.precision, args.tf32)

    def loss(batch: Tensor, _step: int, _passes: int) -> Tensor:
        found: Tensor = training.model(*divided(batch))
        return found

    def evaluate() -> dict[str, float] | None:
        return training_data.validation_loss(
            training.model,
            validation,
            args.per_device_eval_batch_size,
            args.max_eval_samples,
            ranks,
            interrupted=checkpoints.interrupted,
        )

    Loop(
        ranks,
        training,
        loader,
        history,
        checkpoints,
        total=total,
        samples_per_step=tokens,
        logging_steps=args.logging_steps,
        loss=loss,
        is_due=lambda step: args.eval_steps and (step % args.eval_steps == 0 or step == total),
        evaluate=evaluate,
        metric="loss",
        utilization=peak and flops_per_token(config, parameters) / (peak * ranks.world_size),
    ).run(step)

    weights = training.weights()
    measured_on = runtime.measured_on(ranks)
    if ranks.is_main:
        history.write(args.history, about | measured_on)
        with full_output_refused("output model", args.model):
            save(args.model, config, weights, tokenizer, str(tokenizer.id_to_token(data.end)))
    ranks.barrier()


if __name__ == "__main__":
    runtime.main(train, strategy=runtime.arguments().strategy)
