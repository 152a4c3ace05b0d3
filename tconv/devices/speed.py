"""How fast a device is through torch: casts of what lies there, the way there and back, products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from tconv.devices.names import CPU
from tconv.devices.timing import growing, rate

MB = 1 << 20
_LARGEST = {"cpu": 1024}
_MATRICES = 8192  # of accelerators


def casts(device: str, pairs: tuple[tuple[str, str], ...], count: int) -> dict[tuple[str, str], float]:
    """Bytes read and written per second, of ``count`` elements."""
    found = {}
    for src, dst in pairs:
        x = torch.rand(count, device=device).to(_dtype(src))
        out = torch.empty(count, device=device, dtype=_dtype(dst))
        work, nbytes = _waited(device, partial(out.copy_, x)), count * (x.itemsize + out.itemsize)
        found[src, dst] = _best(device, partial(rate, work, nbytes))
    return found


def transfers(device: str) -> tuple[float, float] | None:
    """Bytes per second to the device and back, from memory that it reads by itself; None for the CPU."""
    if device == CPU:
        return None
    here = torch.empty(64 * MB, dtype=torch.uint8, pin_memory=device.startswith("cuda"))
    there = torch.empty_like(here, device=device)
    return (
        rate(_waited(device, lambda: there.copy_(here, non_blocking=True)), here.numel()),
        rate(_waited(device, lambda: here.copy_(there, non_blocking=True)), here.numel()),
    )


def products(device: str, names: tuple[str, ...]) -> dict[str, float]:
    """Multiplications and additions per second in a product of square matrices, with torch's settings as they are."""

    def product(name: str) -> Callable[[int], Callable[[], object]]:
        def of(size: int) -> Callable[[], object]:
            a = torch.rand((size, size), device=device).to(_dtype(name))
            return _waited(device, lambda: a @ a)

        return of

    most = _LARGEST.get(device, _MATRICES)
    return {name: _best(device, partial(growing, product(name), 256, most, lambda n: 2.0 * n**3)) for name in names}


def _best(device: str, measured: Callable[[], float]) -> float:
    """On the CPU by all threads or by one, whichever is faster: on a busy machine threads wait for each other most of
    the time.
    """
    found, threads = measured(), torch.get_num_threads()
    if device != CPU or threads == 1:
        return found
    torch.set_num_threads(1)
    try:
        return max(found, measured())
    finally:
        torch.set_num_threads(threads)


def _dtype(name: str) -> torch.dtype:
    found: torch.dtype = getattr(torch, name)
    return found


def _waited(device: str, work: Callable[[], object]) -> Callable[[], object]:
    """With the end of the work waited for, which an accelerator else does some time later."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return work
    wait: Callable[[], None] = torch.mps.synchronize if kind == "mps" else lambda: torch.cuda.synchronize(device)

    def done() -> None:
        work()
        wait()

    return done
