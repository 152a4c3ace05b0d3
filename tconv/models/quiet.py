"""Quiet while libraries work that talk: what is on standard error tconv says, and on standard output are results."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Without what is printed from Python or written to standard error from C++, and without logs and warnings. What a
    library raises says what went wrong.
    """
    sys.stderr.flush()
    kept, disabled = os.dup(2), logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with tempfile.TemporaryFile() as sink, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            os.dup2(sink.fileno(), 2)
            yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        logging.disable(disabled)
