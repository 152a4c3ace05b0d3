"""pictures: the axes of arrays that are pictures, named where their shape tells and in the order that files have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from tconv.errors import TconvError
from tconv.ops import Permute
from tconv.step import Step
from tconv.steps.geometry import on_each

if TYPE_CHECKING:
    from tconv.tensor import Stream, Tensor

_ORDERS = {frozenset(axes): axes for axes in ("HW", "HWC", "NHW", "NHWC")}
_CHANNELS = (1, 3)  # by which channels are known: four may be opacity, or the latent of a model
_HOW = "name the axes: --input-layout CHW, HWC, NCHW, NHW …"


@dataclass(frozen=True)
class Pictures(Step):
    """Each tensor becomes HWC or HW, a batch NHWC or NHW, whatever the order of its axes.

    Where nobody named them, they are those that only one order makes sense of: (H, W); one or three channels either in
    front of two axes that are no channels, (3, H, W) and (N, 3, H, W), or behind them. All else is refused.
    """

    name: ClassVar[str] = "pictures"
    usage: ClassVar[str] = "pictures"

    def apply(self, stream: Stream) -> Stream:
        return on_each(stream, self, self._arranged)

    def _arranged(self, tensor: Tensor) -> Tensor:
        axes = tensor.spec.axes or _guessed(tensor.spec.shape)
        order = _ORDERS.get(frozenset(axes))
        if order is None:
            raise TconvError(f"its axes {axes} are not those of pictures", remedy="leave it out with --skip")
        named = replace(tensor, spec=replace(tensor.spec, axes=axes))
        return named if axes == order else named.then(Permute(perm=tuple(map(axes.index, order)), step=str(self)))

    def __str__(self) -> str:
        return "pictures"


def _guessed(shape: tuple[int, ...]) -> str:
    """The axes that a shape can only mean. Raises ``TconvError`` if there are none or several."""
    if len(shape) == 2:
        return "HW"
    if len(shape) not in (3, 4):
        raise TconvError(f"an array of the shape {shape} is no picture", remedy="leave it out with --skip")
    batch = "N" * (len(shape) - 3)
    first, last = shape[len(batch)] in _CHANNELS, shape[-1] in _CHANNELS
    if first == last:
        raise TconvError(f"nobody said which axes of {shape} are height, width and channels", remedy=_HOW)
    return f"{batch}CHW" if first else f"{batch}HWC"
