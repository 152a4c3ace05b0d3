"""What a cast in memory lost: refused as the command line refuses it, or told to the log ``tconv``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tconv import casts
from tconv.arrays.dtype import native
from tconv.errors import TconvError
from tconv.notes import folded

if TYPE_CHECKING:
    from pathlib import Path

    from tconv.account import Account
    from tconv.dtypes import DType
    from tconv.lost import Lost
    from tconv.ops import Array

SATURATE = 'on_overflow="saturate"'
log = logging.getLogger("tconv")


def log_all(notes: Iterable[str]) -> None:
    """Log what is said of files; what is said of many is one line."""
    for note in folded(notes):
        log.warning("%s", note)


def rounded(x: Array, src: DType, dst: DType, on_overflow: str) -> Array:
    """``x`` as ``dst``, rounded once. Raises ``TconvError`` for what does not fit, unless ``on_overflow`` allows it."""
    made, lost = casts.cast(x, dst, src=src, on_overflow=on_overflow)
    step = f"cast({dst})"
    if lost.bad(on_overflow):
        raise TconvError(
            lost.describe(src, dst), remedy=ways(lost, dst, f'tconv.cast(x, "{dst}", {SATURATE})'), step=step
        )
    if lost:
        log.warning("%s: %s", step, lost.describe(src, dst))
    return made.view(native(dst))


def judge(account: Account, file: str | Path, tensor: str) -> None:
    """Raise ``TconvError`` for the casts of one tensor that lost what their steps do not allow; log the rest."""
    for key, lost in account.refused():
        raise TconvError(
            lost.describe(key.src, key.dst), remedy=ways(lost, key.dst), file=file, tensor=tensor, step=key.step
        )
    for key, lost in account.by_cast.items():
        if lost:
            log.warning("%s", TconvError(lost.describe(key.src, key.dst), file=file, tensor=tensor, step=key.step))
    for stated, lost in account.by_range.items():
        if lost:
            reason = lost.outside(stated.range, stated.dtype, stated.called)
            log.warning("%s", TconvError(reason, file=file, tensor=tensor, step=stated.step))


def ways(lost: Lost, dst: DType, saturate: str = SATURATE) -> str:
    """What can be done about a refusal, in the words of Python; ``saturate``: how to say that policy."""
    if not (lost.overflow or lost.infinite):
        return f"{dst} has no NaN: replace them first, or choose a float dtype"
    inf = ', "inf" makes them infinite' if dst.has_inf else ""
    nan = f"; NaN have to be replaced first, as {dst} has none" if lost.nan else ""
    return f"{saturate} clamps to the range{inf}{nan}"
