"""What devices there are and how fast each is, the CPU by tconv's own casts too: half is not faster everywhere."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from tconv import casts
from tconv.devices import names
from tconv.devices.timing import growing, rate
from tconv.dtypes import dtype

HALVES = ("float16", "bfloat16")
FLOATS = ("float32", *HALVES)
CASTS = tuple(pair for half in HALVES for pair in (("float32", half), (half, "float32")))
COUNT = 1 << 24  # elements that are cast: more than caches hold
_LARGEST = 1024


@dataclass(frozen=True)
class Speeds:
    """Of one device ``by`` one library. ``casts``: bytes read and written per second; ``products``: operations per
    second in a product of two matrices; ``transfers``: bytes per second there and back, None for the CPU.
    """

    device: str
    called: str
    by: str
    casts: dict[tuple[str, str], float]
    products: dict[str, float]
    transfers: tuple[float, float] | None = None

    def beside_single(self, half: str) -> float:
        """How much faster a product is in ``half`` than in float32."""
        return self.products[half] / self.products["float32"]


def measured() -> list[Speeds]:
    """All devices that there are, the CPU first; it takes some seconds each."""
    found = [_own()]
    try:
        from tconv.devices import speed, there
    except ImportError:
        return found
    for device, called in [(names.CPU, _processor()), *there.everything()]:
        made = speed.casts(device, CASTS, COUNT), speed.products(device, FLOATS)
        found.append(Speeds(device, called, "PyTorch", *made, speed.transfers(device)))
    return found


def _own() -> Speeds:
    """What tconv does without torch: its casts, with their account, and NumPy's products."""
    rng = np.random.default_rng(0)
    made = {}
    for src, dst in CASTS:
        x = rng.random(COUNT, np.float32).astype(dtype(src).numpy)
        out = np.empty(COUNT, dtype(dst).numpy)
        work = partial(casts.cast, x, dtype(dst), out, src=dtype(src))
        made[src, dst] = rate(work, x.nbytes + out.nbytes)
    products = {name: growing(partial(_product, name), 64, _LARGEST, lambda n: 2.0 * n**3) for name in FLOATS}
    return Speeds(names.CPU, _processor(), "tconv, NumPy", made, products)


def _product(name: str, size: int) -> Callable[[], object]:
    a = np.random.default_rng(0).random((size, size), np.float32).astype(dtype(name).numpy)
    return lambda: a @ a


def _processor() -> str:
    """By the name that its maker gave it, where that is to be had."""
    with suppress(OSError):
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf8"), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()
