"""Data sets for training loops, over the files that tconv wrote: ``torch`` and ``tensorflow``, each imported when used.

>>> tconv.convert("photos", "train.npz", "resize(224x224) | scale | permute(CHW) | stack(into=images)")
>>> data = tconv.loaders.torch.Dataset("train.npz")
>>> loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, collate_fn=tconv.loaders.torch.collate)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tconv.loaders.tensorflow as tensorflow
    import tconv.loaders.torch as torch

__all__ = ["tensorflow", "torch"]

if not TYPE_CHECKING:  # to a type checker every attribute would be there

    def __getattr__(name: str) -> Any:
        """A framework's module, imported now, and the framework with it."""
        import importlib

        if name not in __all__:
            raise AttributeError(f"module 'tconv.loaders' has no attribute {name!r}")
        try:
            return importlib.import_module(f"tconv.loaders.{name}")
        except ModuleNotFoundError as problem:
            if problem.name != name:
                raise
            from tconv.errors import TconvError

            raise TconvError(f"{name} is not installed", remedy=f"pip install {name}") from None
