"""Which library an array is of, told without importing any, and the module that knows how that library does things."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Protocol, cast

from tconv.arguments import shown
from tconv.errors import TconvError, UsageError
from tconv.suggest import did_you_mean

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

LIBRARIES = ("numpy", "torch", "tensorflow", "jax")


class Library(Protocol):
    """What each of ``of_numpy``, ``of_torch`` … does with the arrays of its library; all raise ``TconvError``."""

    def dtype_of(self, x: Any) -> DType:
        """The dtype; refuses what has no elements in memory (sparse, symbolic, meta …) or of a dtype tconv lacks."""
        ...

    def device_of(self, x: Any) -> str:
        """Where the elements are, in the words of the library."""
        ...

    def on_cpu(self, x: Any) -> bool: ...
    def is_contiguous(self, x: Any) -> bool: ...
    def contiguous(self, x: Any) -> Any:
        """The same elements in C order; x itself if they are."""
        ...

    def requires_grad(self, x: Any) -> bool: ...

    def to_numpy(self, x: Any) -> Array:
        """The elements on the CPU, in x's own memory if it is there."""
        ...

    def make(self, values: Array, device: str | None, copy: bool | None) -> Any:
        """An array of the library. ``copy``: True for memory of its own, False for that of ``values`` or an error,
        None for whichever is possible and safe.
        """
        ...

    def exported(self, x: Any) -> Any:
        """What others may look at by DLPack."""
        ...

    def adopt(self, x: Any, copy: bool | None) -> Any | None:
        """A tensor of another library by DLPack, on its device; None where that has no words for it.

        ``copy`` is that of ``make``: TensorFlow's and JAX's tensors are immutable, so None copies them for who could
        write.
        """
        ...

    def move(self, x: Any, device: str) -> Any:
        """x itself if it is there."""
        ...

    def widen(self, x: Any, dtype: DType) -> Any:
        """As ``dtype``, which has all values that x's has: a cast that loses nothing, made where x lies."""
        ...

    def clip(self, x: Any, low: float, high: float) -> Any:
        """A float32 array held to [low, high], where it lies."""
        ...


def library_of(x: Any) -> str:
    """The name of x's library; ``numpy`` for all that is of no framework, lists and numbers too."""
    for name in LIBRARIES[1:]:
        module = sys.modules.get(name)
        if module is not None and _TESTS[name](module, x):
            return name
    return "numpy"


def _is_torch(torch: Any, x: Any) -> bool:
    return isinstance(x, getattr(torch, "Tensor", ()))


def _is_tensorflow(tf: Any, x: Any) -> bool:
    is_tensor = getattr(tf, "is_tensor", None)
    return is_tensor is not None and bool(is_tensor(x))


def _is_jax(jax: Any, x: Any) -> bool:
    return isinstance(x, getattr(jax, "Array", ()))


_TESTS = {"torch": _is_torch, "tensorflow": _is_tensorflow, "jax": _is_jax}


def library(name: str) -> Library:
    """The module for the library of that name, which is imported now. Raises ``UsageError`` if there is none."""
    if name not in LIBRARIES:
        meant = {"tf": "tensorflow", "np": "numpy", "jnp": "jax"}.get(str(name), str(name))
        raise UsageError(f"there is no framework {shown(name)}", remedy=did_you_mean(meant, LIBRARIES, _CHOOSE))
    try:
        return cast(Library, importlib.import_module(f"tconv.arrays.of_{name}"))
    except ModuleNotFoundError as problem:
        if problem.name != name:
            raise
        raise TconvError(f"{name} is not installed", remedy=f"pip install {name}") from None


_CHOOSE = f"choose {', '.join(LIBRARIES)}"
