"""Makes what the outputs want in a few threads: bounded memory, each value written straight into its place."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tconv import scratch
from tconv.account import Account
from tconv.errors import TconvError
from tconv.evaluate import program
from tconv.outcome import Outcome, Output, Place
from tconv.parts import Parts
from tconv.placed import batching
from tconv.placed.batching import BATCH, Batching
from tconv.tasks import Filling, Group, Task, buffers, count, grouped, part_of

if TYPE_CHECKING:
    from tconv.ops import Array

ENOUGH = 1000  # a job that went wrong this often has told enough
PATIENCE = 0.05  # seconds that a thread waits for its turn before it asks whether others need its memory


def default_workers() -> int:
    """One thread for each core that this process may use."""
    with suppress(AttributeError, OSError):  # only Linux knows the affinity
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Runner:
    """Hands out pieces, in order, to ``workers`` threads whose memory together stays within ``max_memory`` bytes.

    ``progress`` is called with the bytes of each piece that is done, and ``finished`` with the number of each output
    that is whole and what its casts lost, from any thread. ``detail``: the accounts tell how large the errors of the
    casts are, and there is one for each part of a stack. ``device_batch``: how many tensors go to a device at once.
    """

    def __init__(
        self,
        workers: int,
        max_memory: int,
        progress: Callable[[int], None],
        *,
        detail: bool = False,
        every: bool = False,
        device_batch: int = BATCH,
        finished: Callable[[int, Mapping[Place, Account]], None] = lambda _number, _lost: None,
    ) -> None:
        self._workers = workers
        self._detail = detail
        self._every = every or detail
        self._max_memory = max_memory
        self._progress = progress
        self._finished = finished
        self._batching = Batching(device_batch)
        self._feed = threading.Lock()  # held while the next piece is looked for
        self._state = threading.Condition()  # held for what follows
        self._in_use = 0  # bytes, those that threads hold between two pieces among them
        self._hungry = 0  # pieces, waiting or under way, of which there is no room for one in each thread
        self._stopped = False
        self._fatal: BaseException | None = None
        self._bad: set[Path] = set()
        self._outcome = Outcome()

    def run(self, outputs: Sequence[Output]) -> Outcome:
        """Fill every output and commit those that came out whole.

        What is wrong with one input is collected in ``Outcome.failures`` and the rest goes on, so that all of it is
        known; what makes going on useless (a full disk, an interrupt) is raised. The caller owns the staged files.
        """
        tasks = self._groups(outputs)
        threads = [
            threading.Thread(target=self._work, args=(tasks,), name=f"tconv-{n}", daemon=True)
            for n in range(self._workers)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():  # a join without a limit would not see an interrupt
                    thread.join(0.2)
        finally:
            self._stop(None)
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            for output in outputs:
                output.writer.abort()
        if self._fatal is not None:
            raise self._fatal
        self._outcome.notes += self._batching.notes
        return self._outcome

    def _groups(self, outputs: Sequence[Output]) -> Iterator[Group]:
        """Pieces, one by one, or in a row those that may go to a device: few enough for each thread to get some."""
        share = -(-sum(map(count, outputs)) // (2 * self._workers))
        return grouped(
            self._tasks(outputs),
            most=lambda: min(share, self._batching.most),
            fits=lambda cost: self._workers * cost <= self._max_memory,
        )

    def _tasks(self, outputs: Sequence[Output]) -> Iterator[Task]:
        """Pieces in the order of the files, so that few files are open at a time."""
        for number, output in enumerate(outputs):
            with output.writing():
                output.path.parent.mkdir(parents=True, exist_ok=True)
                output.writer.open(output.path)
            filling, last = Filling(number, output), None
            for task in self._pieces(filling):
                with self._state:
                    filling.left += 1
                if last is not None:
                    yield last
                last = task
            if last is None:
                self._done(filling)
                continue
            # All are handed out with the last: who makes it finishes the file, while others look for further pieces.
            with self._state:
                filling.left -= 1
            yield last

    def _pieces(self, filling: Filling) -> Iterator[Task]:
        output = filling.output
        for index, tensor in enumerate(output.tensors):
            if output.writer.stored(index):
                made = program(tensor, self._detail)
                yield from (Task(filling, index, made, p) for p in made.pieces() if p.path not in self._bad)

    def _work(self, groups: Iterator[Group]) -> None:
        held = 0  # bytes of the buffers that this thread has, which the next piece uses again
        try:
            while (found := self._next(groups, held)) is not None:
                group, held = found
                hungry = self._is_hungry(group)
                try:
                    self._make(group.tasks)
                finally:
                    with self._state:
                        self._hungry -= hungry
                    if hungry or self._hungry:
                        held = self._release(held)
                for task in group.tasks:
                    self._done(task.filling)
        except BaseException as problem:
            self._stop(problem)

    def _is_hungry(self, group: Group) -> bool:
        return self._workers * group.cost > self._max_memory

    def _release(self, held: int) -> int:
        """Give up what this thread holds; the bytes that it then still holds, none."""
        scratch.release()
        batching.release()
        with self._state:
            self._in_use -= held
            self._state.notify_all()
        return 0

    def _next(self, groups: Iterator[Group], held: int) -> tuple[Group, int] | None:
        """The next piece, as soon as there is memory for it, and the bytes that this thread then holds; a piece that is
        larger than the limit has it alone.
        """
        while not self._feed.acquire(timeout=PATIENCE):
            if self._hungry:
                held = self._release(held)
        try:
            group = None if self._stopped else next(groups, None)
            if group is None:
                return None
            with self._state:
                self._hungry += self._is_hungry(group)
            if self._is_hungry(group):
                held = self._release(held)
            with self._state:
                more = max(0, group.cost - held)
                self._state.wait_for(
                    lambda: self._stopped or self._in_use == held or self._in_use + more <= self._max_memory
                )
                self._in_use += more
                self._note_size(group)
            return group, held + more
        finally:
            self._feed.release()

    def _note_size(self, group: Group) -> None:
        cost, known, task = group.cost, self._outcome.beyond, group.tasks[0]
        if cost > self._max_memory and (known is None or cost > known[1]):
            part, _ = part_of(task.tensor, task.piece)
            self._outcome.beyond = Place(task.filling.number, task.index, part), cost

    def _make(self, tasks: Sequence[Task]) -> None:
        if not tasks[0].program.crosses:
            (task,) = tasks
            out = scratch.buffer("out", task.tensor.spec.dtype.numpy, task.piece.hi - task.piece.lo)
            try:
                made: Account | Exception = task.program.make(task.piece, out)
            except Exception as problem:
                made = problem
            self._settle(task, out, made)
            return
        from tconv.placed.carry import together  # which most jobs do without

        outs = buffers(tasks)
        makings = [task.program.making(task.piece, out) for task, out in zip(tasks, outs, strict=True)]
        for task, out, made in zip(tasks, outs, together(makings, self._batching), strict=True):
            self._settle(task, out, made)

    def _settle(self, task: Task, out: Array, made: Account | Exception) -> None:
        """Write what came out, or remember what kept it from being made."""
        if isinstance(made, Account):
            self._write(task, out, made)
        elif isinstance(made, TconvError):
            self._failed(task, made)
        elif isinstance(made, OSError):
            self._failed(task, TconvError(f"cannot be read: {made.strerror or made}"))
        elif isinstance(made, MemoryError):
            reason = f"needs about {task.piece.cost:,} bytes of memory at once, and there is not that much"
            self._failed(task, TconvError(reason, remedy="a machine with more memory is needed for it"))
        else:
            raise made

    def _write(self, task: Task, out: Array, lost: Account) -> None:
        filling = task.filling
        with filling.output.writing():
            filling.output.writer.write(task.index, task.piece.lo, out)
        part, all_of_it = part_of(task.tensor, task.piece)
        # Of a hundred thousand pictures of which nothing is lost there is nothing to remember.
        if lost or self._every or part is None or not all_of_it:
            place = Place(filling.number, task.index, part)
            with self._state:
                account = self._outcome.lost.setdefault(place, Account())
                account += lost
        self._progress(out.nbytes)

    def _failed(self, task: Task, problem: TconvError) -> None:
        name = "" if isinstance(task.tensor.source, Parts) else task.tensor.spec.name
        with self._state:
            if task.piece.path not in self._bad:  # others may have been under way: one sentence a file
                self._bad.add(task.piece.path)
                self._outcome.failures.append(problem.at(file=task.piece.path, tensor=name))
            self._outcome.unfinished.add(task.filling.number)
            self._stopped = self._stopped or len(self._outcome.failures) >= ENOUGH

    def _done(self, filling: Filling) -> None:
        with self._state:
            filling.left -= 1
            whole = not filling.left and not self._stopped and filling.number not in self._outcome.unfinished
            lost = {p: a for p, a in self._outcome.lost.items() if p.output == filling.number} if whole else {}
        if whole:
            with filling.output.writing():
                filling.output.writer.commit()
                self._finished(filling.number, lost)

    def _stop(self, problem: BaseException | None) -> None:
        with self._state:
            self._fatal = self._fatal or problem
            self._stopped = True
            self._state.notify_all()
