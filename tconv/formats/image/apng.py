"""APNG (W3C PNG, third edition, section 10): the frames of an animation as browsers show them, one after the other."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tconv.ops import Array

_FORM = struct.Struct(">IIIIIHHBB")
_CLEAR, _RESTORE = 1, 2  # what becomes of a frame's place when its time is over
_OVER = 1  # how a frame is put there: over what is there already, instead of in its stead


@dataclass(frozen=True)
class Frame:
    """An fcTL chunk: where on the canvas the frame goes, and how."""

    width: int
    height: int
    left: int
    top: int
    disposal: int
    blending: int

    @property
    def place(self) -> tuple[slice, slice]:
        return slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)


def control(body: bytes, width: int, height: int) -> Frame:
    """The frame that the body of an fcTL chunk describes; ``ValueError`` if it is not on the canvas."""
    _, across, down, left, top, _, _, disposal, blending = _FORM.unpack(body)
    frame = Frame(across, down, left, top, disposal, blending)
    if not (0 < frame.width <= width - frame.left and 0 < frame.height <= height - frame.top):
        where = f" at {frame.left},{frame.top}" if frame.left or frame.top else ""
        raise ValueError(f"a frame of {frame.width}x{frame.height}{where} on a canvas of {width}x{height}")
    if disposal > _RESTORE or blending > _OVER:
        raise ValueError(f"a frame with disposal {disposal} and blending {blending}")
    return frame


def uncovers(frames: list[Frame], width: int, height: int) -> bool:
    """Whether the canvas, which is clear at first, may be seen through opaque frames."""
    first, *others = frames
    whole = (first.width, first.height) == (width, height)
    return not whole or (bool(others) and first.disposal != 0) or any(f.disposal == _CLEAR for f in others[:-1])


def composited(frames: Iterable[tuple[Frame, Array]], width: int, height: int) -> Iterator[Array]:
    """The canvas (height, width, channels) as each frame leaves it; the last channel of 2 or 4 is alpha."""
    canvas: Array | None = None
    for frame, pixels in frames:
        fresh = canvas is None
        if canvas is None:
            canvas = np.zeros((height, width, pixels.shape[2]), pixels.dtype)
        place = canvas[frame.place]
        before = place.copy()
        over = frame.blending == _OVER and not fresh and pixels.shape[2] in (2, 4)
        place[...] = _over(pixels, before) if over else pixels
        yield canvas.copy()
        if frame.disposal == _CLEAR:
            place[...] = 0
        elif frame.disposal == _RESTORE:
            place[...] = before


def _over(front: Array, back: Array) -> Array:
    """Colours with alpha over others, rounded once: the operator "over" (Porter and Duff, 1984) of plain colours."""
    top = np.iinfo(front.dtype).max
    a, b = (x[..., -1:].astype(np.float64) / top for x in (front, back))
    behind = b * (1 - a)
    alpha = a + behind
    colours = front[..., :-1] * a + back[..., :-1] * behind
    out = np.empty_like(front)
    out[..., :-1] = np.rint(np.divide(colours, alpha, out=np.zeros_like(colours), where=alpha > 0))
    out[..., -1:] = np.rint(alpha * top)
    return out
