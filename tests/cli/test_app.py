"""The root: the default verb, help, version, usage errors, exit codes, signals."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tconv import __version__
from tests.cli.conftest import Ran

Tconv = Callable[..., Ran]


def test_help_shows_the_examples_the_verbs_and_the_main_options(tconv: Tconv) -> None:
    for flag in ("--help", "-h"):
        ran = tconv(flag)
        assert ran.code == 0
        for word in ("tconv images/ --to float32 --normalize", "tconv ckpt.pt --half", "--stats", "inspect", "formats"):
            assert word in ran.out


def test_no_arguments_show_the_help_as_it_is_and_are_wrong(tconv: Tconv) -> None:
    ran = tconv()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: tconv INPUT... [OPTIONS]\n")
    assert ran.err.strip() == tconv("--help").out.strip()


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["convert", "--help"],
        ["inspect", "--help"],
        ["doctor", "--help"],
        ["stats", "--help"],
        ["quantize-model", "--help"],
        ["steps", "--help"],
    ],
)
def test_the_help_fits_80_columns_and_shows_no_types(
    tconv: Tconv, monkeypatch: pytest.MonkeyPatch, argv: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = tconv(*argv).out
    assert max(map(len, out.splitlines())) <= 80
    for leak in ("list[", "<", ">=", "[required]", "None"):
        assert leak not in out


def test_the_examples_of_the_help_are_right(tconv: Tconv) -> None:
    """Every example parses; it fails for the want of its files only."""
    out = tconv("--help").out.replace("\\\n", "")
    examples = re.findall(r"^  (tconv .*?)(?:  +\S.*)?$", out, re.MULTILINE)
    assert len(examples) == 7
    for example in examples:
        ran = tconv(*shlex.split(example)[1:])
        assert (ran.code, ran.out) == (1, "")
        assert "there is no such file or folder" in ran.err


def test_the_help_of_convert_has_its_options_in_groups(tconv: Tconv) -> None:
    ran = tconv("convert", "--help")
    order = [ran.out.index(w) for w in ("Conversion, in this order:", "--resize SIZE", "Which tensors:", "Running:")]
    assert order == sorted(order)


@pytest.mark.parametrize("verb", ["plan", "inspect", "doctor", "stats", "formats", "steps", "pipelines", "schema"])
def test_every_verb_has_a_help(tconv: Tconv, verb: str) -> None:
    ran = tconv(verb, "--help")
    assert ran.code == 0
    assert f"Usage: tconv {verb}" in ran.out


def test_version(tconv: Tconv) -> None:
    assert tconv("--version") == Ran(0, f"tconv {__version__}\n", "")


@pytest.mark.parametrize("argv", [["--half", "x.npy"], ["x.npy", "--half"], ["convert", "x.npy", "--half"]])
def test_convert_is_the_default_verb_wherever_the_options_stand(tconv: Tconv, argv: list[str]) -> None:
    np.save("x.npy", np.array([1.5, 2.0], np.float32))
    assert tconv(*argv) == Ran(0, "x.float16.npy\n", "")
    assert np.load("x.float16.npy").dtype == np.float16


def test_a_path_that_is_called_like_a_verb(tconv: Tconv) -> None:
    Path("steps").mkdir()
    np.save("steps/x.npy", np.zeros(2))
    assert tconv("./steps", "-o", "out/").code == 0
    assert Path("out/x.npy").exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["x.npy", "--nomalize"], ["--nomalize", "--normalize"]),
        (["x.npy", "--to", "floot16"], ["floot16", "float16"]),
        (["x.npy", "--to", "float16", "--half"], ["float16 and float16", "exclude"]),
        (["x.npy", "--half", "--bf16"], ["float16 and bfloat16"]),
        (["x.npy", "--step", "nomalize(imagenet)"], ["nomalize", "normalize"]),
        (["x.npy", "--step", "normalize(mean=0.5)"], ["std"]),
        (["x.npy", "--to", "float16", "--step", "cast(float32)"], ["--step 'cast(float16)'", "--step 'cast(float32)'"]),
        (["x.npy", "--half", "--pipeline", "imagenet"], ["--pipeline", "cast(float16)"]),
        (["x.npy", "--step", "scale", "--pipeline", "imagenet"], ["exclude"]),
        (["x.npy", "--pipeline", "imagnet"], ["imagnet", "imagenet"]),
        (["x.npy", "--range", "5"], ["LO,HI"]),
        (["x.npy", "--range", "1,0"], ["less"]),
        (["x.npy", "--range", "nan,1"], ["finite"]),
        (["x.npy", "--input-layout", "HHW"], ["HHW"]),
        (["x.npy", "--max-memory", "lots"], ["lots", "500MB"]),
        (["x.npy", "--on-overflow", "wrap", "--half"], ["wrap", "saturate"]),
        (["x.npy", "--resize", "0"], ["0"]),
        (["x.npy", "-o", "x.bmp"], [".bmp", ".npy"]),
        (["x.npy", "--to", "uint8", "--on-overflow", "inf"], ["uint8", "inf"]),
        (["convert"], ["INPUT"]),
    ],
)
def test_a_wrong_command_is_exit_2_and_writes_nothing(tconv: Tconv, argv: list[str], words: list[str]) -> None:
    np.save("x.npy", np.ones((2, 2), np.float32))
    ran = tconv(*argv)
    assert (ran.code, ran.out) == (2, "")
    for word in words:
        assert word in ran.err
    assert os.listdir() == ["x.npy"]  # noqa: PTH208  # the names are what matters


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--dtype", "float16"], "there is no option --dtype; it is --to DTYPE here"),
        (["--fp16"], "there is no option --fp16; it is --half here"),
        (["--haf"], "there is no option --haf; did you mean --half?"),
        (["--bogus"], "there is no option --bogus; see tconv convert --help"),
        (["-y"], "there is no option -y; it is --force here"),
        (["--to"], "Option '--to' requires an argument; see tconv"),
        (["--to", "flot32"], "there is no dtype 'flot32'; did you mean float32?"),
        (["--to", "<f4"], "there is no dtype '<f4'; NumPy's '<f4' is called float32 here"),
        (["--on-overflow", "clip"], "--on-overflow takes error, saturate, inf or keep, not 'clip'"),
        (["--channels", "grey"], "--channels takes rgb, bgr, gray, rgba or keep, not 'grey'; did you mean gray?"),
        (["--workers", "x"], "--workers takes a whole number from 1 to 256, not 'x'"),
        (["-j", "0"], "--workers takes a whole number from 1 to 256, not '0'"),
        (["--max-pixels", "1e6"], "--max-pixels takes a whole number from 1 to "),
        (["--resize", "224,224"], "--resize 224,224: '224,224' is no size in pixels; for example --resize 224 "),
        (["--resize", "224*224"], "--resize 224*224: '224*224' is no size in pixels; for example --resize 224 "),
        (["--resize", ""], "--resize is empty"),
        (
            ["--stats", "imgnet"],
            "--stats imgnet: 'imgnet' is neither imagenet nor clip nor MEAN/STD nor a file; did",
        ),
        (["--stats", "0.5"], "--stats 0.5: it takes mean and std; write MEAN/STD, as in --stats 0.5/0.5"),
        (["--stats", "0.5,0.4,0.3"], "it takes mean and std; write MEAN/STD, as in --stats 0.5/0.5"),
        (["--stats", "0.5/0"], "--stats 0.5/0: std is 0; it must be above 0; for example --stats imagenet"),
        (["--layout", "BCHW"], "--layout: the axis of a batch is called N; write NCHW"),
        (["--layout", "C H W"], "--layout C H W: 'C H W' does not name each axis once; for example --layout CHW"),
        (["--layout", "2,0,1"], "by numbers it is --step 'permute(2, 0, 1)'"),
        (["--step", "resize 224"], "parameters stand in parentheses: resize(224)"),
        (["--step", "resize(224),scale"], "between steps stands a |: resize(224) | scale"),
        (["--step", "to_tensor"], "there is no step 'to_tensor'; write scale | permute(CHW)"),
        (["--pipeline", "imagnet"], "there is no pipeline 'imagnet'; did you mean imagenet?"),
    ],
)
def test_what_is_wrong_is_said_in_plain_words_with_what_was_meant(tconv: Tconv, argv: list[str], says: str) -> None:
    np.save("x.npy", np.ones((2, 2), np.float32))
    ran = tconv("x.npy", *argv)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    for leak in ("Value error", "Input should", "Expected", "str", "None"):
        assert leak not in ran.err


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["inspct", "x.npy"], "did you mean the verb inspect?"),
        (["convrt", "x.npy", "--half"], "did you mean the verb convert?"),
        (["info", "x.npy"], "did you mean the verb inspect?"),
        (["show", "x.npy"], "did you mean the verb inspect?"),
        (["step"], "did you mean the verb steps?"),
        (["help"], "write tconv --help"),
        (["version"], "write tconv --version"),
    ],
)
def test_a_mistyped_verb_is_told_from_a_missing_file(tconv: Tconv, argv: list[str], hint: str) -> None:
    np.save("x.npy", np.ones(2))
    assert tconv(*argv) == Ran(2, "", f"tconv: {argv[0]}: there is no such file or folder; {hint}\n")


@pytest.mark.parametrize("name", ["inspct", "help"])
def test_a_file_that_is_called_so_is_a_file(tconv: Tconv, name: str) -> None:
    Path(name).mkdir()
    np.save(f"{name}/x.npy", np.ones(2))
    assert tconv(name, "--half", "-o", "out/").code == 0


@pytest.mark.parametrize("name", ["gone", "gone.npy", "./inspct", "inspct*"])
def test_a_file_that_is_not_there_is_just_that(tconv: Tconv, name: str) -> None:
    ran = tconv(name, "--half")
    assert (ran.code, ran.err) == (1, f"tconv: {name}: there is no such file or folder\n")


def test_an_unexpected_error_is_a_sentence_and_debug_shows_where(tconv_process: Tconv, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import tconv.inputs\ndef bug(words, **how): raise ZeroDivisionError('a bug')\ntconv.inputs.find = bug\n"
    )
    old = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{old}"
    try:
        ran = tconv_process("x.npy", "--half")
        debug = tconv_process("x.npy", "--half", "--debug")
    finally:
        os.environ["PYTHONPATH"] = old
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "tconv: internal error, please report it: ZeroDivisionError: a bug (--debug shows where)\n"
    assert "Traceback" in debug.err


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m tconv formats | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with (tmp_path / "big.npy").open("wb") as file:  # 8 GB of zeros that take no room
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 30,)})
        file.truncate(file.tell() + (8 << 30))
    argv = [sys.executable, "-m", "tconv", "big.npy", "--half", "-o", "out.npy"]
    process = subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not list(tmp_path.glob(".*/out.npy")):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (code, b"")
    assert b"Traceback" not in err
    assert [p.name for p in tmp_path.iterdir()] == ["big.npy"]


def test_completion_can_be_shown_and_completes_the_default_verb(tmp_path: Path) -> None:
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    shown = subprocess.run(
        [sys.executable, "-m", "tconv", "--show-completion", "bash"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0
    assert "complete" in shown.stdout

    def complete(words: str) -> str:
        variables = {
            **env,
            "_TCONV_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }
        done = subprocess.run(
            [sys.executable, "-c", "from tconv.cli import main; main()"],
            env=variables, cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout

    assert "--normalize" in complete("tconv --norm")
    assert "--normalize" in complete("tconv x.npy --norm")
    assert "inspect" in complete("tconv ins")
