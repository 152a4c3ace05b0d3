"""What of a data set can be read is what goes on; the rest is raised, or told where it is to be skipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tconv.errors import TconvError
from tconv.inputs import find
from tconv.readable import readable
from tconv.request import Request, Silent


def test_the_policy_on_bad_files_decides(tmp_path: Path) -> None:
    good, bad, empty = tmp_path / "good.npy", tmp_path / "bad.npy", tmp_path / "empty.npy"
    np.save(good, np.zeros(3, np.float32))
    bad.write_bytes(good.read_bytes()[:40])
    empty.touch()
    for policy, alone in (("error", False), ("skip", True)):
        words = (str(bad), str(empty)) if alone else (str(good), str(bad), str(empty))
        found = find(words)
        request = Request(words, on_bad=policy)  # type: ignore[arg-type]  # one of its words
        with pytest.raises(TconvError):
            readable(request, found, found.inputs, Silent())
    request = Request((str(tmp_path),), on_bad="skip")
    found = find(request.inputs)
    inputs, streams, problems = readable(request, found, found.inputs, Silent())
    assert [one.path for one in inputs] == list(streams) == [good]
    assert {problem.file for problem in problems} == {str(bad), str(empty)}
