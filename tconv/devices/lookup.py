"""Tables of 256 entries on a device: bytes looked up, and counted for the account of what went through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


def look_up(x: Tensor, table: Tensor, channel: Tensor | None) -> tuple[Tensor, Tensor]:
    """What the bytes ``x`` (tensors of a batch, their elements) are in ``table`` (rows of 256); and how often each
    entry occurs, by tensor, row and byte. ``channel``: the row for each element; None for the only one.
    """
    entry = x.to(torch.int32)
    if channel is not None:
        entry = entry + 256 * channel
    found = table.reshape(-1).index_select(0, entry.reshape(-1)).reshape(x.shape)
    tensors, entries = len(x), table.numel()
    place = entry.to(torch.int64) + entries * torch.arange(tensors, device=x.device)[:, None]
    counts = torch.bincount(place.reshape(-1), minlength=tensors * entries)
    return found, counts.reshape(tensors, *table.shape)
