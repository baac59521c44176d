"""Train a Llama on all ranks, by the chosen strategy and under any launch."""

from __future__ import annotations

from pathlib import Path

import start
import torch
import training_data
from optimizer import adamw
from saving import save
from throughput import flops_per_token, peak_flops
from training_log import TrainingLog

from allranks import runtime
from allranks.runtime.output_room import full_output_refused
from allranks_steps.history import History
from allranks_steps.schedule import Schedule
from allranks_steps.text.prepared_text import read_description, read_tokenizer, read_tokens, verify
from allranks_steps.text.windows import Windows, divided


def train(ranks: runtime.Ranks) -> None:
    given = runtime.arguments()
    args = start.resolved(given, ranks.full_world_size)
    data, tokenizer = read_description(args.data), read_tokenizer(args.data)
    config = start.config(args, data, tokenizer)
    max_seq_length = config.max_position_embeddings
    windows, validation = (
        Windows(read_tokens(args.data, data, split), max_seq_length) for split in ("train", "validation")
    )
    training_data.require_batch(windows, args.per_device_train_batch_size, ranks.full_world_size)
    if args.eval_steps:
        training_data.require_window(validation)
    total = start.total_steps(args, len(windows), ranks.full_world_size)
    start.require_warmup(given.warmup_steps, total)
    warmup_steps = total // 10 if args.warmup_steps is None else args.warmup_steps
    batch_size = args.per_device_train_batch_size * ranks.full_world_size
    sampler = runtime.ResumableSampler(
        len(windows),
        ranks,
        batch_size=batch_size,
        per_device_batch_size=args.per_device_train_batch_size,
        seed=args.seed,
        drop_last=True,
    )
    build = start.build(config, args.initial_model)
    settings = start.settings(args, warmup_steps, total, sampler.passes_per_batch)
    if args.verify_data:
        shards = [shard for shards in data.shards.values() for shard in shards]
        verify(args.data, shards[ranks.local_rank :: ranks.local_world_size])

    torch.manual_seed(args.seed)
    model = ranks.strategy.create(build)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    start.check_room(args, parameters, ranks)
    training = ranks.strategy.prepare(
        model,
        adamw(model, args.learning_rate, args.weight_decay, ranks.device),
        settings,
        schedule=Schedule(args.lr_scheduler_type, total, warmup_steps, args.min_lr_ratio),
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

    tokens_per_step = batch_size * args.gradient_accumulation_steps * max_seq_length
    about = {
        "strategy": args.strategy,
        "deepspeed_stage": args.deepspeed_stage,
        "launcher": ranks.launcher,
        "world_size": ranks.world_size,
        "parameters": parameters,
        "sample": "token",
        "samples_per_step": tokens_per_step,
    }
    ranks.metrics.log_params(about | {name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    if ranks.is_main:
        by = f"on {ranks.world_size} ranks by {args.strategy} in {args.precision}"
        print(f"{parameters:,} parameters {by}, {total:,} steps", flush=True)
    peak = peak_flops(ranks.device, args.precision, args.tf32)
    utilization_of_token = None if peak is None else flops_per_token(config, parameters) / (peak * ranks.world_size)
    log = TrainingLog(ranks, history, total, utilization_of_token)

    def evaluate() -> None:
        """Compute and log the validation loss if it is due, and save the model with it. A collective."""
        is_due = args.eval_steps and step and (step % args.eval_steps == 0 or step == total)
        if not is_due or history.has_evaluation(step):
            return
        if ranks.device.type == "cuda":  # the steps before it may still be computed
            torch.cuda.synchronize(ranks.device)
        with history.paused():
            loss_now = training_data.validation_loss(
                training.model,
                validation,
                args.per_device_eval_batch_size,
                args.max_eval_samples,
                ranks,
                interrupted=checkpoints.interrupted,
            )
            if loss_now is None:
                checkpoints.save_if_due(step)  # saves, and ends the training
                return
            log.add_evaluation(step, loss_now)
            checkpoints.save(step, metric=loss_now, wait=False)

    training.model.train()
    loss_of_step, passes_of_step = torch.zeros((), device=ranks.device), 0
    history.restart()
    evaluate()  # if the training was ended during an evaluation
    while step < total:
        for batch in loader:
            seen, following = divided(batch)
            loss = training.model(seen, following)
            training.backward(loss, loader.weight)
            loss_of_step += loss.detach() * loader.weight
            passes_of_step += 1
            if not training.step():
                continue
            step += 1
            history.count(tokens_per_step)
            if step == 1 or step % args.logging_steps == 0 or step == total:
                log.add(step, loss_of_step / passes_of_step, training)
            loss_of_step, passes_of_step = torch.zeros_like(loss_of_step), 0
            evaluate()
            checkpoints.save_if_due(step)
            if step == total:
                break

    checkpoints.save(step)
    weights = training.weights()
    measured_on = runtime.measured_on(ranks)
    if ranks.is_main:
        history.write(args.history, about | measured_on)
        with full_output_refused("output model", args.model):
            save(args.model, config, weights, tokenizer, str(tokenizer.id_to_token(data.end)))
    ranks.barrier()


if __name__ == "__main__":
    runtime.main(train, strategy=runtime.arguments().strategy)
