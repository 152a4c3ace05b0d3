"""Makes the pages of the API from its docstrings: ``python -m tests.api_pages FOLDER``; a warning is an error."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pdoc

import tconv
import tconv.loaders.tensorflow
import tconv.loaders.torch

MODULES = ("tconv", r"!tconv\..*", "tconv.loaders")


def make(folder: Path) -> None:
    """HTML pages below ``folder``, from ``index.html`` on."""
    for name in tconv.__all__:
        getattr(tconv, name)  # pdoc looks into the module, where a name lies from its first use on
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A TypedDict remembers no bases: of inherited options pdoc cannot know that they come from ReadingOptions.
        warnings.filterwarnings("ignore", r"Cannot determine where tconv\.Options\.\w+ is taken from")
        pdoc.render.configure(docformat="markdown", footer_text=f"tconv {tconv.__version__}")
        pdoc.pdoc(*MODULES, output_directory=folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
