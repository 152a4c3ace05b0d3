"""The command line: one module a verb; the only place that prints and that knows exit codes."""


def main() -> None:
    """The entry point of the command ``tconv``."""
    import gc
    import os

    _open_standard_streams()
    # What a short-lived command imports stays; looking through it for garbage costs a tenth of a small conversion.
    gc.set_threshold(100_000, 50, 50)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's would spin at first; the workers are the threads
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # typer needs pydantic, and pydantic no plugins here

    try:
        from tconv.cli.app import main as run

        run()
    except KeyboardInterrupt:  # before the command had begun
        os._exit(130)


def _open_standard_streams() -> None:
    """Where the shell closed one (``>&-``), the next file to be opened would take its place, and get its text."""
    import os
    import sys

    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  # for the life of the process
