"""What a model takes and what a pipeline gives: every way not to fit, in one sentence with its remedy."""

from __future__ import annotations

import numpy as np
import pytest

from tconv.errors import TconvError
from tconv.models.wanted import Wanted, check
from tconv.tensor import Tensor
from tests.memory import tensor

CHW = Wanted("image", (None, 3, 32, 48), "float32")
HWC = Wanted("image", (1, 32, 48, 3), "float32")


def given(shape: tuple[int, ...], axes: str | None, dtype: str = "float32") -> list[Tensor]:
    return [tensor(np.zeros(shape, dtype), f"{n}.png", axes=axes) for n in range(2)]


def test_what_fits() -> None:
    check(CHW, given((3, 32, 48), "CHW"))
    check(HWC, given((32, 48, 3), "HWC"))
    check(Wanted("x", (None, 3, None, None), "float32"), given((3, 7, 9), None))
    check(Wanted("x", (None, 5), "uint8"), given((5,), None, "uint8"))


@pytest.mark.parametrize(
    ("wanted", "shape", "axes", "dtype", "words"),
    [
        (CHW, (32, 48, 3), "HWC", "float32", "the layout is another one: end the pipeline with permute(CHW)"),
        (HWC, (3, 32, 48), "CHW", "float32", "the layout is another one: end the pipeline with permute(HWC)"),
        (CHW, (3, 224, 224), "CHW", "float32", "--resize 32x48, or a pipeline with resize(32x48)"),
        (HWC, (64, 64, 3), "HWC", "float32", "--resize 32x48"),
        (CHW, (1, 32, 48), "CHW", "float32", "it takes 3 channels: --channels rgb"),
        (Wanted("x", (1, 1, 28, 28), "float32"), (3, 28, 28), "CHW", "float32", "it takes 1 channels: --channels gray"),
        (CHW, (3, 32, 48), "CHW", "float16", "end the pipeline with cast(float32)"),
        (CHW, (3, 32, 48), "CHW", "uint8", "cast(float32), or where the model takes 0…1 scale before (--normalize)"),
        (Wanted("x", (None, 2), "uint8"), (2,), None, "float32", "it takes pixels as they are: leave out what scales"),
        (CHW, (32, 48), "HW", "float32", "samples must have 3 axes: the batch is put in front of them"),
        (Wanted("x", (None, 5), "float32"), (6,), None, "float32", "choose a pipeline that ends with this shape"),
        (Wanted("x", (), "float32"), (6,), None, "float32", "samples must have 0 axes"),
    ],
)
def test_what_does_not_fit(wanted: Wanted, shape: tuple[int, ...], axes: str | None, dtype: str, words: str) -> None:
    with pytest.raises(TconvError) as caught:
        check(wanted, given(shape, axes, dtype))
    text = str(caught.value)
    assert words in text
    assert text.startswith(f"the model takes {wanted}, and the pipeline gives {dtype} (")
    assert len(text.splitlines()) == 1


def test_samples_are_equals() -> None:
    some = [tensor(np.zeros(shape, np.float32), name) for shape, name in [((3, 4), "a"), ((3, 5), "b")]]
    with pytest.raises(
        TconvError, match=r"is float32 \(3, 5\) a sample, and a is float32 \(3, 4\) .*: a model takes eq"
    ):
        check(Wanted("x", (None, 3, None), "float32"), some)


def test_samples_of_other_axes_or_dtypes_are_other_arrays() -> None:
    some = [tensor(np.zeros((3, 4), np.float32), "x"), tensor(np.zeros((), np.int64), "y")]
    with pytest.raises(TconvError, match="a model takes equals; --only PATTERN says which arrays are samples"):
        check(Wanted("x", (None, 3, None), "float32"), some)


def test_batches_are_as_large_as_the_model_says() -> None:
    assert (CHW.batch, HWC.batch, Wanted("x", (4, 2), "float32").batch) == (8, 1, 4)
    assert str(CHW) == "float32 (any, 3, 32, 48)"
