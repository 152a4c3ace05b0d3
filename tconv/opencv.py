"""OpenCV, imported when it is first worth it, by one thread only, and told not to start threads of its own."""

from __future__ import annotations

import threading
from typing import Any

_lock = threading.Lock()
_module: Any = None


def load() -> Any:
    """The module ``cv2``. Its import takes itself out of ``sys.modules`` half-way, so a second thread must wait."""
    global _module
    if _module is None:
        with _lock:
            if _module is None:
                import cv2

                cv2.setNumThreads(1)  # the workers are the threads
                _module = cv2
    return _module


def loaded() -> Any:
    """The module if it has been imported already, else None."""
    return _module
