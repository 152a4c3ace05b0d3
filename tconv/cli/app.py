"""The root command: verbs, of which convert is the default, and every error turned into words and an exit code."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperGroup

from tconv import __version__
from tconv.cli import console
from tconv.cli.verb import Verb, take_as_typed
from tconv.errors import TconvError, UsageError, printable

# Which module each is in; in the order of the help.
VERBS = {
    "convert": "convert",
    "plan": "dry_run",
    "inspect": "inspect",
    "doctor": "doctor",
    "check": "check",
    "diff": "diff",
    "stats": "stats",
    "quantize-model": "quantize_model",
    "devices": "devices",
    "formats": "formats",
    "steps": "steps",
    "pipelines": "pipelines",
    "schema": "schema",
}
DEFAULT_VERB = "convert"
WRONG = 2  # the exit code of a wrong command


class DefaultVerb(TyperGroup):
    """A first word that is neither a verb nor an option of the root means ``convert`` with that word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {name for param in self.get_params(ctx) for name in param.opts}
        if not args and not ctx.resilient_parsing:
            sys.stderr.write(f"{ctx.get_help()}\n")
            ctx.exit(WRONG)
        if args and args[0] not in self.commands and args[0].split("=")[0] not in own:
            if not ctx.resilient_parsing:
                _refuse_mistyped_verb(args[0], list(VERBS))
            args = [DEFAULT_VERB, *args]
        take_as_typed(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, "INPUT... [OPTIONS]")
        formatter.write_usage(ctx.command_path, "VERB ...", prefix="       ")

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Verbs and, since it may be left out, what would complete ``convert``."""
        verb = self.commands[DEFAULT_VERB]
        with verb.make_context(DEFAULT_VERB, [], parent=ctx, resilient_parsing=True) as inner:
            if incomplete.startswith("-"):
                return [*super().shell_complete(ctx, incomplete), *verb.shell_complete(inner, incomplete)]
            files = [item for p in verb.params for item in p.shell_complete(inner, incomplete) if p.nargs == -1]
        return [*super().shell_complete(ctx, incomplete), *files]


def _refuse_mistyped_verb(word: str, verbs: list[str]) -> None:
    """Refuse a first word that names no file but is nearly a verb, or is the verb of another tool."""
    if word.startswith("-") or any(c in word for c in "*?[./\\") or os.path.lexists(word):
        return
    from tconv.suggest import did_you_mean
    from tconv.vocabulary import VERBS

    meant = VERBS.get(word.lower(), "")
    if meant.startswith("-"):
        hint = f"write tconv {meant}"
    else:
        hint = did_you_mean(meant or word, verbs).replace("did you mean", "did you mean the verb")
    if hint:
        raise UsageError("there is no such file or folder", remedy=hint, file=word)


app = typer.Typer(
    cls=DefaultVerb,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # a help that is read through pipes as well, in half the time
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"tconv {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print it and exit."),
) -> None:
    """Convert images, arrays and checkpoints into framework-ready tensors: exact, loud, lazy, fast.

    \b
    tconv images/ --to float32 --normalize    one tensor an image, in 0…1
    tconv ckpt.pt --half                      ckpt.float16.pt; integers stay
    tconv model.pth --bf16 -o model.safetensors
    tconv images/ --resize 224x224 --normalize --stats imagenet --layout CHW \\
        -o batch.npy
    tconv images/ --step 'resize(256) | crop(224) | scale' -o batch.npy
    tconv batch.npy -o png/ --denormalize imagenet    pictures again
    tconv inspect ckpt.pt                     what is in it, from headers alone

    \b
    Main options of a conversion (tconv convert --help has all of them):
      --to DTYPE, --half, --bf16, --float …   cast
      --normalize, --stats imagenet           to 0…1, then (x - mean) / std
      --resize 224, --layout CHW              size and axes of images
      --step 'STEP | STEP', --pipeline NAME   the same, in your own order
      -o PATH, --force                        where to; replace what is there
      -n, --dry-run                           the whole plan, without values
    """


def with_verbs(verbs: Iterable[str]) -> typer.Typer:
    """The root with these verbs, whose modules are imported now."""
    made = copy.copy(app)
    made.registered_commands = []
    for verb in verbs:
        importlib.import_module(f"tconv.cli.{VERBS[verb]}").register(made)
    for command in made.registered_commands:
        command.cls = Verb
    return made


def _with_verbs_for(argv: list[str]) -> typer.Typer:
    """The root with the one verb that ``argv`` asks for: to make all of them takes longer than a small conversion does.
    With all where it is an option of the root that comes first, or nothing does.
    """
    if not argv or argv[0].startswith("-"):
        return with_verbs(VERBS)
    return with_verbs([argv[0] if argv[0] in VERBS else DEFAULT_VERB])


class Terminated(BaseException):
    """SIGTERM or SIGHUP: cleaned up after like an interrupt, of which typer would make exit 130."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _terminate(number: int, _frame: object) -> None:
    for name in _SIGNALS:  # the cleaning up is not to be interrupted by who presses Ctrl-C twice
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise Terminated(number)


_SIGNALS = [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def main() -> None:
    """Run the command that the shell gave, and exit."""
    for name in _SIGNALS:
        signal.signal(getattr(signal, name), _terminate)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # a path of any bytes is printed as just these
    code = run(sys.argv[1:])
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    # All files are closed and all threads joined: taking the interpreter apart would only cost time.
    os._exit(code)


def run(argv: list[str]) -> int:
    """One command; what it prints goes to stdout and stderr. Returns the exit code."""
    debug = "--debug" in argv
    try:
        result = typer.main.get_command(_with_verbs_for(argv)).main(args=argv, prog_name="tconv", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except TconvError as problem:
        return _fail(str(problem), problem.exit_code, debug)
    except Terminated as signalled:
        return 128 + signalled.number
    except KeyboardInterrupt:
        if "-q" not in argv and "--quiet" not in argv:
            console.fail("interrupted")
        return 130
    except (BrokenPipeError, SystemExit):  # typer makes the one of the other
        return 0  # the reader has gone (`| head`), which is its business
    except OSError as problem:
        return _fail(f"{problem.filename or 'standard output'}: {problem.strerror or problem}", 1, debug)
    except MemoryError:
        return _fail("out of memory; --workers 1 and a smaller --max-memory need less", 1, debug)
    except Exception as problem:
        if hasattr(problem, "format_message"):  # an error of the command line, found by typer
            return _fail(_wrong_command(problem), getattr(problem, "exit_code", WRONG), debug)
        from tconv.plugins import blamed

        what = f"{type(problem).__name__}: {problem}".splitlines()[0]
        if package := blamed(problem):
            return _fail(f"the package {package} failed: {what} (--debug shows where)", 1, debug)
        return _fail(f"internal error, please report it: {what} (--debug shows where)", 1, debug)


def _fail(text: str, code: int, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    console.fail(text)
    return code


def _wrong_command(problem: Any) -> str:
    """What typer found wrong with a command; for an option that there is not, the one that was meant."""
    context = getattr(problem, "ctx", None)
    help_ = f"see {context.command_path} --help" if context else "see tconv --help"
    unknown = getattr(problem, "option_name", None)
    if unknown is None or not hasattr(problem, "possibilities"):
        return f"{problem.format_message().rstrip('.')}; {help_}"
    from tconv.suggest import nearest
    from tconv.vocabulary import OPTIONS

    if unknown in OPTIONS:
        return f"there is no option {unknown}; it is {OPTIONS[unknown]} here"
    names = [name for param in context.command.get_params(context) for name in param.opts] if context else []
    near = nearest(unknown.lstrip("-"), [name[2:] for name in names if name.startswith("--")])
    hint = f"did you mean {' or '.join(f'--{name}' for name in near)}?" if near else help_
    return f"there is no option {printable(unknown)}; {hint}"
