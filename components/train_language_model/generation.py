"""Text that a language model writes."""

from __future__ import annotations

import torch
from language_model import LanguageModel
from torch import Generator, Tensor


def continued(
    model: LanguageModel, prompt: str, *, max_tokens: int, temperature: float, top_k: int, generator: Generator
) -> str:
    """The prompt with what the model writes after it, until a text ends or max_tokens are written.

    temperature: 0 takes the likeliest token each time; 1 draws as the model says; less than 1 is more careful
    top_k:       draw among so many of the likeliest; 0 among all
    generator:   on the CPU; its seed decides the text
    """
    # A prompt of no token, too, needs one that the model has seen texts begin after.
    tokens = [model.end, *model.tokenizer.encode(prompt).ids]
    with torch.inference_mode():
        for _ in range(max_tokens):
            seen = torch.tensor([tokens[-model.shape.block_size :]])
            following = draw(model.network(seen)[0, -1], temperature, top_k, generator)
            if following == model.end:
                break
            tokens.append(following)
    text: str = model.tokenizer.decode(tokens[1:])
    return text


def draw(scores: Tensor, temperature: float, top_k: int, generator: Generator) -> int:
    """A token by its scores (vocabulary_size,)."""
    if temperature == 0:
        return int(scores.argmax())
    if 0 < top_k < len(scores):
        scores = scores.masked_fill(scores < scores.topk(top_k).values[-1], -torch.inf)
    probabilities = torch.softmax(scores.float() / temperature, dim=0)
    return int(torch.multinomial(probabilities, 1, generator=generator))
