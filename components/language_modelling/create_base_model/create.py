"""Build a small Llama and its tokenizer from texts, and pre-train it for a number of steps on all ranks."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, get_scheduler

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks_steps.text import byte_level_bpe

END, START_OF_TURN, END_OF_TURN = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""ChatML: each message between two tokens of its own."""


def create(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    texts = read(args.text)
    tokenizer = train_tokenizer(texts, args.vocab_size)
    config = configuration(args, tokenizer)
    torch.manual_seed(args.seed)
    model = LlamaForCausalLM(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    if ranks.is_main:
        print(f"{count:,} weights, {len(tokenizer):,} tokens in the vocabulary", flush=True)
    weights = pretrain(model, token_stream(tokenizer, texts), args, ranks)
    if ranks.is_main:
        args.model.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(args.model, state_dict=weights)
        tokenizer.save_pretrained(args.model)
    ranks.barrier()


def read(folder: Path) -> list[str]:
    """Return the texts of all JSONL files in a folder, whose objects have a text. Raise InputError if there is none."""
    texts = []
    for file in sorted(folder.rglob("*.jsonl")):
        try:
            content = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(Problem(f"input text, {file}", str(error), "JSON lines in UTF-8", "correct it")) from None
        # Not splitlines, which also splits at characters that a JSON string may hold.
        for number, line in enumerate(content.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                texts.append(str(json.loads(line)["text"]))
            except (ValueError, KeyError, TypeError):
                expected = '{"text": "..."}'
                raise InputError(Problem(f"input text, {file}:{number}", line[:80], expected, "correct it")) from None
    if not texts:
        raise InputError(Problem("input text", f"no text in {folder}", "JSONL files with a text", "give such a folder"))
    return texts


def train_tokenizer(texts: list[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer with ChatML's template."""
    tokenizer = byte_level_bpe.train(texts, vocab_size, [END, START_OF_TURN, END_OF_TURN])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)
    fast.chat_template = CHAT_TEMPLATE
    return fast


def configuration(args: Namespace, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """Return the shape of the model. Raise InputError if its parts do not fit together."""
    if args.max_seq_length > args.max_position_embeddings:
        found = f"{args.max_seq_length} tokens for {args.max_position_embeddings} positions"
        fix = "make it smaller, or max_position_embeddings larger"
        raise InputError(Problem("input max_seq_length", found, "at most max_position_embeddings", fix))
    if args.hidden_size % (2 * args.num_attention_heads):
        found = f"{args.num_attention_heads} heads on a hidden_size of {args.hidden_size}"
        fix = "change num_attention_heads or hidden_size"
        raise InputError(Problem("input num_attention_heads", found, "heads of an even, whole size", fix))
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=args.hidden_size,
        # Llama's own ratio of 8/3, rounded up to a multiple of 32.
        intermediate_size=-(-args.hidden_size * 8 // 3 // 32) * 32,
        num_hidden_layers=args.num_hidden_layers,
        num_attention_heads=args.num_attention_heads,
        max_position_embeddings=args.max_position_embeddings,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def token_stream(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> torch.Tensor:
    """Return the tokens of all texts, each with the end token after it, as one tensor."""
    ids = tokenizer(texts)["input_ids"]
    return torch.tensor([token for text in ids for token in [*text, tokenizer.eos_token_id]])


def pretrain(
    model: LlamaForCausalLM, stream: torch.Tensor, args: Namespace, ranks: runtime.Ranks
) -> dict[str, torch.Tensor]:
    """Train on random windows of the tokens, and return the weights on rank 0. Raise InputError for too few tokens."""
    length = args.max_seq_length
    if len(stream) <= length:
        found = f"{length}, and {len(stream)} tokens of text"
        raise InputError(Problem("input max_seq_length", found, "fewer than the tokens", "make it smaller"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.01)
    training = ranks.strategy.prepare(
        model,
        optimizer,
        runtime.TrainingSettings(),
        schedule=lambda optimizer: get_scheduler("cosine", optimizer, args.max_steps // 10, args.max_steps),
    )
    training.model.train()
    for step, windows in enumerate(batches(stream, args, ranks), start=1):
        windows = windows.to(ranks.device)
        logits = training.model(input_ids=windows[:, :-1], use_cache=False).logits
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), windows[:, 1:].flatten())
        training.backward(loss)
        training.step()
        if step % 10 == 0 or step == args.max_steps:
            mean = ranks.mean(loss)
            ranks.metrics.log({"train_loss": mean}, step=step, total=args.max_steps)
            if ranks.is_main and step % 50 == 0:
                print(f"step {step} of {args.max_steps}: loss {mean:.4f}", flush=True)
    return dict(training.weights())


def batches(stream: torch.Tensor, args: Namespace, ranks: runtime.Ranks) -> Iterator[torch.Tensor]:
    """Yield windows of one token more than max_seq_length, other ones on each rank."""
    generator = torch.Generator().manual_seed(args.seed * 1000 + ranks.rank)
    offsets = torch.arange(args.max_seq_length + 1)
    for _ in range(args.max_steps):
        starts = torch.randint(
            len(stream) - args.max_seq_length, (args.per_device_train_batch_size, 1), generator=generator
        )
        yield stream[starts + offsets]


if __name__ == "__main__":
    runtime.main(create)
