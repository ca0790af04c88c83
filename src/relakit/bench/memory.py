"""Peak memory of one contender, measured in a separate process.

The process is forked from a server that has only imported torch, so there is no memory left over
from an earlier run to reuse. Linux records the peak size of a process and can reset it; on other
systems there is no number.
"""

import ctypes
import gc
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import torch

from relakit.bench.cases import Case
from relakit.bench.contenders import make_step
from relakit.bench.inputs import make_inputs
from relakit.ops.backends import BackendName

STATUS: Final = Path("/proc/self/status")
CLEAR: Final = Path("/proc/self/clear_refs")
RESET_PEAK: Final = "5"


def why_no_memory() -> str | None:
    """Why peak memory cannot be measured here; None if it can."""
    try:
        CLEAR.write_text(RESET_PEAK)
        _status_kib("VmHWM")
    except (OSError, ValueError) as error:
        return f"peak memory needs Linux and a writable {CLEAR}: {error}"
    return None


def measure_peak_mib(
    name: str, case: Case, *, backend: BackendName | None, threads: int, seed: int = 0
) -> float:
    """MiB that one call of a contender takes above its inputs, including output and gradients.

    Raises:
        OSError: the process died, most likely for lack of memory.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["relakit.bench.memory"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(
        target=_measure_here, args=(sender, name, case, backend, threads, seed), daemon=True
    )
    process.start()
    sender.close()  # so that the pipe ends with the process
    try:
        answer = receiver.recv()
    except EOFError:
        process.join()
        raise OSError(
            f"the process that measured the memory of {name} ended with exit code "
            f"{process.exitcode}; a smaller --memory-limit leaves such cases out"
        ) from None
    process.join()
    return float(answer)


def _measure_here(
    sender: Connection, name: str, case: Case, backend: BackendName | None, threads: int, seed: int
) -> None:
    torch.set_num_threads(threads)
    # Code and tables that the first call loads do not count towards this case's memory.
    small = Case(
        mode=case.mode, length=8, zeros=case.zeros, dtype=case.dtype, dim=case.dim, mask=case.mask
    )
    make_step(name, small, make_inputs(small, seed), backend)()
    inputs = make_inputs(case, seed)
    step = make_step(name, case, inputs, backend)
    gc.collect()
    _give_back_free_memory()
    CLEAR.write_text(RESET_PEAK)
    before = _status_kib("VmRSS")
    step()
    sender.send(max(0, _status_kib("VmHWM") - before) / 1024)
    sender.close()


def _give_back_free_memory() -> None:
    """Return freed memory to the system: reusing it would go unnoticed."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status_kib(key: str) -> int:
    for line in STATUS.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    raise ValueError(f"{STATUS} has no {key}")
