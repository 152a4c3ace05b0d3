"""Outputs appear whole or not at all: files are staged beside their target and renamed when all of them are done."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from tconv.errors import TconvError
from tconv.replacing import put_in_place

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows: staging folders of killed processes stay until someone removes them
    fcntl = None

SUFFIX = ".tconv-part"
KEPT = ".tconv-resume"


class Staging:
    """A hidden folder in each folder that gets outputs, there for as long as a job runs.

    The folders are locked while this process lives, however it ends; one that nobody locks belongs to a dead process
    and is swept away by the next job that stages beside it.
    """

    def __init__(self, roots: Iterable[Path], kept: Collection[Path] = (), *, resume: bool = False) -> None:
        """``roots``: the resolved folders below which targets lie; they need not exist yet. Those of them in ``kept``
        are staged under a name of their own, which stays if ``keep`` is called or the process is killed, and has what
        was left there if ``resume`` is True.
        """
        self._roots = {root: _Kept(root, resume) if root in kept else _Folder(root) for root in roots}

    def __enter__(self) -> Staging:
        with contextlib.ExitStack() as stack:
            for folder in self._roots.values():
                stack.enter_context(folder)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def folder(self, root: Path) -> Path:
        """Where what lies below ``root`` is staged."""
        return self._roots[root].path

    def keep(self, root: Path) -> None:
        """Leave what was staged for ``root``, one of ``kept``, to a later run."""
        self._roots[root].keep = True

    def path(self, root: Path, target: Path) -> Path:
        """Where to write what shall become ``target``, somewhere below ``root``."""
        return self._roots[root].path / target.relative_to(root)

    def publish(self, targets: Sequence[tuple[Path, Path]]) -> None:
        """``put_in_place`` what was staged for each (root, target)."""
        put_in_place([(self.path(root, target), target) for root, target in targets])


def check_space(sizes: Mapping[Path, int]) -> None:
    """Refuse before any work what a disk has no room for: bytes by root."""
    needed: dict[int, tuple[Path, int]] = {}
    for root, size in sizes.items():
        there = _existing(root)
        device = there.stat().st_dev
        needed[device] = (there, needed.get(device, (there, 0))[1] + size)
    for there, size in needed.values():
        free = shutil.disk_usage(there).free
        if size > free:
            raise TconvError(
                f"the output takes {size:,} bytes and the disk has {free:,} free",
                remedy="make room or write elsewhere with -o",
                file=there,
            )


def _existing(folder: Path) -> Path:
    return next(p for p in (folder, *folder.parents) if p.is_dir())


class _Folder:
    """One staging folder, in ``root`` or the nearest folder above it that exists: the same file system, that is."""

    keep = False

    def __init__(self, root: Path) -> None:
        self._anchor = _existing(root)
        self.path = Path()
        self._fd = -1

    def __enter__(self) -> _Folder:
        try:
            _sweep(self._anchor)
            self._make()
        except OSError as problem:
            raise TconvError(
                f"cannot write there: {problem.strerror}", remedy="give another place with -o", file=self._anchor
            ) from problem
        return self

    def _make(self) -> None:
        while True:
            self.path = self._anchor / f".{os.urandom(6).hex()}{SUFFIX}"
            self.path.mkdir(mode=0o700)
            if fcntl is None:
                return
            # Between mkdir and lock a sweeper may take the folder for abandoned: then make another.
            with contextlib.suppress(FileNotFoundError):
                self._fd = os.open(self.path, os.O_RDONLY)
                fcntl.flock(self._fd, fcntl.LOCK_EX)
                if self.path.exists():
                    return
            self._unlock()

    def __exit__(self, *_: object) -> None:
        if not self.keep:
            shutil.rmtree(self.path, ignore_errors=True)
        self._unlock()

    def _unlock(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class _Kept(_Folder):
    """A staging folder that a later run finds again, by its name and wherever ``root`` was missing from when it was
    made: an interrupted run may have left ``root`` behind, or somebody may have made it since.
    """

    def __init__(self, root: Path, resume: bool) -> None:
        super().__init__(root)
        self._root = root
        self._resume = resume

    def _make(self) -> None:
        left = kept_for(self._root)
        self.path = left[0] if left and self._resume else self._anchor / _kept_name(self._root, self._anchor)
        while self._fd < 0:
            self.path.mkdir(mode=0o700, exist_ok=True)
            if fcntl is None:
                break
            # Between mkdir and lock the run that had it may end, and take the folder with it: then make another.
            with contextlib.suppress(FileNotFoundError):
                self._fd = _locked(self.path, self._anchor)
        if not self._resume:
            for inner in self.path.iterdir():
                shutil.rmtree(inner) if inner.is_dir() and not inner.is_symlink() else inner.unlink()
            _remove_abandoned(folder for folder in left if folder != self.path)


def kept_for(root: Path) -> list[Path]:
    """What earlier runs may have left for ``root``, the nearest to it first, where files can be renamed from."""
    above = [folder for folder in (root, *root.parents) if _is_there(folder)]
    named = [folder / _kept_name(root, folder) for folder in above]
    device = above[0].stat().st_dev
    return [path for path in named if _is_there(path) and not path.is_symlink() and path.stat().st_dev == device]


def _is_there(folder: Path) -> bool:
    """Whether it is one that this process may look into; a name may be too long for any."""
    try:
        return folder.is_dir()
    except OSError:
        return False


@contextlib.contextmanager
def held(kept: Path, root: Path) -> Iterator[None]:
    """While what is ``kept`` for ``root`` is worked with: no other run may. Raises ``TconvError`` if one does."""
    fd = _locked(kept, root) if fcntl is not None else -1
    try:
        yield
    finally:
        if fd >= 0:
            os.close(fd)


def _locked(folder: Path, shown: Path) -> int:
    """``folder``, open and locked. Raises ``FileNotFoundError`` if it is gone."""
    assert fcntl is not None
    fd = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(fd), folder.lstat()):
            raise FileNotFoundError
    except BlockingIOError as problem:
        os.close(fd)
        raise TconvError("another run is writing there", remedy="wait for it, or stop it", file=shown) from problem
    except FileNotFoundError:
        os.close(fd)
        raise
    return fd


def _kept_name(root: Path, folder: Path) -> str:
    """What is kept for ``root`` is called, in ``folder`` above it, by the way from there; in itself by nothing."""
    return "".join(f".{part}" for part in root.relative_to(folder).parts) + KEPT


def _sweep(folder: Path) -> None:
    """Remove the staging folders of processes that are gone."""
    _remove_abandoned(folder.glob(f".{'[0-9a-f]' * 12}{SUFFIX}"))  # none that a user named so


def _remove_abandoned(folders: Iterable[Path]) -> None:
    """Remove those of them that no living process has locked."""
    if fcntl is None:
        return
    for left in folders:
        with contextlib.suppress(OSError), _opened(left) as fd:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)
