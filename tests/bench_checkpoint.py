"""How long a checkpoint to float16 takes beside torch and beside a copy: ``python -m tests.bench_checkpoint [MB]``.

Prints a table, asserts nothing. The checkpoint has 1000 MB of float32 unless another size is given, and is made in the
temporary folder: where TMPDIR is a RAM disk, programs are compared and not disks. tconv flushes what it has written to
the disk before it puts it in place; the others leave that to the system.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from tests.side_by_side import TCONV, Row, compare, report

HALF = """
import sys, torch
def half(x):
    if isinstance(x, dict):
        return {k: half(v) for k, v in x.items()}
    return x.half() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
torch.save(half(torch.load(sys.argv[1], weights_only=True, mmap=sys.argv[3] == "mmap")), sys.argv[2])
"""
SMALL = 6  # MB, of which a copy takes no time
ROUNDS = 5
LAYER = 16 << 20  # bytes


def make(path: Path, megabytes: int) -> Path:
    """Layers of normal weights, as a training script saves them."""
    torch.manual_seed(0)
    count = max(1, megabytes * 1_000_000 // LAYER)
    width = megabytes * 1_000_000 // count // 4 // 1024
    torch.save({f"layers.{n}.weight": torch.randn(width, 1024) * 0.02 for n in range(count)}, path)
    return path


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.pt")
        for megabytes in (size, SMALL):
            path = str(make(Path(folder) / "ckpt.pt", megabytes))
            rivals: dict[str, Sequence[str]] = {
                "torch.load, .half(), torch.save": (sys.executable, "-c", HALF, path, out, "all"),
                "the same with mmap=True": (sys.executable, "-c", HALF, path, out, "mmap"),
            }
            if megabytes > SMALL:
                rivals["cp"] = ("cp", path, out)
            mine = (*TCONV, path, "--half", "--force", "-o", out)
            rows += compare(f"a .pt of {megabytes} MB to float16", mine, rivals, ROUNDS)
    for line in report(rows):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
