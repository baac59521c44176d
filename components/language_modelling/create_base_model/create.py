"""Build a small Llama and its tokenizer from texts, and pre-train it for a number of steps on all ranks."""

from argparse import Namespace

import torch
from tokenizers import ByteLevelBPETokenizer, Tokenizer
from torch import Tensor
from transformers import LlamaConfig, PreTrainedTokenizerFast, get_scheduler

from allranks import runtime
from allranks_steps.finetuning import records
from allranks_steps.messages import bad_input
from allranks_steps.text.llama import Llama, configuration, save_network
from allranks_steps.text.windows import divided

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
    part = records.read(args.text, "text")
    if "text" not in part.column_names:
        found = f"the columns {', '.join(part.column_names)}"
        raise bad_input("input text", found, "the column text", "give JSONL files of objects with a text")
    texts = list(map(str, part["text"]))
    tokenizer = train_tokenizer(texts, args.vocab_size)
    config = configure(args, tokenizer)
    torch.manual_seed(args.seed)
    model = Llama(config)
    if ranks.is_main:
        print(f"{model.num_parameters():,} weights, {len(tokenizer):,} tokens in the vocabulary", flush=True)
    tokens = [token for ids in tokenizer(texts)["input_ids"] for token in (*ids, tokenizer.eos_token_id)]
    weights = pretrain(model, torch.tensor(tokens), args, ranks)
    if ranks.is_main:
        save_network(args.model, config, weights)
        tokenizer.save_pretrained(args.model)
    ranks.barrier()


def train_tokenizer(texts: list[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer with ChatML's template."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(
        texts, vocab_size, 0, show_progress=False, special_tokens=[END, START_OF_TURN, END_OF_TURN]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(tokenizer.to_str()), eos_token=END, pad_token=END
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def configure(args: Namespace, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """Return the configuration of the model. Raise InputError if its dimensions do not fit together."""
    if args.max_seq_length > args.max_position_embeddings:
        found = f"{args.max_seq_length} tokens for {args.max_position_embeddings} positions"
        fix = "make it smaller, or max_position_embeddings larger"
        raise bad_input("input max_seq_length", found, "at most max_position_embeddings", fix)
    return configuration(
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


def pretrain(model: Llama, stream: Tensor, args: Namespace, ranks: runtime.Ranks) -> dict[str, Tensor]:
    """Train on random windows of the tokens, other ones on each rank, and return the weights on rank 0.

    Raise InputError for too few tokens.
    """
    length = args.max_seq_length
    if len(stream) <= length:
        found = f"{length}, and {len(stream)} tokens of text"
        raise bad_input("input max_seq_length", found, "fewer than the tokens", "make it smaller")
    training = ranks.strategy.prepare(
        model,
        torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.01),
        runtime.TrainingSettings(),
        schedule=lambda optimizer: get_scheduler("cosine", optimizer, args.max_steps // 10, args.max_steps),
    )
    training.model.train()
    generator = torch.Generator().manual_seed(args.seed * 1000 + ranks.rank)
    for step in range(1, args.max_steps + 1):
        starts = torch.randint(len(stream) - length, (args.per_device_train_batch_size, 1), generator=generator)
        loss = training.model(*divided(stream[starts + torch.arange(length + 1)].to(ranks.device)))
        training.backward(loss)
        training.step()
        if step % 10 == 0 or step == args.max_steps:
            mean = ranks.mean(loss)
            ranks.metrics.log({"train_loss": mean}, step=step, total=args.max_steps)
            if ranks.is_main and step % 50 == 0:
                print(f"step {step} of {args.max_steps}: loss {mean:.4f}", flush=True)
    return dict(training.weights())


if __name__ == "__main__":
    runtime.main(create)
