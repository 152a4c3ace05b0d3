"""What options of ``convert`` and of verbs like it ask for: checked before any file is opened, in the words typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tconv.errors import UsageError

if TYPE_CHECKING:
    import typer

    from tconv.pipeline import Sugar
    from tconv.request import Request
    from tconv.step import Step


def one_dtype(named: list[str | None]) -> str | None:
    """The one that was named, by its own name."""
    from tconv.dtypes import dtype

    names = [str(dtype(name)) for name in named if name is not None]
    if len(names) > 1:
        raise UsageError(
            f"one dtype only, not {' and '.join(names)}", remedy="--to and --half, --bf16 … exclude each other"
        )
    return names[0] if names else None


_OPTIONS = {  # for each step that an option stands for, the option and how it is written
    "resize": ("--resize", "--resize 224 for the shorter side, --resize 256x192 for height x width"),
    "pad": ("--pad", "--pad for black, --pad 114 for grey"),
    "normalize": ("--stats", "--stats imagenet, --stats 0.5/0.5 (MEAN/STD), --stats 0.4,0.5,0.6/0.2,0.2,0.2"),
    "denormalize": ("--denormalize", "--denormalize imagenet, --denormalize 0.5/0.5 (MEAN/STD), --denormalize none"),
    "quantize": ("--quantize", "--quantize int8, --quantize 'int4, group=128'"),
    "permute": ("--layout", "--layout CHW, --layout NCHW; by numbers it is --step 'permute(2, 0, 1)'"),
}


def check_sugar(sugar: Sugar, input_layout: str) -> None:
    """Refuse options that stand for wrong steps, in the words of the options."""
    from tconv.pipeline import steps_from_text

    if sugar.denormalize is not None and (sugar.forward() or sugar.stack):
        raise UsageError(
            "--denormalize is the way back, and cannot be mixed with the options that make tensors of pictures",
            remedy="leave one of the two out; any order of steps can be written with --step",
        )
    layout = (sugar.layout or "").upper()
    if "B" in layout and "B" not in input_layout.upper():
        raise UsageError("the axis of a batch is called N", remedy=f"write {layout.replace('B', 'N')}", step="--layout")
    for option, stats in (("--stats", sugar.stats), ("--denormalize", sugar.denormalize)):
        if stats and re.fullmatch(r"[-+0-9.,eE ]+", stats):
            remedy = f"write MEAN/STD, as in {option} 0.5/0.5"
            raise UsageError("it takes mean and std", remedy=remedy, step=f"{option} {stats}")
    given = {
        "resize": sugar.resize,
        "pad": sugar.pad,
        "normalize": sugar.stats,
        "denormalize": sugar.denormalize,
        "quantize": sugar.quantize,
        "permute": sugar.layout,
    }
    for text in sugar.chain():
        name = text.partition("(")[0]
        try:
            steps_from_text([text])
        except UsageError as problem:
            if name not in _OPTIONS:
                raise
            option, example = _OPTIONS[name]
            typed = f"{option} {given[name] or repr(given[name])}"
            of_steps = not problem.remedy or f"{name}(" in problem.remedy
            remedy = f"for example {example}" if of_steps else problem.remedy
            raise UsageError(problem.reason, remedy=remedy, step=typed) from None


def labelling(asked: str | None, never: bool) -> Path | Literal["auto", "folders", "paths", "none"]:
    if asked is not None and never:
        raise UsageError("--labels and --no-labels exclude each other")
    if asked in ("folders", "paths"):
        return asked  # type: ignore[return-value]  # it is one of these two
    if asked is not None:
        return Path(asked)
    return "none" if never else "auto"


def explicit(
    texts: list[str], pipeline: str | None, variables: list[str], sugar: Sugar
) -> tuple[tuple[Step, ...], Mapping[str, Any]]:
    """The steps of --step or --pipeline, which the options that stand for steps cannot be mixed with; and what the
    file says beside them.
    """
    from tconv.pipeline import Sugar, steps_from_text

    if texts and pipeline:
        raise UsageError("--step and --pipeline exclude each other", remedy="put the steps into the YAML file")
    if variables and pipeline is None:
        raise UsageError("--set without --pipeline", remedy="variables are those of a pipeline file")
    steps, settings, to_only = tuple(steps_from_text(texts)) if texts else (), {}, False
    if pipeline is not None:
        from tconv.recipes import recipe
        from tconv.variables import assignments

        found = recipe(pipeline, assignments(variables))
        steps, settings = found.steps, dict(found.settings)
        to_only = "dtype" in found.variables and sugar.chain() == Sugar(to=sugar.to).chain()
    if steps and sugar.given():
        words = " ".join(f"--step {_in_shell(text)}" for text in (*map(str, steps), *sugar.chain()))
        variable = f"--set dtype={sugar.to} is what this pipeline has for the dtype; or " if to_only else ""
        raise UsageError(
            f"{'--step' if texts else '--pipeline'} cannot be mixed with the options that stand for steps",
            remedy=f"{variable}in the order that you mean, write: {words}",
        )
    return steps, settings


def _in_shell(text: str) -> str:
    """A chain as one word of a shell."""
    return shlex.quote(text) if "'" in text else f"'{text}'"


def settled(request: Request, settings: Mapping[str, Any], ctx: typer.Context) -> Request:
    """The request with what a pipeline file says of inputs and output; an option that was typed beats it."""
    from tconv.settings import applied

    typed = [name for name in ctx.params if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    if "channels" in settings or "alpha" in settings:
        request = replace(request, own_channels=False)
    return applied(request, settings, {name.strip("_").removeprefix("no_") for name in typed})
