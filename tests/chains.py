"""Any chain there can be, for the laws that hold of all of them."""

from __future__ import annotations

from hypothesis import strategies as st

from tconv.dtypes import DTYPES
from tconv.quant.grid import SCHEMES
from tconv.quant.search import METHODS as CALIBRATIONS
from tconv.step import Step
from tconv.steps.cast import Cast
from tconv.steps.clamp import Clamp
from tconv.steps.crop import Crop
from tconv.steps.denormalize import Denormalize
from tconv.steps.dequantize import Dequant
from tconv.steps.device import Device
from tconv.steps.letterbox import Letterbox
from tconv.steps.match import Match, Rule
from tconv.steps.normalize import NAMED, Normalize
from tconv.steps.pad import Pad
from tconv.steps.permute import Permute
from tconv.steps.pictures import Pictures
from tconv.steps.quantize import Quant
from tconv.steps.resize import ASPECTS, METHODS, Resize
from tconv.steps.scale import Scale
from tconv.steps.stack import Stack
from tconv.steps.unstack import Unstack

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8)
sides = st.integers(1, 1_000_000)
sizes: st.SearchStrategy[int | str] = sides | st.builds("{}x{}".format, sides, sides)
finite = st.floats(-1e300, 1e300)
dtypes = st.sampled_from([dtype.name for dtype in DTYPES.values()])
globs = st.text("ab*.$?[]{}= ,|:(", min_size=1, max_size=6)

crops = st.builds(Crop, sizes) | st.builds(Crop, sizes, st.integers(0, 99), st.integers(0, 99))
clamps = st.tuples(finite, finite).map(lambda pair: Clamp(min(pair), max(pair)))
normalizes = st.sampled_from(list(NAMED)).map(Normalize) | st.integers(1, 4).flatmap(
    lambda count: st.builds(
        Normalize,
        mean=st.tuples(*[finite] * count),
        std=st.tuples(*[st.floats(1e-300, 1e300)] * count),
    )
)
permutes = st.integers(1, 5).flatmap(lambda rank: st.permutations(range(rank))).map(lambda p: Permute(tuple(p)))
letters = st.lists(st.sampled_from("NCHWDT"), min_size=1, max_size=6, unique=True).map("".join).map(Permute)
casts = st.builds(
    Cast,
    dtypes,
    on_overflow=st.sampled_from(["error", "saturate", "keep"]),
    keep=st.lists(globs.filter(lambda glob: "=" not in glob), max_size=2).map(tuple),
    policy=st.sampled_from([None, "amp"]),
    max_error=st.none() | st.floats(0, 1e9),
)
resizes = st.builds(Resize, sizes, st.sampled_from(METHODS), st.sampled_from([None, *ASPECTS])) | st.tuples(
    sides, st.integers(1, 999)
).map(lambda pair: Resize(min(pair[0], 999_000), max_size=min(pair[0], 999_000) + pair[1]))
pads = st.builds(Pad, sizes, fill=finite) | st.builds(Pad, multiple=sides) | st.just(Pad())
back = st.sampled_from([*NAMED, "none"]).map(Denormalize) | st.just(Denormalize(mean=0.5, std=(0.25, 1.0)))
quants = st.builds(
    Quant,
    st.sampled_from(["int8", "int4"]),
    st.sampled_from([None, *SCHEMES]),
    axis=st.sampled_from(["auto", None, 0, -1]),
    calibrate=st.sampled_from([one for one in CALIBRATIONS if one != "percentile"]),
    keep=st.lists(globs, max_size=2).map(tuple),
    min_sqnr=st.none() | st.floats(0, 99),
)
quants |= st.builds(Quant, st.just("uint4"), group=st.integers(1, 999))
quants |= st.builds(Quant, st.just("int8"), calibrate=st.just("percentile"), percentile=st.floats(1, 100))
quants |= st.builds(
    Quant, st.just("int8"), min_sqnr=st.floats(-9, 99), otherwise=st.sampled_from(["bfloat16", "float64"])
)
BY_NAME: dict[str, st.SearchStrategy[Step]] = {
    "cast": casts,
    "clamp": clamps,
    "crop": crops,
    "denormalize": back,
    "device": st.sampled_from(["cpu", "cuda", "cuda:1", "auto"]).map(Device),
    "dequantize": st.builds(Dequant, st.sampled_from(["float32", "float16"]), st.none() | st.integers(-3, 3)),
    "letterbox": st.builds(Letterbox, sizes, fill=st.none() | st.integers(0, 255)),
    "normalize": normalizes,
    "pad": pads,
    "permute": permutes | letters,
    "pictures": st.just(Pictures()),
    "quantize": quants,
    "resize": resizes,
    "scale": st.builds(
        Scale, st.sampled_from([None, "uint8", "uint16", "float32"]), st.sampled_from([None, "torchvision"])
    ),
    "stack": st.builds(Stack, names),
    "unstack": st.just(Unstack()),
}
plain: st.SearchStrategy[Step] = st.one_of(*BY_NAME.values())


def _matches(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    rules = st.builds(Rule, st.lists(globs, min_size=1, max_size=2).map(tuple), st.lists(inner, max_size=2).map(tuple))
    return st.lists(rules, min_size=1, max_size=3).map(lambda found: Match(tuple(found)))


chains = st.lists(st.recursive(plain, _matches, max_leaves=4), min_size=1, max_size=5)
