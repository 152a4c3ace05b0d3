"""Whole jobs without the command line: what values decide, what is verified, what the report says."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tconv.errors import TconvError, TconvErrors
from tconv.formats.image.reader import ImageSource
from tconv.formats.positional import PositionalWriter
from tconv.job import convert
from tconv.pipeline import Sugar, steps_from_text
from tconv.planner import plan
from tconv.request import Request, Silent

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*inputs: str, to: str | None = "float16", **asked: Any) -> list[str]:
    """The job, and what it noted."""
    notes: list[str] = []
    request = Request(inputs, sugar=Sugar(to=to, stack=asked.pop("stack", False)), **asked)
    convert(request, Silent(), notes.append, lambda _: None)
    return notes


def checkpoint() -> dict[str, Any]:
    """A real model's weights, one of which is far beyond float16."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 4))
    state = model.state_dict()
    state["2.weight"][1, 2] = 1e6
    torch.save(state, "m.pt")
    return dict(state)


def dtypes(path: str) -> dict[str, str]:
    return {n: str(t.dtype).removeprefix("torch.") for n, t in torch.load(path, weights_only=True).items()}


def test_a_weight_above_65504_is_refused_by_name_and_nothing_is_written() -> None:
    checkpoint()
    with pytest.raises(
        TconvError, match=r"m\.pt: 2\.weight: .*1 of 16 values overflow float16 \(the largest is 1e\+06"
    ):
        run("m.pt")
    assert [p.name for p in Path().iterdir()] == ["m.pt"]


def test_what_is_refused_is_told_in_the_order_of_the_file_whichever_thread_found_it_first() -> None:
    arrays = {f"{n}": np.full(200_000 if n == 0 else 1, 1e6, np.float32) for n in range(9)}
    arrays["0"][1:] = 0
    np.savez("x.npz", **arrays)  # type: ignore[arg-type]  # arrays by name
    for _ in range(5):
        with pytest.raises(TconvErrors) as refused:
            run("x.npz", workers=4)
        assert [one.tensor for one in refused.value.problems] == [f"{n}" for n in range(9)]


@pytest.mark.parametrize(
    ("policy", "dtype", "value"),
    [("saturate", "float16", 65504.0), ("inf", "float16", np.inf), ("keep", "float32", 1e6)],
)
def test_every_policy_on_it(policy: str, dtype: str, value: float) -> None:
    state = checkpoint()
    run("m.pt", on_overflow=policy)
    made = torch.load("m.float16.pt", weights_only=True)
    assert str(made["2.weight"].dtype) == f"torch.{dtype}"
    assert made["2.weight"][1, 2].item() == value
    for name in ("0.weight", "0.bias", "1.running_var", "2.bias"):
        assert torch.equal(made[name], state[name].half())
    assert torch.equal(made["1.num_batches_tracked"], state["1.num_batches_tracked"])


def test_what_is_kept_is_told() -> None:
    checkpoint()
    assert run("m.pt", on_overflow="keep") == [
        (
            "m.pt: 2.weight: cast(float16, on_overflow=keep): stays float32: 1 of 16 values overflow float16 "
            "(the largest is 1e+06; its range is ±65504)"
        )
    ]


def test_a_dry_run_leaves_open_what_values_decide() -> None:
    checkpoint()
    request = Request(("m.pt",), sugar=Sugar(to="float16"), on_overflow="keep")
    (file,) = plan(request, Silent(), {}).files
    assert [t.spec.attrs.get("undecided") for t in file.stream.tensors] == ["float32"] * 6 + [None] + ["float32"] * 2


def test_patterns_and_the_policy_amp() -> None:
    checkpoint()
    notes = run("m.pt", keep=("2.w*", "1.bias=bfloat16"), policy="amp")
    assert dtypes("m.float16.pt") == {
        "0.weight": "float16", "0.bias": "float16",
        "1.weight": "float32", "1.bias": "bfloat16", "1.running_mean": "float32", "1.running_var": "float32",
        "1.num_batches_tracked": "int64", "2.weight": "float32", "2.bias": "float16",
    }  # fmt: skip
    assert len(notes) == 1
    assert notes[0].endswith("policy=amp): normalization layers are float32 (1.weight and 3 more)")


def test_a_pattern_that_protects_nothing_is_refused() -> None:
    checkpoint()
    with pytest.raises(TconvError, match=r"--keep 'weight' matches no name; .* whole name: '\*weight\*'"):
        run("m.pt", keep=("2.w*", "weight=float32"))
    assert [p.name for p in Path().iterdir()] == ["m.pt"]


def test_a_range_is_stated_of_what_is_worked_on() -> None:
    np.savez("x.npz", x=np.array([0.0, 255.0]), y=np.array([1000, 2000]))
    request = Request(("x.npz",), sugar=Sugar(normalize=True), range=(0, 255), fields="", output="y.npz")
    notes: list[str] = []
    convert(request, Silent(), notes.append, lambda _: None)
    assert notes == []
    assert np.load("y.npz")["x"].tolist() == [0, 1]


def test_a_tensor_that_would_lose_too_much_stays() -> None:
    """float16 has 11 digits: 1/3 is off by 2**-12 of itself at most, and 1e-9 by all of it."""
    np.savez("x.npz", fine=np.array([1 / 3]), small=np.array([1e-9, 1]), large=np.array([1e6]), exact=np.array([0.5]))
    run("x.npz", max_error=2.0**-12)
    made = np.load("x.float16.npz")
    assert {n: made[n].dtype.name for n in made} == {
        "fine": "float16", "small": "float64", "large": "float64", "exact": "float16",
    }  # fmt: skip


def test_a_stack_has_one_dtype() -> None:
    for n in range(2):
        np.save(f"{n}.npy", np.array([1.0, 1e6 * n]))
    with pytest.raises(TconvError, match=r"a stack has one dtype.*--stack"):
        run("0.npy", "1.npy", output="x.npy", stack=True, on_overflow="keep")


@pytest.mark.parametrize("asked", [{}, {"verify": True}, {"report": Path("r.json")}, {"on_overflow": "keep"}])
@pytest.mark.parametrize("how", ["replaced", "written to", "cut off"])
def test_an_input_that_changes_while_it_is_read_is_refused(
    how: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of ones with its second half of twos is no checkpoint that ever was."""
    for name, value in (("m.pt", 1.0), ("later.pt", 2.0)):
        torch.save({f"w{n}": torch.full((4,), value) for n in range(8)}, name)
    real = PositionalWriter.write

    def write(writer: Any, i: int, lo: int, array: Any) -> None:
        real(writer, i, lo, array)
        if how == "replaced" and Path("later.pt").exists():
            Path("later.pt").replace("m.pt")
        elif how == "written to" and Path("later.pt").exists():
            Path("m.pt").write_bytes(Path("later.pt").read_bytes())
            Path("later.pt").unlink()
            os.utime("m.pt", ns=(1, 1))
        elif how == "cut off":
            os.truncate("m.pt", 100)

    monkeypatch.setattr(PositionalWriter, "write", write)
    with pytest.raises(TconvError) as refused:
        run("m.pt", workers=1, **asked)
    assert str(refused.value) == "m.pt: w1: changed while it was read; run it again when nobody writes to it"
    assert {p.name for p in Path().iterdir()} <= {"m.pt", "later.pt"}


def test_of_a_file_that_changes_one_thing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("m").mkdir()
    for n in range(4):
        Image.new("RGB", (8, 8), (n, n, n)).save(f"m/{n}.png")
    real = ImageSource.read

    def read(source: Any, *rest: Any) -> Any:
        for n in (2, 3):
            os.utime(f"m/{n}.png", ns=(1, 1))
        return real(source, *rest)

    monkeypatch.setattr(ImageSource, "read", read)
    with pytest.raises(TconvError) as refused:
        run("m", to="float32", output="x.safetensors")
    assert str(refused.value).splitlines() == [
        f"m/{n}.png: changed while it was read; run it again when nobody writes to it" for n in (2, 3)
    ] + ["--on-bad skip leaves bad files out"]
    assert not Path("x.safetensors").exists()


def test_what_was_written_is_compared_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint()
    for output in ("a.pt", "a.safetensors"):
        run("m.pt", output=output, on_overflow="saturate", verify=True)
        assert Path(output).exists()
    written = os.pwrite

    def faulty(fd: int, data: Any, offset: int) -> int:
        return written(fd, bytes(data).replace(np.float16(65504).tobytes(), b"\0\0"), offset)

    monkeypatch.setattr(os, "pwrite", faulty)
    with pytest.raises(
        TconvError, match=r"b\.safetensors: 2\.weight: differs from what was written, first at element 6"
    ):
        run("m.pt", output="b.safetensors", on_overflow="saturate", verify=True)
    assert not Path("b.safetensors").exists()


def test_the_report_tells_what_was_done_and_what_it_cost() -> None:
    np.save("x.npy", np.array([1.0, 1 / 3, 1e-9, 70000.0, np.nan, np.inf]))
    run("x.npy", report=Path("r.json"), on_overflow="saturate")
    found = json.loads(Path("r.json").read_text())
    assert found["report"] == 1
    assert found["steps"] == ["cast(float16, on_overflow=saturate)"]
    data = Path("x.npy").read_bytes()
    assert found["inputs"] == [{"path": "x.npy", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}]
    assert found["skipped"] == []
    (output,) = found["outputs"]
    assert (output["format"], output["bytes"]) == ("npy", Path("x.float16.npy").stat().st_size)
    (tensor,) = output["tensors"]
    assert tensor["before"] == {"dtype": "float64", "shape": [6]}
    assert tensor["after"] == {"dtype": "float16", "shape": [6], "axes": None, "range": None, "device": "cpu"}
    (cast,) = tensor["casts"]
    counted = ("values", "min", "max", "overflow", "underflow", "source_nan", "source_inf", "inexact", "max_rel_error")
    assert {key: cast[key] for key in counted} == {
        "values": 6, "min": 1e-9, "max": 70000.0, "overflow": 1, "underflow": 1, "source_nan": 1, "source_inf": 1,
        "inexact": 2, "max_rel_error": 1.0,
    }  # fmt: skip
    assert cast["max_abs_error"] == float(abs(np.float64(1 / 3) - np.float64(np.float16(1 / 3))))


@pytest.mark.parametrize("scale", [1e-200, 1e-320, 1e200])
def test_the_ratio_of_the_report_is_there_where_squares_are_no_float64(scale: float) -> None:
    np.save("x.npy", np.array([1.0, -2.0, 3.0]) * scale)
    steps = steps_from_text(["cast(float16, on_overflow=saturate)" if scale < 1 else "cast(complex128)"])
    run("x.npy", to=None, steps=tuple(steps), output="y.npy", report=Path("r.json"))
    (cast,) = json.loads(Path("r.json").read_text())["outputs"][0]["tensors"][0]["casts"]
    assert (cast["inexact"], cast["sqnr_db"]) == ((3, 0.0) if scale < 1 else (0, None))


def test_the_report_of_a_stack_names_the_file_of_each_row_and_of_what_was_skipped() -> None:
    for n in range(3):
        Image.new("RGB", (2, 2), (n, n, n)).save(f"{n}.png")
    Path("1.png").write_bytes(Path("1.png").read_bytes()[:-20])
    run("0.png", "1.png", "2.png", to="float16", output="x.npy", report=Path("r.json"), on_bad="skip")
    found = json.loads(Path("r.json").read_text())
    assert [entry["path"] for entry in found["skipped"]] == ["1.png"]
    assert [entry["path"] for entry in found["inputs"]] == ["0.png", "2.png"]
    (tensor,) = found["outputs"][0]["tensors"]
    assert [part["source"] for part in tensor["parts"]] == ["0.png", "2.png"]
    assert tensor["after"]["shape"] == [2, 2, 2, 3]
    assert [part["casts"][0]["max"] for part in tensor["parts"]] == [0, 2]


def test_an_existing_report_is_in_the_way() -> None:
    checkpoint()
    Path("r.json").write_text("old")
    with pytest.raises(TconvError, match=r"r\.json: exists already"):
        run("m.pt", on_overflow="inf", report=Path("r.json"))
    assert Path("r.json").read_text() == "old"
    run("m.pt", on_overflow="inf", report=Path("r.json"), force=True)
    assert json.loads(Path("r.json").read_text())["report"] == 1


def test_the_schema_of_the_report_is_written_down() -> None:
    checkpoint()
    run("m.pt", on_overflow="keep", report=Path("r.json"))
    found = json.loads(Path("r.json").read_text())
    assert found["notes"][0].startswith(
        "m.pt: 2.weight: cast(float16, on_overflow=keep): stays float32: 1 of 16 values"
    )
    assert found["totals"] == {"casts": 7, "values": 128 + 4, "overflow": 0, "infinite": 0, "nan": 0, "underflow": 0}
    written = (Path(__file__).parents[1] / "REPORT.md").read_text(encoding="utf8")

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    assert [key for key in sorted(keys(found)) if f"`{key}`" not in written] == []


def test_an_account_of_a_stack_is_of_all_values_of_each_part() -> None:
    for n in range(2):
        values = np.ones(3_000_000, np.float32)
        values[5] = 70000 + n
        np.save(f"{n}.npy", values)
    notes = run("0.npy", "1.npy", output="x.npy", stack=True, on_overflow="saturate")
    assert [note.split(": ")[0] for note in notes] == ["0.npy", "1.npy"]
    assert all("1 of 3000000 values overflow" in note for note in notes)


def test_the_parts_of_one_file_have_accounts_of_their_own() -> None:
    np.savez("s.npz", a=np.array([1.0, 2.0]), b=np.array([1e6, 2.0]), c=np.array([1e-9, 2.0]))
    notes = run("s.npz", output="x.npy", stack=True, on_overflow="saturate", report=Path("r.json"))
    assert [note.split(": ")[:2] for note in notes] == [["s.npz", "b"], ["s.npz", "c"]]
    (tensor,) = json.loads(Path("r.json").read_text())["outputs"][0]["tensors"]
    found = [(part["casts"][0]["values"], part["casts"][0]["overflow"]) for part in tensor["parts"]]
    assert found == [(2, 0), (2, 1), (2, 0)]


def test_only_what_does_not_fit_stays() -> None:
    tensors = {"a=b": 1e6, "a'b": 1.0, "aXb": 1.0, "c": 1.0}
    torch.save({name: torch.tensor([value]) for name, value in tensors.items()}, "m.pt")
    notes = run("m.pt", on_overflow="keep")
    assert dtypes("m.float16.pt") == {"a=b": "float32", "a'b": "float16", "aXb": "float16", "c": "float16"}
    assert [note.split(": ")[1] for note in notes] == ["a=b"]


def test_a_nan_of_other_bits_is_a_nan() -> None:
    """Signalling NaNs become quiet ones in some conversions and not in others."""
    values = np.zeros(6 << 20, np.float32)
    values.view(np.uint32)[0] = 0x7F800001
    np.save("x.npy", values)
    run("x.npy", verify=True)
    assert np.isnan(np.load("x.float16.npy")[0])


@pytest.mark.parametrize("report", ["x.npy", "link.json", "y.npy", "out", "out/x.npy", "folder", "/dev/null"])
def test_a_report_takes_nobodys_place(report: str) -> None:
    np.save("x.npy", np.ones(3))
    before = Path("x.npy").read_bytes()
    Path("link.json").symlink_to("x.npy")
    Path("folder").mkdir()
    output = "out/" if report.startswith("out") else "y.npy"
    with pytest.raises(TconvError, match=r"the report would|is a folder|neither a file"):
        run("x.npy", output=output, report=Path(report), force=True)
    assert Path("x.npy").read_bytes() == before
    assert sorted(p.name for p in Path().iterdir()) == ["folder", "link.json", "x.npy"]


@pytest.mark.parametrize(
    "asked", [{"keep": ("x",)}, {"policy": "amp"}, {"max_error": 0.1}, {"on_overflow": "saturate"}]
)
def test_how_to_cast_is_for_a_cast(asked: dict[str, Any]) -> None:
    with pytest.raises(TconvError, match="without a cast; say to which dtype: --half"):
        run("x.npy", to=None, output="y.npy", **asked)


def test_a_range_that_a_file_claims_is_counted_where_values_are_clamped() -> None:
    np.save("x.npy", np.array([[0, 1, 128, 255]], np.uint8))
    request = Request(("x.npy",), sugar=Sugar(normalize=True), range=(0, 100), output="y.safetensors")
    convert(request, Silent(), lambda _: None, lambda _: None)
    notes: list[str] = []
    steps = tuple(steps_from_text(["scale(uint8)"]))
    convert(Request(("y.safetensors",), steps=steps, output="z.npy"), Silent(), notes.append, lambda _: None)
    assert len(notes) == 1
    assert notes[0] == (
        "y.safetensors: x: scale(uint8): 2 of 4 values lie outside the range known from the file [0, 1]; "
        "from 0 to 2.55; they are clamped; say the true range with --range LO,HI"
    )
    notes.clear()
    asked = {"output": "z.npy", "range": (0, 2), "force": True}
    convert(Request(("y.safetensors",), steps=steps, **asked), Silent(), notes.append, lambda _: None)  # type: ignore[arg-type]  # fields of several types
    assert "2 of 4" not in notes[0]
    assert "lie outside the stated range [0, 2]" in notes[0]


def test_what_a_step_says_of_overflow_beats_the_option() -> None:
    np.save("x.npy", np.array([7e4, 1]))
    steps = tuple(steps_from_text(["cast(half, on_overflow=error)"]))
    with pytest.raises(TconvError, match="1 of 2 values overflow float16"):
        run("x.npy", to=None, steps=steps, output="y.npy", on_overflow="saturate")


@pytest.mark.parametrize(("policy", "becomes"), [("saturate", 65504), ("inf", np.inf)])
def test_arithmetic_that_overflows_its_own_dtype_follows_the_option(policy: str, becomes: float) -> None:
    np.save("x.npy", np.array([6e4, 1], np.float16))
    steps = tuple(steps_from_text(["normalize(mean=0, std=0.5)"]))
    with pytest.raises(TconvError, match=r"1 of 2 values overflow float16 \(the largest is 120000;") as caught:
        run("x.npy", to=None, steps=steps, output="y.npy")
    assert "keep" not in str(caught.value)
    with pytest.raises(TconvError, match="--on-overflow keep without a cast"):
        run("x.npy", to=None, steps=steps, output="y.npy", on_overflow="keep")
    notes = run("x.npy", to=None, steps=steps, output="y.npy", on_overflow=policy)
    assert np.load("y.npy").tolist() == [becomes, 2]
    assert "1 of 2 values overflow float16" in notes[0]


def test_equal_casts_of_one_chain_have_accounts_of_their_own() -> None:
    np.save("x.npy", np.array([7e4, 1, 2]))
    text = "cast(half, on_overflow=saturate) | cast(float64)"
    run("x.npy", to=None, steps=tuple(steps_from_text([text, text])), output="y.npy", report=Path("r.json"))
    (tensor,) = json.loads(Path("r.json").read_text())["outputs"][0]["tensors"]
    told = [(cast["from"], cast["to"], cast["values"], cast["overflow"], cast["max"]) for cast in tensor["casts"]]
    there, back = ("float64", "float16", 3), ("float16", "float64", 3, 0, 65504)
    assert told == [(*there, 1, 7e4), back, (*there, 0, 65504), back]
