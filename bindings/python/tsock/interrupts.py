# SPDX-License-Identifier: MIT
"""Calls that may block in C for long, and yet are ended by Ctrl-C."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional, TypeVar

_Result = TypeVar("_Result")


def patiently(
    call: Callable[[], _Result],
    undo: Optional[Callable[[_Result], object]] = None,
) -> _Result:
    """call(), which may block in C for long, so that Ctrl-C ends it at once.

    Python handles signals between two bytecodes of the main thread, so the
    call runs on a helper thread.  After a Ctrl-C nobody waits for its result
    any more: undo(result) takes it back.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    lock = threading.Lock()
    # Locked until the result is there.  Not an Event, whose own lock the main
    # thread may keep for ever when a signal handler raises at the wrong place.
    done = threading.Lock()
    done.acquire()
    state: dict[str, Any] = {"abandoned": False, "done": False}

    def work() -> None:
        try:
            state["result"] = call()
        except BaseException as e:  # noqa: BLE001 - raised by the waiter
            state["error"] = e
        with lock:
            late, state["done"] = state["abandoned"], True
            done.release()
        if late and undo and "result" in state:
            undo(state["result"])

    threading.Thread(target=work, name="tsock-wait", daemon=True).start()
    try:
        done.acquire()
    except BaseException:
        with lock:
            state["abandoned"] = True
            late = state["done"]
        if late and undo and "result" in state:
            undo(state["result"])
        raise
    if "error" in state:
        raise state["error"]
    result: _Result = state["result"]
    return result
