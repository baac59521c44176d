"""Classify the test points, and report how many are correct."""

import argparse
import json
from pathlib import Path

import torch
from network import network

from allranks import runtime


def evaluate(ranks: runtime.Ranks) -> None:
    data = torch.load(args.points / "test.pt")
    model = network()
    model.load_state_dict(torch.load(args.model / "model.pt"))
    with torch.no_grad():
        correct = (model(data["points"]).argmax(dim=1) == data["classes"]).sum().item()
    report = {"accuracy": correct / len(data["points"]), "count": len(data["points"])}
    ranks.metrics.log({"accuracy": report["accuracy"]}, step=0)
    args.report.parent.mkdir(parents=True, exist_ok=True)
    args.report.write_text(json.dumps(report) + "\n")
    print(f"accuracy {report['accuracy']:.4f} on {report['count']} points")


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--points", type=Path, required=True)
parser.add_argument("--model", type=Path, required=True)
parser.add_argument("--report", type=Path, required=True)

if __name__ == "__main__":
    args = parser.parse_args()
    runtime.main(evaluate)
