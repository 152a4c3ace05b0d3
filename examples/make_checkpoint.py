"""Makes tiny.pt, wrapped.pt, tied.pt and hot.pt, checkpoints as PyTorch writes them, for the examples. It needs torch.

python examples/make_checkpoint.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn


def tiny(path: Path) -> None:
    """A small convolutional classifier after one step of training, its optimizer beside it."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = model(torch.rand(4, 3, 16, 16)).square().mean()
    loss.backward()
    optimizer.step()
    state = {"epoch": 1, "loss": loss.item(), "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path)


def wrapped(path: Path) -> None:
    """A model that was trained in parallel: every name begins with ``module.``."""
    torch.manual_seed(0)
    model = nn.DataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))
    torch.save({"epoch": 7, "accuracy": 0.96875, "model": model.state_dict()}, path)


def tied(path: Path) -> None:
    """A language model whose last layer is its first, as in GPT-2."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"embed": nn.Embedding(64, 16), "head": nn.Linear(16, 64, bias=False)})
    model["head"].weight = model["embed"].weight
    torch.save(model.state_dict(), path)


def hot(path: Path) -> None:
    """A model with one weight that half precision has no number for."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 3))
    with torch.no_grad():
        model[3].weight[1, 2] = 70000
    torch.save(model.state_dict(), path)


def main(folder: Path) -> None:
    tiny(folder / "tiny.pt")
    wrapped(folder / "wrapped.pt")
    tied(folder / "tied.pt")
    hot(folder / "hot.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
