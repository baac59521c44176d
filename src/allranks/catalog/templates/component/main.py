"""Write the squares of numbers, every rank its share of them. An ordinary script without allranks."""

import argparse
import os
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--count", type=int, default=100)
parser.add_argument("--squares", type=Path, required=True)
args = parser.parse_args()

rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
numbers = range(rank, args.count, world_size)
args.squares.mkdir(parents=True, exist_ok=True)
(args.squares / f"{rank}.csv").write_text("".join(f"{number},{number * number}\n" for number in numbers))
print(f"rank {rank} of {world_size} wrote {len(numbers)} lines")
