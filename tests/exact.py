"""Casts in exact arithmetic, for tests: over fractions, from the published layouts of the formats, one value at a time.

A finite value is a ``Fraction``; ``-0.0``, infinities and NaN are Python floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tconv.lost import Detail, Lost

if TYPE_CHECKING:
    from tconv.dtypes import DType
    from tconv.ops import Array

Value: TypeAlias = "Fraction | float"


@dataclass(frozen=True)
class Format:
    """``exponent`` and ``mantissa``: widths in bits. ``specials``: ieee; fn (NaN); fnuz (NaN, no -0); none."""

    exponent: int
    mantissa: int
    bias: int
    top: Fraction
    specials: Literal["ieee", "fn", "fnuz", "none"] = "ieee"

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)

    @property
    def inf(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa


@cache
def _power(n: int) -> Fraction:
    return Fraction(2) ** n


FORMATS = {
    # IEEE 754-2019, table 3.5; bfloat16 is the upper half of binary32.
    "float16": Format(5, 10, 15, Fraction(65504)),
    "bfloat16": Format(8, 7, 127, (2 - _power(-7)) * _power(127)),
    "float32": Format(8, 23, 127, (2 - _power(-23)) * _power(127)),
    "float64": Format(11, 52, 1023, (2 - _power(-52)) * _power(1023)),
    # "OCP 8-bit Floating Point Specification (OFP8)", revision 1.0, table 1.
    "float8_e4m3fn": Format(4, 3, 7, Fraction(448), "fn"),
    "float8_e5m2": Format(5, 2, 15, Fraction(57344)),
    # B. Noune et al., "8-bit Numerical Formats for Deep Neural Networks", 2022.
    "float8_e4m3fnuz": Format(4, 3, 8, Fraction(240), "fnuz"),
    "float8_e5m2fnuz": Format(5, 2, 16, Fraction(57344), "fnuz"),
    # "OCP Microscaling Formats (MX) Specification", version 1.0, section 5.3.3.
    "float4_e2m1fn": Format(2, 1, 1, Fraction(6), "none"),
}


@lru_cache(maxsize=1 << 17)
def decode(bits: int, form: Format) -> Value:
    """What the bits of a float mean."""
    negative, magnitude = bits >= form.sign, bits % form.sign
    if form.specials == "fnuz" and bits == form.sign:
        return math.nan
    if form.specials == "ieee" and magnitude >= form.inf:
        return math.nan if magnitude > form.inf else (-math.inf if negative else math.inf)
    if form.specials == "fn" and magnitude == form.sign - 1:
        return math.nan
    if magnitude == 0 and negative:
        return -0.0
    exponent, mantissa = magnitude >> form.mantissa, magnitude % (1 << form.mantissa)
    if exponent:
        mantissa += 1 << form.mantissa
    value = mantissa * _power(max(exponent, 1) - form.bias - form.mantissa)
    return -value if negative else value


def encode(value: Fraction, form: Format) -> int | None:
    """The bits of the nearest float, ties to even; None if that lies beyond the largest one."""
    magnitude = abs(value)
    exponent = 1 - form.bias
    if magnitude >= _power(exponent):
        exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        exponent -= magnitude < _power(exponent)
    units = round(magnitude / _power(exponent - form.mantissa))
    if units * _power(exponent - form.mantissa) > form.top:
        return None
    bits = ((exponent + form.bias - 1) << form.mantissa) + units  # a carry moves into the exponent by itself
    if form.specials == "fnuz" and bits == 0:
        return 0
    return bits + form.sign * (value < 0)


def values(x: Array, src: DType) -> list[Value]:
    """The exact value of each element of a flat array; the parts of complex ones in turn."""
    if src.kind == "complex":
        x = x.view(np.float32 if src.bits == 64 else np.float64)
        return [_exact(float(v)) for v in x]
    if src.is_float:
        return [decode(int(bits), FORMATS[src.name]) for bits in x.view(f"u{src.itemsize}")]
    return [Fraction(int(v)) for v in x]


def _exact(v: float) -> Value:
    return Fraction(v) if math.isfinite(v) and not (v == 0 and math.copysign(1, v) < 0) else v


def bits_of(*numbers: int, src: DType) -> Array:
    return np.array(numbers, f"u{src.itemsize}").view(src.numpy)


def all_bits(src: DType, step: int = 1) -> Array:
    return np.arange(0, 1 << src.bits, step, dtype=f"u{src.itemsize}").view(src.numpy)


def edges(src: DType, dst: DType) -> Array:
    """Values of the real ``src`` at which a cast to the real ``dst`` may change its ways, with both neighbours."""
    marks = [Fraction(n, 2) for n in range(5)]
    marks += [Fraction(2**n + k) for n in (7, 8, 15, 16, 24, 31, 32, 53, 63, 64) for k in (-1, 0, 1)]
    for one in (src, dst):
        top, step = Fraction(one.max), Fraction(2) ** max(0, int(one.max).bit_length() - max(one.digits, 1))
        marks += [
            top,
            top + step / 2,
            top + step,
            Fraction(one.tiny),
            Fraction(one.tiny) / 2,
            Fraction(one.tiny) * 3 / 2,
        ]
        marks += [Fraction(one.tiny) * 2 ** max(one.digits - 1, 0), Fraction(2**one.digits + 1)]
    if not src.is_float:
        whole = {s * math.floor(m) + k for m in marks for s in (1, -1) for k in (-1, 0, 1)}
        found = np.array(sorted(n for n in whole if src.min <= n <= src.max), src.numpy)
        return found if found.size % 2 == 0 else found[1:]
    form = FORMATS[src.name]
    bits = {b for m in marks if (b := encode(m, form)) is not None}
    if form.specials == "none":
        return all_bits(src)
    near = sorted({n for b in bits for n in (b - 1, b, b + 1) if 0 <= n < form.inf} | {form.inf, form.inf + 1})
    return bits_of(*near, *(n + form.sign for n in near), src=src)


def check(x: Array, made: Array, lost: Lost, src: DType, dst: DType, policy: str = "error") -> None:
    """Assert that ``made`` and ``lost``, with its detail, are what exact arithmetic makes of the flat array ``x``; real
    dtypes only.
    """
    account, detail, errors = Lost(x.size), Detail(), _Errors()
    bits = made.view(f"u{dst.itemsize}").tolist()
    for number, (value, got) in enumerate(zip(values(x, src), bits, strict=True)):
        over = account.overflow
        wanted = _cast(value, src, dst, policy, account)
        if wanted is None:
            assert math.isnan(float(decode(got, FORMATS[dst.name]))), (number, value, hex(got))
        else:
            assert got == wanted, (number, value, hex(got), hex(wanted))
        detail.nan += math.isnan(value)
        detail.inf += math.isinf(value)
        if math.isfinite(value):
            account.spans(*[float(value) if src.is_float else int(value)] * 2)
        result: Value | None = None if wanted is None or dst.kind == "bool" else _meaning(wanted, dst)
        if result is None or not math.isfinite(result):
            continue
        if dst.is_float:
            detail.subnormal += 0 < abs(Fraction(result)) < _power(1 - FORMATS[dst.name].bias)
        if math.isfinite(value) and account.overflow == over:
            errors.add(Fraction(value), Fraction(result))
    assert lost.detail is not None
    errors.check(lost.detail)
    counts = ("nan", "inf", "subnormal")
    assert [getattr(lost.detail, name) for name in counts] == [getattr(detail, name) for name in counts]
    account.detail = lost.detail
    assert lost == account


class _Errors:
    """The errors of results, exact until they are compared."""

    def __init__(self) -> None:
        self.inexact = 0
        self.most = self.share = self.signal = self.noise = Fraction(0)

    def add(self, value: Fraction, result: Fraction) -> None:
        self.signal += value * value
        if value != result:
            error = abs(value - result)
            self.inexact += 1
            self.noise += error * error
            self.most = max(self.most, error)
            self.share = max(self.share, error / abs(value))

    def check(self, detail: Detail) -> None:
        assert detail.inexact == self.inexact
        assert math.isclose(detail.max_abs_error, _float(self.most), rel_tol=1e-15)
        assert math.isclose(detail.max_rel_error, _float(self.share), rel_tol=1e-6)
        for got, wanted in ((detail.signal, self.signal), (detail.noise, self.noise)):
            assert abs(got - wanted) <= wanted / 10**12


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _meaning(bits: int, dst: DType) -> Value:
    """What the bits of a number mean."""
    if dst.is_float:
        return decode(bits, FORMATS[dst.name])
    return Fraction(bits - (bits >> (dst.bits - 1) << dst.bits) if dst.kind == "int" else bits)


def _cast(value: Value, src: DType, dst: DType, policy: str, account: Lost) -> int | None:
    """The bits wanted of one value, None for any NaN; what it loses is added to ``account``."""
    if dst.kind == "bool":
        return int(value != 0)
    return _to_float(value, src, dst, policy, account) if dst.is_float else _to_int(value, dst, account)


@cache
def _top(form: Format) -> int:
    bits = encode(form.top, form)
    assert bits is not None
    return bits


def _to_float(value: Value, src: DType, dst: DType, policy: str, account: Lost) -> int | None:
    form = FORMATS[dst.name]
    top = _top(form)
    if isinstance(value, Fraction):
        bits = encode(value, form)
        if bits is None:
            account.overflow += 1
            account.saw(*[float(value) if src.is_float else int(value)] * 2)
            return (form.inf if policy == "inf" else top) + form.sign * (value < 0)
        if value and bits % form.sign == 0:
            account.underflow += 1
        if not src.is_float and decode(bits, form) != value:
            account.inexact += 1
        return bits
    if math.isnan(value) and form.specials == "none":
        account.nan += 1
        return 0
    if math.isnan(value):
        return None
    if value == 0:
        return 0 if form.specials == "fnuz" else form.sign
    if form.specials != "ieee":
        account.infinite += 1
    return (form.inf if form.specials == "ieee" else top) + form.sign * (value < 0)


def _to_int(value: Value, dst: DType, account: Lost) -> int:
    modulus = 1 << dst.bits
    if math.isnan(value):
        account.nan += 1
        return 0
    if math.isinf(value):
        account.infinite += 1
        return int(dst.max if value > 0 else dst.min) % modulus
    whole = math.trunc(value)
    if not dst.min <= whole <= dst.max:
        account.overflow += 1
        account.saw(*[float(value) if isinstance(value, Fraction) and value.denominator > 1 else whole] * 2)
        return int(min(max(whole, dst.min), dst.max)) % modulus
    account.underflow += value != 0 and whole == 0
    return whole % modulus
