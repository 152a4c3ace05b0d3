"""The options of the command line as keyword arguments: their names and types, and what is made of them."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from tconv import arguments
from tconv.api.pipelines import settings_of, steps_of
from tconv.errors import UsageError
from tconv.pipeline import Sugar
from tconv.request import Request
from tconv.settings import applied
from tconv.suggest import did_you_mean
from tconv.writer import ReadOptions, WriteOptions

if TYPE_CHECKING:
    from tconv.api.pipelines import Steps


# A file, a folder, a glob, or several of them.
Source: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class ReadingOptions(TypedDict, total=False):
    """How files are read and which of their tensors are taken: keyword arguments of ``open``, ``convert`` and ``plan``.

    They do what the options of these names do on the command line, whose ``--help`` says more.
    """

    channels: Literal["rgb", "bgr", "gray", "rgba", "keep"]
    """Of images; ``keep`` gives the file's own. By default ``"rgb"``."""
    alpha: Literal["white", "black", "drop"]
    """What an image's alpha is blended over, or that it is dropped; for rgb, bgr and gray. By default ``"white"``."""
    palette: Literal["rgb", "index"]
    """The colours of an image with a palette, or its indices. By default ``"rgb"``."""
    frames: Literal["first", "all"]
    """Of an image with several; all give an axis N. By default ``"first"``."""
    exif: bool
    """Whether images are turned upright. By default True."""
    max_pixels: int | None
    """The largest image that is decoded; None for Pillow's limit."""
    fast: bool
    """JPEGs that a resize makes smaller may be decoded at a fraction of their size."""
    range: tuple[float, float] | None
    """In which the values lie, where the files do not say: (0, 1), (0, 255)."""
    input_layout: str | None
    """The axes of arrays: ``"HWC"``, ``"NCHW"``."""
    only: str | Sequence[str]
    """Globs: tensors whose name matches one."""
    skip: str | Sequence[str]
    """Globs: not those."""
    select: str | None
    """The keys of a part of a checkpoint, joined by dots: ``"model"``."""
    all: bool
    """All of a checkpoint is converted, the state of its optimizer too."""
    fields: str | None
    """A glob for the integer fields of data that arithmetic may change; ``""`` for none of them."""
    strip_prefix: str | Sequence[str]
    """What names lose at their beginning: ``"module."``."""
    workers: int | None
    """Threads; None for one a core."""
    max_memory: int
    """Bytes for the values under way. By default 1 GiB."""


class Options(ReadingOptions, total=False):
    """How files are written, besides: keyword arguments of ``convert`` and ``plan``."""

    format: str | None
    """Of what goes into a folder: ``"npy"``, ``"safetensors"`` …"""
    stack: bool
    """All tensors become one, along a new axis N in front."""
    split: bool
    """A file for each tensor, into a folder."""
    batch_size: int | None
    """Stacked images to a file, by names that sort."""
    drop_last: bool
    """No smaller last batch."""
    labels: str | os.PathLike[str]
    """A CSV or JSONL file of labels; ``"folders"``, ``"paths"`` (the list of names only) or ``"none"``. By default
    class folders speak for themselves."""
    quality: int | None
    """Of JPEG, 1 to 100."""
    tie: bool
    """Tied weights go once into .safetensors, with all their names."""
    shard_size: int | None
    """Bytes: weights go into a folder of shards of that size."""
    on_overflow: Literal["error", "saturate", "inf", "keep"] | None
    """What becomes of values that do not fit; None refuses them."""
    keep: str | Sequence[str]
    """Globs (``GLOB`` or ``GLOB=DTYPE``): tensors that are not cast, or to another dtype."""
    policy: Literal["amp"] | None
    """``"amp"``: normalization layers are float32."""
    max_error: float | None
    """The largest relative error of a value for which a tensor is still cast."""
    min_sqnr: float | None
    """The least signal-to-noise ratio in dB for which a tensor is quantized."""
    device: str | None
    """Where the steps are done as far as they can: ``"cuda"``, ``"cuda:1"``, ``"mps"``, ``"cpu"``, ``"auto"``."""
    device_batch: int | None
    """Tensors that go there at once, at most; None for 64."""
    save_device: bool
    """In ``.pt`` they are tensors of that device, not of the CPU."""
    gpu_jpeg: bool
    """That device, a CUDA one, decodes JPEGs, by torchvision; pixels differ a little from the exact ones."""
    report: str | os.PathLike[str] | None
    """A JSON file that tells what was lost."""
    verify: bool
    """What was written is read again and compared."""
    on_bad: Literal["error", "skip"]
    """Whether files that cannot be read are refused, or left out. By default ``"error"``."""
    force: bool
    """What exists is replaced."""
    resume: bool
    """Go on with the shards of an interrupted run."""


_AS_STEPS = {  # what the command line has as an option
    "resize": "resize(224x224) | scale",
    "pad": "pad",
    "normalize": "scale",
    "stats": "scale | normalize(imagenet)",
    "denormalize": "denormalize(imagenet)",
    "layout": "permute(CHW)",
    "quantize": "quantize(int8)",
    "to": "cast(float16)",
    "half": "cast(float16)",
    "bf16": "cast(bfloat16)",
}
_MOST = {"quality": 100, "workers": 256}


def request(src: Source, dst: str | os.PathLike[str] | None, steps: Steps, options: Mapping[str, Any]) -> Request:
    """All that was asked, checked as far as no file is needed for it. Raises ``UsageError``."""
    types = typing.get_type_hints(Options)
    _refuse_unknown(options, types)
    said = arguments.options(options, types)
    given = set(said)
    for name, most in _MOST.items():
        if said.get(name, 0) > most:
            raise UsageError(f"{name} takes a whole number from 1 to {most}, not {said[name]}")
    reading = {f.name: said.pop(f.name) for f in dataclasses.fields(ReadOptions) if f.name in said}
    writing = {f.name: said.pop(f.name) for f in dataclasses.fields(WriteOptions) if f.name in said}
    if "input_layout" in said:
        said["input_layout"] = arguments.axes(said["input_layout"], "input_layout")
    if "report" in said:
        said["report"] = Path(arguments.path(said["report"], "report"))
    if said.get("labels", "auto") not in ("auto", "folders", "paths", "none"):
        said["labels"] = Path(arguments.path(said["labels"], "labels"))
    asked = Request(
        inputs=arguments.words(src),
        output=None if dst is None else arguments.path(dst, "dst"),
        steps=steps_of(steps),
        sugar=Sugar(stack=said.pop("stack", False)),
        read=ReadOptions(**reading),
        own_channels=not {"channels", "alpha"} & given,
        write=WriteOptions(**writing),
        **said,
    )
    settings = settings_of(steps)
    if {"channels", "alpha"} & settings.keys():
        asked = dataclasses.replace(asked, own_channels=False)
    return applied(asked, settings, given)


def refuse_other_than_reading(options: Mapping[str, Any]) -> None:
    """Refuse what says how to write."""
    _refuse_unknown(options, typing.get_type_hints(ReadingOptions))


def _refuse_unknown(said: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in said:
        if name in _AS_STEPS:
            raise UsageError(f"{name!r} is no option but a step", remedy=f"for example steps={_AS_STEPS[name]!r}")
        if name not in known:
            raise UsageError(
                f"there is no option {name!r}", remedy=did_you_mean(name, known, f"there are {', '.join(known)}")
            )
