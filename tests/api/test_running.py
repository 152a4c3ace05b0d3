"""convert and plan do what the command line does."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tconv
from tconv.cli.app import run


@pytest.fixture
def array(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.array([[0.5, 70000.0], [1e-9, -2.0]]))
    return path


def test_a_file_is_written_where_it_is_said(array: Path) -> None:
    target = array.with_name("y.npy")
    made = tconv.convert(array, target, "cast(float32)")
    assert made.paths == (target,)
    assert made.path == target
    loaded = np.load(target)
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, np.load(array).astype(np.float32))


def test_without_a_target_it_lies_beside_its_input(array: Path) -> None:
    assert tconv.convert(str(array), steps="cast(float32)").path == array.with_name("x.float32.npy")


def test_notes_are_returned_and_logged(array: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = tconv.convert(array, array.with_name("y.npy"), "cast(float16)", on_overflow="saturate")
    (note,) = made.notes
    assert "1 of 4 values overflow float16 (the largest is 70000; its range is ±65504); 1 became 0" in note
    assert caplog.record_tuples == [("tconv", logging.WARNING, note)]


def test_what_does_not_fit_leaves_nothing_behind(array: Path) -> None:
    with pytest.raises(tconv.TconvError, match="1 of 4 values overflow float16") as refused:
        tconv.convert(array, array.with_name("y.npy"), "cast(float16)")
    assert refused.value.file == str(array)
    assert refused.value.step == "cast(float16)"
    assert [p.name for p in array.parent.iterdir()] == ["x.npy"]


def test_nothing_is_replaced_without_force(array: Path) -> None:
    target = array.with_name("y.npy")
    tconv.convert(array, target)
    with pytest.raises(tconv.TconvError, match="exists"):
        tconv.convert(array, target, "cast(float32)")
    tconv.convert(array, target, "cast(float32)", force=True)
    assert np.load(target).dtype == np.float32


def test_several_inputs_go_to_a_folder(tmp_path: Path) -> None:
    for n in range(2):
        np.save(tmp_path / f"{n}.npy", np.full(3, n, np.float64))
    made = tconv.convert([tmp_path / "0.npy", tmp_path / "1.npy"], f"{tmp_path}/out/", "cast(half)", format="npz")
    assert made.paths == (tmp_path / "out",)
    assert np.load(tmp_path / "out" / "1.npz")["1"].tolist() == [1, 1, 1]


def test_bad_files_are_skipped_if_that_is_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "good.npy", np.ones(3))
    (tmp_path / "bad.npy").write_bytes(b"")
    made = tconv.convert(tmp_path, tmp_path / "out.npz", on_bad="skip")
    assert [Path(problem.file).name for problem in made.skipped] == ["bad.npy"]
    assert np.load(made.path).files == ["good"]


def test_a_plan_writes_nothing_and_tells_what_is_in_the_way(array: Path) -> None:
    planned = tconv.plan(array, array.with_name("y.npy"), "cast(float16, on_overflow=keep)")
    (file,) = planned.files
    (tensor,) = file.stream.tensors
    assert str(tensor.spec.dtype) == "float16"
    assert tensor.spec.attrs["undecided"] == "float64"
    assert [p.name for p in array.parent.iterdir()] == ["x.npy"]
    assert not planned.in_the_way
    assert tconv.plan(array, array.with_name("x.npz")).size > 0
    tconv.convert(array, array.with_name("y.npy"))
    assert "exists" in str(tconv.plan(array, array.with_name("y.npy")).in_the_way[0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"forse": True}, "there is no option 'forse'; did you mean force?"),
        ({"on_bad": "ignore"}, "on_bad takes error or skip, not 'ignore'"),
        ({"channels": "rbg"}, "channels takes .*; did you mean rgb"),
        ({"range": (1, 0)}, r"range is \(1, 0\); give \(low, high\)"),
        ({"range": 5}, r"range is 5; give"),
        ({"workers": 0}, "workers takes a whole number from 1 on, not 0"),
        ({"max_memory": "1GB"}, "max_memory takes a whole number"),
        ({"steps": "cast(flot16)"}, "did you mean float16"),
        ({"steps": 5}, "5 are no steps"),
        ({"src": []}, "there is no input"),
        ({"format": "np"}, "there is no output format 'np'"),
        ({"policy": "amb", "steps": "cast(half)"}, "policy takes amp, not 'amb'; did you mean amp"),
    ],
)
def test_what_is_wrong_in_itself_is_told_before_a_file_is_opened(options: dict[str, Any], says: str) -> None:
    arguments = {"src": "no such file", **options}
    with pytest.raises(tconv.UsageError, match=says):
        tconv.convert(**arguments)


def test_several_patterns_may_be_given_as_one_text(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones(1), b=np.ones(2), c=np.ones(3))
    tconv.convert(tmp_path / "x.npz", tmp_path / "y.npz", only="[ab]", skip=["a"])
    assert np.load(tmp_path / "y.npz").files == ["b"]


def test_what_a_pipeline_file_says_of_inputs_counts_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones(1), b=np.ones(2))
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\ninput:\n  only: a\nsteps:\n  - cast: float32\n")
    ways: list[Any] = [path, tconv.Pipeline.from_yaml(path), tconv.Pipeline(path)]
    for n, steps in enumerate(ways):
        assert np.load(tconv.convert(tmp_path / "x.npz", tmp_path / f"{n}.npz", steps).path).files == ["a"]
    made = tconv.convert(tmp_path / "x.npz", tmp_path / "y.npz", path, only="b").path
    assert np.load(made).files == ["b"]


def test_progress_hears_of_it(array: Path) -> None:
    class Heard:
        phases: list[str] = []  # noqa: RUF012  # one test, one instance
        done = 0

        def begin(self, phase: str, total: int, unit: str) -> None:
            self.phases.append(phase)

        def advance(self, amount: int) -> None:
            self.done += amount

    heard = Heard()
    tconv.convert(array, array.with_name("y.npy"), progress=heard)
    assert heard.phases == ["reading headers", "converting"]
    assert heard.done > 0


def test_a_plan_prints_what_the_command_line_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x\n.npz", a=np.zeros((2, 3), np.float32), b=np.zeros((0, 3)))
    source, target = str(tmp_path / "x\n.npz"), str(tmp_path / "y.safetensors")
    made = tconv.plan(source, target, "clamp(0, 1) | cast(float16)")
    assert run(["plan", source, "--step", "clamp(0, 1) | cast(float16)", "-o", target]) == 0
    assert f"{made}\n" == capsys.readouterr().out
    assert "passes: [clamp(0, 1) + cast(float16): one pass]" in str(made)
    assert repr(made) == f"<Plan: {target}; {made.size:,} bytes>"
