"""Whose word a range is: the file's, the user's, or that of what was done on the way."""

from __future__ import annotations

import numpy as np
import pytest

from tconv.dtypes import dtype
from tconv.ops import CastTo, Permute, Promise
from tconv.steps.clamp import Clamp
from tconv.steps.origin import chain, is_normalized, marked_range
from tconv.steps.stack import Stack
from tests.memory import stream, tensor

HALF = CastTo(dtype=dtype("float16"))


def test_a_file_of_floats_that_knows_its_range_was_written_by_a_conversion() -> None:
    marked = tensor(np.ones((2, 2), np.float32), known=(0, 1))
    for made in (marked, marked.then(HALF), marked.then(Permute(perm=(1, 0))), *Stack().apply(stream(marked)).tensors):
        assert marked_range(made) == (0, 1)
    assert marked_range(tensor(np.ones(2, np.float32))) is None


def test_pixels_statements_and_arithmetic_are_no_word_of_the_file() -> None:
    marked = tensor(np.ones((2, 2), np.float32), known=(0, 1))
    pixels = tensor(np.ones((2, 2), np.uint8), known=(0, 255)).then(CastTo(dtype=dtype("float32")))
    stated = marked.then(Promise(range=(0, 1)))
    (clamped,) = Clamp(0, 0.5).apply(stream(marked)).tensors
    for made in (pixels, stated, clamped):
        assert marked_range(made) is None
        assert marked_range(*Stack().apply(stream(made)).tensors) is None


def test_the_chain_of_a_stack_begins_with_that_of_its_parts() -> None:
    (stack,) = Stack().apply(stream(tensor(np.ones(2, np.float32)).then(HALF))).tensors
    turned = Permute(perm=(1, 0))
    assert chain(stack.then(turned)) == (HALF, turned)


@pytest.mark.parametrize(("known", "normalized"), [(None, False), ((0, 1), False), ((0, 255), False), ((-1, 1), True)])
def test_scaled_values_begin_at_0(known: tuple[float, float] | None, normalized: bool) -> None:
    assert is_normalized(known) == normalized
