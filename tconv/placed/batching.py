"""How many tensors go to a device at once; without what takes them there, which most jobs do without."""

from __future__ import annotations

import sys
import threading

BATCH = 64  # unless the user says otherwise


def release() -> None:
    """Give up the memory that this thread has for what is on its way, of which there is nothing."""
    if (module := sys.modules.get("tconv.devices.lane")) is not None:
        module.release()


class Batching:
    """How many tensors go at once, in all threads of a job: fewer once the memory of a device did not hold them."""

    def __init__(self, most: int = BATCH) -> None:
        self.most = most
        self.notes: list[str] = []
        self._lock = threading.Lock()

    def halve(self, count: int, device: str) -> None:
        """``count`` were too many."""
        with self._lock:
            if count // 2 < self.most:
                self.most = max(1, count // 2)
                text = f"{device} ran out of memory with {count} tensors at once, and went on with {self.most}"
                self.notes.append(f"{text}; --device-batch {self.most} starts with that")
