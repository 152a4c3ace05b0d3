"""Killed at any moment, a conversion leaves at its target nothing, the old file, or the whole new one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tconv.staging import SUFFIX

KILLS = 50


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True], ids=["no old file", "an old file"])
def test_fifty_kills_at_random_moments(tmp_path: Path, old: bool) -> None:
    source, target = tmp_path / "weights.npz", tmp_path / "out.safetensors"
    with zipfile.ZipFile(source, "w") as archive:  # 25 MB
        for n in range(24):
            with archive.open(f"w{n}.npy", "w") as member:
                np.save(member, np.full((256, 1024), n, np.float32))
    argv = [sys.executable, "-m", "tconv", str(source), "--half", "-o", str(target), "--force"]
    subprocess.run(argv, check=True, capture_output=True)  # what is imported is cached from now on
    start = time.monotonic()
    subprocess.run(argv, check=True, capture_output=True)
    duration = time.monotonic() - start
    whole = target.read_bytes()
    before = b"the old file" if old else None
    rng = random.Random(0)
    interrupted = 0
    for _ in range(KILLS // 2):
        target.unlink(missing_ok=True)
        if before is not None:
            target.write_bytes(before)
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, duration))
        interrupted += process.poll() is None
        process.kill()
        process.wait()
        found = target.read_bytes() if target.exists() else None
        assert found in (before, whole)
    assert interrupted  # some of the moments were in the middle of it
    subprocess.run(argv, check=True, capture_output=True)
    assert not list(tmp_path.glob(f".*{SUFFIX}"))  # what the killed ones left has been swept
    assert {p.name for p in tmp_path.iterdir()} == {source.name, target.name}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system of a given size")
def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    """The space is there when the plan is made, and gone when it is needed."""
    source = tmp_path / "x.npy"
    np.save(source, np.zeros(4_000_000, np.float32))
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"  # writes beyond it fail
        "from tconv.cli.app import run\n"
        f"sys.exit(run([{str(source)!r}, '--half', '-o', {str(tmp_path / 'out.npy')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tconv: {tmp_path / 'out.npy'}: cannot be written: File too large\n"
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]
