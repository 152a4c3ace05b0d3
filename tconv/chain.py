"""The chain of a job: what its options stand for, what its inputs and outputs imply, what would be idle in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tconv import pictures, registry, selection
from tconv.dtypes import dtype
from tconv.errors import TconvError, UsageError
from tconv.inputs import Found
from tconv.pipeline import steps_from_text
from tconv.registry import Format
from tconv.request import Request
from tconv.step import Rules, Step
from tconv.targets import Target


def asked(request: Request) -> tuple[Step, ...]:
    """The steps that the user gave, or those that the options stand for. What is wrong with them in themselves is told
    before any file is looked for.
    """
    chain = request.steps or tuple(steps_from_text(request.sugar.chain()))
    rules = _rules(request)
    for step in chain:
        step.each(lambda one: one.heeding(rules))
    _refuse_idle(request, chain)
    return chain


def rounding(request: Request) -> Any:
    """The step that decides the dtype of what is written, the last that quantizes or else casts; None without one."""
    chain = request.steps or tuple(steps_from_text(request.sugar.chain()))
    plain = [s for whole in chain for s in whole.flat()]
    found = [s for s in plain if s.name == "quantize"] or [s for s in plain if s.name == "cast"]
    return found[-1] if found else None


def steps_for(request: Request, found: Found, chosen: Sequence[Target], form: Format | None) -> list[Step]:
    """The chain, with what the target or the layout implies, a stack or pictures one by one, and the policy on
    overflow.
    """
    grouped = request.batch_size is not None or request.sugar.pad is not None
    stack = request.sugar.stack or grouped or _implies_stack(request, found, chosen)
    if request.steps:
        steps = list(request.steps)
        if stack and not any(s.name == "stack" for s in steps):
            steps += steps_from_text(["stack"])
    else:
        steps = steps_from_text(replace(request.sugar, stack=stack).chain())
    steps = pictures.one_by_one(steps, request, form, found.inputs)
    if request.device is not None:
        steps = [*steps_from_text([f"device({request.device})"]), *steps]
    rules = _rules(request)
    return [step.each(lambda one: one.heeding(rules)) for step in steps]


def devices_heard(request: Request, chain: Sequence[Step]) -> list[str]:
    """What the user should hear of the devices that ``chain`` or the options ask for. Refuses those that are not there,
    and options for what goes to a device where nothing does.
    """
    steps = _device_steps(chain)
    if steps and request.device is not None:
        raise UsageError(f"--device beside {steps[0]}", remedy="say it once")
    names = _devices(request, chain)
    given = [("--device-batch", request.device_batch), ("--save-device", request.save_device)]
    if idle := [option for option, value in given if value and not names]:
        raise UsageError(f"{' and '.join(idle)} without a device", remedy="say which: --device cuda")
    if not names:
        return []
    from tconv.devices.names import resolve  # which most jobs do without

    return list(filter(None, dict.fromkeys(resolve(name).note for name in names)))


def jpeg_device(request: Request, chain: Sequence[Step]) -> str:
    """The device that is to decode JPEGs, "" for none. Refuses that where there is none that can."""
    if not request.gpu_jpeg:
        return ""
    if request.read.fast:
        raise UsageError(
            "--gpu-jpeg and --fast exclude each other", remedy="a GPU decodes whole pictures, and that fast"
        )
    from tconv.devices.names import BY_TORCH, check_decoder, resolve

    devices = [resolve(name).device for name in _devices(request, chain)]
    found = [device for device in devices if device.startswith(("cuda", "auto", BY_TORCH))]  # auto: of another machine
    if not found:
        asked = f", and there is only {devices[0]}" if devices else ""
        raise UsageError(f"--gpu-jpeg needs a CUDA device{asked}", remedy="say which: --device cuda")
    check_decoder(found[0])
    return found[0]


def decoder_heard(device: str) -> list[str]:
    """What the user should hear of JPEGs that a device decodes."""
    return [f"JPEGs are decoded on {device}: pixels differ a little from those of the exact decoder"] if device else []


def _device_steps(chain: Sequence[Step]) -> list[Any]:
    return [step for whole in chain for step in whole.flat() if step.name == "device"]


def _devices(request: Request, chain: Sequence[Step]) -> list[str]:
    """The names of all that are asked for."""
    return [step.where for step in _device_steps(chain)] + ([request.device] if request.device is not None else [])


def refuse_idle_rules(steps: Sequence[Step], names: Sequence[str]) -> None:
    """Refuse a rule of ``match`` that is for no tensor of any input: those it was meant for would fare otherwise."""
    for step in steps:
        match: Any = step
        ruled = {match.rule_of(name) for name in names} if step.name == "match" else set()
        for number, rule in enumerate(match.rules if ruled else ()):
            if number in ruled:
                continue
            if not any(rule.fits(name) for name in names):
                selection.refuse_unmatched("match", names, rule.globs[:1])
            raise TconvError(
                f"the rules before {', '.join(map(repr, rule.globs))} take all that it matches",
                remedy="the first rule that fits counts: put the special ones first",
                step=str(step),
            )


def _implies_stack(request: Request, found: Found, chosen: Sequence[Target]) -> bool:
    """A file that holds a single array takes a folder of images as one; so does a layout with an N in it.

    Inputs that are skipped count: what is left of several has the axis N, if it is but one.
    """
    images = [i for i in found.inputs if i.format.group == "image"]
    batched = "N" in (request.sugar.layout or "").upper()
    single = len(chosen) == 1 and chosen[0].format.group != "image" and registry.writer(chosen[0].format).single
    several = len(found.inputs) + len(found.unwanted) + len(found.failures) > 1 or any(i.root for i in images)
    return (bool(images) and batched) or (single and several and not request.split)


def refuse_idle_padding(request: Request, steps: Sequence[Step], chosen: Sequence[Target]) -> None:
    """Refuse to make pictures as large as the largest where each goes by itself."""
    alone = len(chosen) > 1 and all(len(t.inputs) == 1 and t.inputs[0].format.group == "image" for t in chosen)
    if alone and any(getattr(step, "to_largest", False) for step in steps):
        raise UsageError(
            "pad makes the pictures of one file equal, and here each has a file of its own",
            remedy="--batch-size N puts several into each file, --step 'pad(HxW)' says the size",
        )


def _refuse_idle(request: Request, chain: Sequence[Step]) -> None:
    """Refuse what says how to cast where nothing is cast, and how to round where nothing is rounded."""
    plain = [step for whole in chain for step in whole.flat()]
    heeded = frozenset[str]().union(*(step.heeds for step in plain))
    casts, rounds = "on_overflow" in heeded, any(step.rounds for step in plain)
    asked = {
        "--keep": (request.keep, "keep" in heeded),
        "--policy": (request.policy, "policy" in heeded),
        "--max-error": (request.max_error is not None, "max_error" in heeded),
        "--min-sqnr": (request.min_sqnr is not None, "min_sqnr" in heeded),
        f"--on-overflow {request.on_overflow}": (
            request.on_overflow,
            casts if request.on_overflow == "keep" else rounds,
        ),
    }
    to_another = [text for text in request.keep if "=" in text]
    if to_another and not casts:
        raise UsageError(
            f"--keep {to_another[0]} says to which dtype, and nothing is cast here",
            remedy="without =DTYPE the tensors stay as they are; --to DTYPE casts all that is not quantized",
        )
    given = [option for option, (value, used) in asked.items() if value and not used]
    if given:
        ways = ["--half", "--bf16", "--to DTYPE", *(() if "min_sqnr" in heeded else ("--quantize DTYPE",))]
        raise UsageError(f"{' and '.join(given)} without a cast", remedy=f"say to which dtype: {', '.join(ways)}")


def _rules(request: Request) -> Rules:
    return Rules(
        request.on_overflow, request.keep, request.policy, request.max_error, request.min_sqnr, _other_float(request)
    )


def _other_float(request: Request) -> str | None:
    """What ``--to`` makes of all that is not quantized, so that what falls short is rounded to that at once."""
    other = dtype(request.sugar.to) if request.sugar.to is not None else None
    return other.name if other and other.is_float and other.bits >= 16 else None
