"""Convert images, arrays and checkpoints into framework-ready tensors: exact, loud, lazy, fast.

Files: ``convert`` and ``plan`` do what the command line does; ``open`` gives the tensors of files one by one, or in
batches; ``loaders`` feeds a training loop from what was written. Arrays and tensors in memory: ``cast``,
``to_float32``, ``to_numpy``, ``to_torch``, ``to_tensorflow``, ``inspect``; a ``Pipeline`` takes both.

``import tconv`` imports nothing heavy: each name brings its module along when it is first used, and a framework is
imported only when one of its tensors comes or is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tconv.loaders as loaders
    from tconv.api.inspecting import Info, inspect
    from tconv.api.opened import NoSuchTensor, Tensors, open  # noqa: A004  # it is called as tconv.open
    from tconv.api.options import Options, ReadingOptions
    from tconv.api.pipelines import Pipeline
    from tconv.api.running import Converted, Plan, convert, plan
    from tconv.arrays.casting import cast, to_float32
    from tconv.arrays.moving import shares_memory, to_numpy, to_tensorflow, to_torch
    from tconv.errors import TconvError, TconvErrors, UsageError
    from tconv.tensor import Spec

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  # in the order of the documentation
    "convert",
    "plan",
    "open",
    "Tensors",
    "Pipeline",
    "inspect",
    "cast",
    "to_float32",
    "to_numpy",
    "to_torch",
    "to_tensorflow",
    "shares_memory",
    "loaders",
    "Converted",
    "Plan",
    "Spec",
    "Info",
    "Options",
    "ReadingOptions",
    "TconvError",
    "TconvErrors",
    "UsageError",
    "NoSuchTensor",
]

_HOMES = {
    "api.inspecting": ("Info", "inspect"),
    "api.opened": ("NoSuchTensor", "Tensors", "open"),
    "api.options": ("Options", "ReadingOptions"),
    "api.pipelines": ("Pipeline",),
    "api.running": ("Converted", "Plan", "convert", "plan"),
    "arrays.casting": ("cast", "to_float32"),
    "arrays.moving": ("shares_memory", "to_numpy", "to_tensorflow", "to_torch"),
    "errors": ("TconvError", "TconvErrors", "UsageError"),
    "tensor": ("Spec",),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # to a type checker every attribute would be there

    def __getattr__(name: str) -> Any:
        """A name of the API, with its module imported now (PEP 562)."""
        import importlib

        if name == "loaders":
            return importlib.import_module("tconv.loaders")
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'tconv' has no attribute {name!r}")
        found = getattr(importlib.import_module(f"tconv.{_MODULE_OF[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
