"""Devices as users name them: a text in the words of any library, or a library's own object."""

from __future__ import annotations

from typing import Any

from tconv.errors import UsageError

NAME_IT = 'name it: "cpu", "cuda", "cuda:1", "mps"'


def device_named(given: Any) -> str | None:
    """The device as a text, in the words of its library; None for where a tensor is.

    Raises ``UsageError`` for what names none. A bare number is refused: to PyTorch it is a GPU, to others nothing.
    """
    if given is None or (isinstance(given, str) and given.strip()):
        return given
    library = type(given).__module__.partition(".")[0]
    if library == "torch" and hasattr(given, "type"):
        return str(given)
    if library in ("jax", "jaxlib") and hasattr(given, "platform"):
        return f"{given.platform}:{given.id}"
    raise UsageError(f"device is {given!r}", remedy=NAME_IT)
