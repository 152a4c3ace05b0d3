"""What is different where a job writes pictures: the format, how files are read, the steps that make one of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tconv import registry, targets
from tconv.errors import UsageError
from tconv.pipeline import steps_from_text
from tconv.suggest import listed

if TYPE_CHECKING:
    from tconv.inputs import Input
    from tconv.registry import Format
    from tconv.request import Request
    from tconv.step import Step
    from tconv.writer import ReadOptions


def form(request: Request) -> Format | None:
    """The format that the options name, None if they leave it to the inputs; of what is denormalized it is PNG.

    Raises ``UsageError`` for options that do not go together, and for ``--denormalize`` to what holds no pictures.
    """
    named = targets.check_words(request.output, request.format, request.split, request.shard_size is not None)
    if request.sugar.denormalize is None:
        return named
    if request.output is not None and named is None:
        return registry.FORMATS["png"]
    if not _is_picture(named):
        raise UsageError(
            "--denormalize makes pictures",
            remedy="say where: -o DIR/, -o FILE.png; for numbers write --step 'denormalize(imagenet)'",
        )
    return named


def _is_picture(form: Format | None) -> bool:
    return form is not None and form.group == "image"


def refuse_unheld(request: Request, form: Format | None, chain: Sequence[Step]) -> None:
    """Refuse what the named format can do nothing with: a quality, a check bit for bit, a cast to what it lacks."""
    asked = [name for name, on in (("--quality", request.write.quality), ("--verify", request.verify)) if on]
    lossy = form is not None and bool(asked) and registry.writer(form).lossy
    if "--quality" in asked and not lossy:
        raise UsageError("--quality is for JPEG, and none is written", remedy="leave it out, or say --format jpeg")
    if "--verify" in asked and lossy:
        raise UsageError("--verify compares bit for bit, and JPEG is lossy", remedy="write a PNG, or leave it out")
    last: Any = chain[-1] if chain else None
    if form is None or not _is_picture(form) or last is None or last.name != "cast":
        return
    held: Any = registry.writer(form)
    if last.target.name not in held.channels:
        raise UsageError(
            f"{form.title} holds {listed(held.channels)}, not {last.target}",
            remedy="for numbers write .npy or .safetensors; of floats in 0…1 --step 'scale(uint8)' makes pixels",
        )


def reading(request: Request, form: Format | None) -> ReadOptions:
    """How inputs are read: those that are written as pictures keep their channels, unless the user says which."""
    if _is_picture(form) and request.own_channels:
        return replace(request.read, channels="own")
    return request.read


def one_by_one(steps: list[Step], request: Request, form: Format | None, inputs: Sequence[Input]) -> list[Step]:
    """The chain with what makes pictures of arrays: axes as files have them, and no batches.

    Options find the axes known; in a chain of his own, the user's steps come first.
    """
    names = {step.name for step in steps}
    arrays = request.read.frames == "all" or any(one.format.group != "image" for one in inputs)
    if not (_is_picture(form) and (arrays or "stack" in names)):
        return steps
    arrange, apart = (steps_from_text([n]) if n not in names else [] for n in ("pictures", "unstack"))
    return [*steps, *arrange, *apart] if request.steps else [*arrange, *steps, *apart]
