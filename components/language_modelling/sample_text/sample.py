"""Let a language model continue a prompt, and write what it says to a file and to the log."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from allranks_steps.text.generation import continued
from allranks_steps.text.language_model import BadModel, read

BETWEEN = "\n" + "-" * 40 + "\n"


def main() -> None:
    args = arguments()
    try:
        model = read(args.model)
    except BadModel as error:
        print(f"sample_text: {error}", file=sys.stderr)
        sys.exit(2)
    # Decoding one token at a time is too little work for several threads: synchronisation would dominate.
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(args.seed)
    texts = [
        continued(
            model,
            args.prompt,
            max_tokens=args.max_tokens,
            temperature=args.temperature,
            top_k=args.top_k,
            generator=generator,
        )
        for _ in range(args.samples)
    ]
    content = BETWEEN.join(texts) + "\n"
    args.text.parent.mkdir(parents=True, exist_ok=True)
    args.text.write_text(content, encoding="utf-8")
    print(content, end="")


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--prompt", default="def ")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--max_tokens", type=int, default=120)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--top_k", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
