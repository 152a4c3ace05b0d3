"""Makes tiny.pt, a training checkpoint as PyTorch writes it, for the examples. Needs torch; tconv does not.

python examples/make_checkpoint.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn


def main(folder: Path) -> None:
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
    torch.save(state, folder / "tiny.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
