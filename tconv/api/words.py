"""What errors call options, in the words of Python: ``force=True`` for ``--force``, a step for ``--resize 224x224``."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from tconv.api.options import Options
from tconv.devices.names import WORDS
from tconv.dtypes import ALIASES, DTYPES
from tconv.errors import TconvError
from tconv.registry import FORMATS

# An option and what may be its value: a text in quotes, capitals that stand for one, a number, a word.
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(?:([ =])('[^']*'|[A-Z0-9](?:[\w.,*]*\w)?|[a-z][a-z0-9_]*))?")
_TARGET = re.compile(r"(?<![\w-])-o ([\w.-]+(?<![.-])/?)")
_STEPS = {
    "resize": "resize({})",
    "pad": "pad(fill={})",
    "stats": "normalize({})",
    "denormalize": "denormalize({})",
    "layout": "permute({})",
    "quantize": "quantize({})",
    "to": "cast({})",
    "step": "{}",
}
_FLAGS = {
    "normalize": "scale",
    "half": "cast(float16)",
    "bf16": "cast(bfloat16)",
    "float": "cast(float32)",
    "double": "cast(float64)",
    "int": "cast(int32)",
    "long": "cast(int64)",
    "no_exif": "exif=False",
    "no_labels": 'labels="none"',
}
_NAMES = {
    "format": [*FORMATS],
    "to": [*DTYPES, *ALIASES],
    "quantize": [*DTYPES],
    "stats": ["imagenet", "clip"],
    "device": [*WORDS],
}
_HINTS = typing.get_type_hints(Options)


@contextmanager
def in_python(**called: str) -> Iterator[None]:
    """Errors from within speak of arguments and steps; ``called``: options that have another name here."""
    try:
        yield
    except TconvError as problem:
        for one in {id(one): one for one in (problem, *problem.each())}.values():
            one.reason, one.remedy = translated(one.reason, called), translated(one.remedy, called)
        raise


def translated(text: str, called: Mapping[str, str] | None = None) -> str:
    """The text with options as they are written in Python; what is no option here stays."""
    return _OPTION.sub(lambda match: _written(match, called or {}), _TARGET.sub(r'dst="\1"', text))


def _written(match: re.Match[str], called: Mapping[str, str]) -> str:
    option, space, value = match[1].replace("-", "_"), match[2] or "", match[3] or ""
    words = _words(option)
    rest = ""
    if not value or (value[0].islower() and value not in words):  # the sentence goes on
        rest, value = f"{space}{value}", ""
    if option in _STEPS:
        plain = value.strip("'")
        return (_STEPS[option].format(plain) if plain else option) + rest
    if option in _FLAGS or _HINTS.get(option) is bool:
        return f"{_FLAGS.get(option, f'{option}=True')}{rest or f'{space}{value}'}"
    if option not in _HINTS:
        return match[0]
    if option == "range" and value:
        value = f"({value.replace(',', ', ')})"
    elif value in words or (option == "input_layout" and value):
        value = f'"{value}"'
    return f"{called.get(option, option)}={value}{rest}"


def _words(option: str) -> list[str]:
    """The words that an option takes, where they are known."""
    if option in _NAMES:
        return _NAMES[option]
    hint = _HINTS.get(option)
    kinds = [hint, *typing.get_args(hint)]
    return [word for kind in kinds if typing.get_origin(kind) is Literal for word in typing.get_args(kind)]
