"""``import tconv`` gives every name of the API, lazily; options are those of a request."""

from __future__ import annotations

import dataclasses
import typing

import pytest

import tconv
from tconv.request import Request
from tconv.writer import ReadOptions, WriteOptions


def test_every_name_is_there_and_listed() -> None:
    assert {name for name in dir(tconv) if not name.startswith("__")} == set(tconv.__all__)
    for name in tconv.__all__:
        assert getattr(tconv, name) is getattr(tconv, name)


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tconv' has no attribute 'konvert'"):
        tconv.konvert  # type: ignore[attr-defined]  # noqa: B018  # the attribute that is not there is the point
    with pytest.raises(AttributeError, match=r"module 'tconv\.loaders' has no attribute 'paddle'"):
        tconv.loaders.paddle  # type: ignore[attr-defined]  # noqa: B018  # as above


def test_a_star_import_shadows_no_builtin_but_open() -> None:
    import builtins

    assert {name for name in tconv.__all__ if hasattr(builtins, name)} == {"open"}


def test_convert_takes_all_that_a_request_has() -> None:
    """A new field of a request is to be added to ``Options``, or to those that the API has otherwise."""
    otherwise = {"inputs", "output", "sugar", "steps", "read", "write", "own_channels", "jpeg_device"}
    fields = {f.name for cls in (Request, ReadOptions, WriteOptions) for f in dataclasses.fields(cls)} - otherwise
    assert set(typing.get_type_hints(tconv.Options)) == fields | {"stack"}
