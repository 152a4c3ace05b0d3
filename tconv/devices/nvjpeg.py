"""JPEG decoded on a GPU by nvJPEG, through torchvision: other pixels than those of the exact decoder, by a little."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import torch
import torchvision
from torchvision.io import ImageReadMode, decode_jpeg

from tconv.devices.lane import lane, on
from tconv.devices.names import BY_TORCH
from tconv.errors import TconvError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tconv.ops import Array

_left: set[Path] = set()
_lock = threading.Lock()


def check(device: str) -> None:
    """Raise ``TconvError`` if torchvision has no decoder for it."""
    if device != BY_TORCH and torchvision.version.cuda is None:
        raise TconvError("this torchvision is built without CUDA, which --gpu-jpeg needs", remedy="leave it out")


def decoded(data: bytes, device: str) -> Array | None:
    """(height, width, 3) of RGB from one whole JPEG in colour; None where nvJPEG does not take it or has no room.

    torchvision decodes on a stream of its own, into memory that it takes from that of the current stream without
    waiting for what is still to be done with it there. So that is the stream for work of this thread, on which there is
    nothing to be done now, and not that of the program that called.
    """
    way = lane(device)
    try:
        with on(way.work):
            encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            pixels = decode_jpeg(encoded, mode=ImageReadMode.RGB, device=way.device)
            found: Array = pixels.permute(1, 2, 0).contiguous().cpu().numpy()
            return found
    except RuntimeError:
        return None


def leave(path: Path) -> None:
    """Remember that a file is left to the exact decoder."""
    with _lock:
        _left.add(path)


def left(paths: Iterable[Path]) -> int:
    """How many of these files were left to the exact decoder since that was asked for the last time."""
    with _lock:
        found = _left.intersection(paths)
        _left.difference_update(found)
    return len(found)
