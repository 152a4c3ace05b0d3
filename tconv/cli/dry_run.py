"""``tconv plan INPUT...``, which is ``--dry-run`` as a verb: what a conversion would do, in the form asked for."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import typer

from tconv.cli import skipped
from tconv.cli.convert import SKIPPED, convert
from tconv.errors import one_line, raise_all

if TYPE_CHECKING:
    from tconv.cli.console import Console
    from tconv.planner import Plan
    from tconv.request import Request
    from tconv.writer import ReadOptions


def plan(**options: Any) -> int:
    """Print what a conversion would do.

    From headers alone; the options are those of convert.

    \b
    tconv plan photos/ --resize 224 --normalize            the plan
    tconv plan photos/ --resize 224 --normalize --print steps
                                                           what --step takes
    tconv plan photos/ --resize 224 --normalize --print yaml > mine.yaml
                                                           what --pipeline takes

    The plan has every tensor before and after, a few of them step by step, which steps go in one pass and how, what
    decodes, the bytes that are read, moved (decoded, and made by each pass) and written, and the memory for values.

    --print json has these keys: plan (1), steps, notes, skipped [{path, reason}], in_the_way [path], files [{path,
    format, bytes, tensors [{name, source, before {dtype, shape}, after {dtype, shape, axes, range, device}, same_as},
    for a stack parts [{source, before}]], traces [{tensor, specs: as read and after each step}]}], beside [{path,
    bytes}], passes [{tensors, passes [{steps, how}]}], transfers [{device, tensors, there {dtype, bytes}, back {dtype,
    bytes}}], on_cpu [{steps, why}] (of what was asked for a device), decoders {library: tensors}, bytes {read, moved,
    written}, peak_memory, workers.
    """
    return convert(**options, dry_run=True)


def _without_dry_run() -> inspect.Signature:
    """The parameters of convert, by which Typer knows the options, but for the one that is the verb."""
    signature = inspect.signature(convert, eval_str=True)
    return signature.replace(parameters=[p for name, p in signature.parameters.items() if name != "dry_run"])


def show(request: Request, terminal: Console, form: str) -> int:
    """Plan, and print the plan, or its steps, as text or YAML; what a user should hear goes to ``terminal``."""
    from tconv.devices.names import elsewhere
    from tconv.planner import plan
    from tconv.request import Silent

    with elsewhere() if form in ("steps", "yaml") else nullcontext():
        planned = plan(request, Silent(), {})
    terminal.notes((*planned.notes, *idle_options(planned)))
    skipped.tell(planned.skipped, terminal)
    sys.stdout.write("".join(f"{line}\n" for line in _in_form(planned, form)))
    if form in ("plan", "json"):
        raise_all(planned.in_the_way)  # what a run would say first
    return SKIPPED if planned.skipped else 0


def _in_form(planned: Plan, form: str) -> Iterator[str]:
    if form == "plan":
        from tconv.plan_text import lines

        yield from map(one_line, lines(planned))
    elif form == "steps":
        yield " | ".join(map(str, planned.steps))
    elif form == "json":
        from tconv.cli.plan_json import render

        yield render(planned)
    else:
        from tconv.spelling import pipeline_file

        request = planned.request
        if request.sugar.denormalize is not None and request.format is None:  # whose steps do not say what holds them
            request = replace(request, format=planned.files[0].target.format.name)
        yield from pipeline_file(planned.steps, request).splitlines()


def idle_options(planned: Plan) -> list[str]:
    """A note on the options for images if no input is one, and on those of which nothing comes beside others."""
    from tconv.writer import ReadOptions

    if any(one.format.group == "image" for file in planned.files for one in file.target.inputs):
        return [*_idle_beside(planned.request.read), *_idle_fast(planned), *_idle_gpu(planned)]
    usual = asdict(ReadOptions())
    given = [name for name, value in asdict(planned.request.read).items() if value != usual[name]]
    names = ["--no-exif" if name == "exif" else f"--{name.replace('_', '-')}" for name in given]
    names += ["--gpu-jpeg"] * planned.request.gpu_jpeg
    return [f"no input is an image, so nothing comes of {' and '.join(names)}"] if names else []


def _idle_beside(read: ReadOptions) -> list[str]:
    if read.palette == "index":
        given = {"--channels": read.channels not in ("rgb", "own"), "--alpha": read.alpha != "white"}
        names = [name for name, on in given.items() if on]
        return (
            [f"nothing comes of {' and '.join(names)} beside --palette index, which takes no colours"] if names else []
        )
    if read.alpha != "white" and read.channels in ("rgba", "keep"):
        return [f"nothing comes of --alpha beside --channels {read.channels}, which keeps the opacity that there is"]
    return []


def _idle_fast(planned: Plan) -> list[str]:
    from tconv.evaluate import shrink_of
    from tconv.explain import leaves, stored

    if not planned.request.read.fast:
        return []
    if any(shrink_of(leaf) > 1 for tensor in stored(planned) for leaf in leaves(tensor)):
        return []
    return ["nothing comes of --fast: a resize has to come first, and make a JPEG a quarter of its size or less"]


def _idle_gpu(planned: Plan) -> list[str]:
    from tconv.explain import decoders

    if not planned.request.gpu_jpeg or any(name.startswith("torchvision") for name, _ in decoders(planned)):
        return []
    return ["nothing comes of --gpu-jpeg: no input is a JPEG in colour"]


def register(app: typer.Typer) -> None:
    vars(plan)["__signature__"] = _without_dry_run()
    plan.__annotations__ = {name: p.annotation for name, p in _without_dry_run().parameters.items()}
    app.command()(plan)
