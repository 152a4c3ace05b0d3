"""What one conversion is asked to do, as data; the defaults are those of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from tconv.patterns import Patterns
from tconv.pipeline import Sugar
from tconv.step import Step
from tconv.tensor import Range
from tconv.writer import ReadOptions, WriteOptions


@dataclass(frozen=True)
class Request:
    """Everything that was asked. ``steps`` is an explicit chain, ``sugar`` the options that stand for one.

    ``own_channels``: pictures that are written as pictures keep their own channels, whatever ``read`` says of them.
    ``labels``: a file of them, or from class folders: if there are any (auto), in any case, or never (none); or no
    labels, but the list of paths.
    """

    inputs: tuple[str, ...]
    output: str | None = None
    format: str | None = None
    sugar: Sugar = field(default_factory=Sugar)
    steps: tuple[Step, ...] = ()
    read: ReadOptions = field(default_factory=ReadOptions)
    own_channels: bool = False
    write: WriteOptions = field(default_factory=WriteOptions)
    range: Range | None = None
    input_layout: str | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    select: str | None = None
    all: bool = False
    fields: str | None = None
    strip_prefix: tuple[str, ...] = ()
    split: bool = False
    shard_size: int | None = None
    tie: bool = False
    batch_size: int | None = None
    drop_last: bool = False
    on_overflow: str | None = None
    keep: tuple[str, ...] = ()
    policy: str | None = None
    max_error: float | None = None
    min_sqnr: float | None = None
    report: Path | None = None
    verify: bool = False
    labels: Path | Literal["auto", "folders", "paths", "none"] = "auto"
    on_bad: Literal["error", "skip"] = "error"
    workers: int | None = None
    max_memory: int = 1 << 30
    device: str | None = None
    device_batch: int | None = None
    save_device: bool = False
    gpu_jpeg: bool = False
    force: bool = False
    resume: bool = False

    @property
    def wanted(self) -> Patterns:
        """What files are called that are to be opened; everything where names are others than those of files."""
        return Patterns() if self.select or self.strip_prefix else Patterns(self.only, self.skip)


class Progress(Protocol):
    """Hears how far a job is: phases, each with its total of files or bytes. ``advance`` comes from any thread."""

    def begin(self, phase: str, total: int, unit: Literal["files", "bytes"]) -> None: ...
    def advance(self, amount: int) -> None: ...


class Silent:
    """A progress that nobody sees."""

    def begin(self, phase: str, total: int, unit: Literal["files", "bytes"]) -> None: ...
    def advance(self, amount: int) -> None: ...
