"""Which devices there are, as torch sees them."""

from __future__ import annotations

import re
import warnings

import torch

from tconv.errors import TconvError

_WAYS = "--device cpu, or --device auto for the best there is"


def device(name: str) -> str:
    """The full name of the device; ``TconvError`` where there is none."""
    kind, _, number = name.partition(":")
    if kind == "mps":
        if not torch.backends.mps.is_available():
            raise TconvError("there is no MPS device here", remedy=_WAYS)
        return name
    count, why = _cuda()
    if not count:
        raise TconvError(f"there is no CUDA device here{f': {why}' if why else ''}", remedy=_WAYS)
    index = int(number or 0)
    if index >= count:
        names = "there is cuda:0" if count == 1 else f"there are cuda:0 to cuda:{count - 1}"
        raise TconvError(f"there is no device cuda:{index}", remedy=names)
    return f"cuda:{index}"


def best() -> tuple[str, str]:
    """The best there is, and what it is called by its maker, or why it is no better."""
    count, why = _cuda()
    if count:
        return "cuda:0", f", {torch.cuda.get_device_name(0)}"
    if torch.backends.mps.is_available():
        return "mps", ""
    return "cpu", f", as there is no other{f' ({why})' if why else ''}"


def everything() -> list[tuple[str, str]]:
    """All accelerators: their full names, and what their makers call them."""
    found = [(f"cuda:{n}", torch.cuda.get_device_name(n)) for n in range(_cuda()[0])]
    return [*found, ("mps", "Apple's GPU")] if torch.backends.mps.is_available() else found


def _cuda() -> tuple[int, str]:
    """How many CUDA devices there are (those of ROCm are called so too), and if none, why."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count:
        return count, ""
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return 0, "this PyTorch is built without CUDA"
    return 0, re.split(r"[.(\n]", str(said[0].message))[0].strip() if said else ""
