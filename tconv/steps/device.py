"""device: where what follows is done, on an accelerator or on the CPU; what it makes of the values stays the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tconv.devices.names import CPU, WORDS, check, resolve
from tconv.ops import MoveTo, place
from tconv.step import Step

if TYPE_CHECKING:
    from tconv.tensor import Stream


@dataclass(frozen=True)
class Device(Step):
    """``where``: cuda, cuda:1 …, mps, cpu, or auto for the best there is. What cannot be done there as well as on the
    CPU, bit for bit, is done on the CPU, and the plan says so. A device that is not there is an error.
    """

    name: ClassVar[str] = "device"
    usage: ClassVar[str] = "device(cuda) | scale | cast(float16) | device(cpu)"
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"where": WORDS}
    open_choices: ClassVar[Sequence[str]] = ("where",)

    where: str

    def __post_init__(self) -> None:
        check(self.where)

    def apply(self, stream: Stream) -> Stream:
        move = MoveTo(device=resolve(self.where).device, step=str(self))
        stays = move.device == CPU
        return stream.with_tensors([t if stays and place(t.ops) is None else t.then(move) for t in stream.tensors])

    def __str__(self) -> str:
        return f"device({self.where})"
