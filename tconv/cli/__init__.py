"""The command line: one module a verb; the only place that prints and that knows exit codes."""


def main() -> None:
    """The entry point of the command ``tconv``."""
    import gc
    import os

    # What a short-lived command imports stays; looking through it for garbage costs a tenth of a small conversion.
    gc.set_threshold(100_000, 50, 50)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # typer needs pydantic, and pydantic no plugins here

    from tconv.cli.app import main as run

    run()
