"""CUDA C++ to machine code by NVRTC, NVIDIA's run-time compiler, through ctypes; needs no GPU.

    cubin = compiled(source("common.cuh", "reduce.cu"), {"D": 32}, "sm_90a")

What was compiled is kept in the cache folder, by the hash of all that it depends on. What cannot be is said in one
sentence by `Unavailable`, so that the caller can go on without.
"""

from __future__ import annotations

import ctypes
import glob
import hashlib
import os
import site
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

COMPILER_OPTIONS = ("--std=c++17", "-default-device", "--extra-device-vectorization")
_LIBRARY = {"linux": "libnvrtc.so.1[0-9]", "win32": "nvrtc64_1*0_0.dll"}
_FOLDERS = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cuda_nvrtc/bin", "nvidia/cu13/bin/x86_64")
_TOOLKITS = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/opt/cuda/lib64")


class Unavailable(RuntimeError):
    """Why the GPU does not do it, in one sentence."""


def source(*names: str) -> str:
    """Text of the files of `source/`, one after the other."""
    here = Path(__file__).parent / "source"
    return "\n".join((here / name).read_text(encoding="utf-8") for name in names)


def wgmma(n: int) -> str:
    """Text of one device function: D (64 x n, float) = (keep ? D : 0) + A (64 x 16, registers) * B (16 x n, shared)."""
    registers = n // 2
    outs = ", ".join(f"%{i}" for i in range(registers))
    bind = ", ".join(f'"+f"(d[{i}])' for i in range(registers))
    return f"""
__device__ __forceinline__ void wgmma_{n}(float (&d)[{registers}], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                          unsigned long long b, int keep) {{
    asm volatile("{{.reg .pred p; setp.ne.b32 p, %{registers + 5}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{outs}}}, "
        "{{%{registers}, %{registers + 1}, %{registers + 2}, %{registers + 3}}}, %{registers + 4}, p, 1, 1, 0;}}\\n"
        : {bind} : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(keep));
}}
"""


def find_nvrtc() -> str | None:
    """The library: of the wheel, of another package's, or of a toolkit; None where there is none."""
    pattern = _LIBRARY.get(sys.platform)
    if pattern is None:
        return None
    given = os.environ.get("ILK_NVRTC")
    roots = [given] if given else [*site.getsitepackages(), *filter(None, sys.path)]
    places = [os.path.join(root, folder) for root in roots for folder in (*_FOLDERS, "")]
    for place in [*places, *_TOOLKITS]:
        found = sorted(glob.glob(os.path.join(place, pattern)))
        if found:
            return found[-1]
    return None


_lock = threading.Lock()
_libraries: list[ctypes.CDLL] = []


def nvrtc() -> ctypes.CDLL:
    """NVIDIA's run-time compiler."""
    with _lock:
        if not _libraries:
            path = find_nvrtc()
            if path is None:
                raise Unavailable(
                    "NVRTC, which compiles the kernels, is not installed: pip install 'ilk[gpu]'"
                )
            try:
                _libraries.append(ctypes.CDLL(path))
            except OSError as error:
                raise Unavailable(f"NVRTC could not be loaded ({error})") from None
        return _libraries[0]


def compiler_version() -> str:
    """Such as 12.9."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_now(text: str, macros: Mapping[str, object], architecture: str) -> tuple[bytes, str]:
    """A cubin and what the compiler said."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    flags = [f"--gpu-architecture={architecture}", *COMPILER_OPTIONS]
    flags += [f"-D{name}={value}" for name, value in macros.items()]
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"ilk.cu", 0, None, None)
    given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    failed = library.nvrtcCompileProgram(program, len(flags), given)
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(size.value, 1))
    library.nvrtcGetProgramLog(program, log)
    said = log.value.decode(errors="replace")
    if failed:
        library.nvrtcDestroyProgram(ctypes.byref(program))
        raise Unavailable(
            f"a kernel did not compile for {architecture} with NVRTC {compiler_version()}: {said[:600]}"
        )
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, cubin)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw, said


def cache_folder() -> Path:
    """Where compiled kernels are kept: ILK_CACHE, or `ilk/gpu` in the user's cache folder."""
    given = os.environ.get("ILK_CACHE")
    if given:
        return Path(given)
    home = Path.home()
    base = {"darwin": home / "Library/Caches", "win32": home / "AppData/Local"}.get(
        sys.platform, home / ".cache"
    )
    return Path(os.environ.get("XDG_CACHE_HOME", base)) / "ilk" / "gpu"


def compiled(text: str, macros: Mapping[str, object], architecture: str) -> bytes:
    """The cubin, from the cache where it is there; a cache that cannot be written is done without."""
    key = repr((text, sorted(macros.items()), architecture, COMPILER_OPTIONS, compiler_version()))
    path = cache_folder() / (hashlib.sha256(key.encode()).hexdigest()[:40] + ".cubin")
    with suppress(OSError):
        held = path.read_bytes()
        if held[:4] == b"\x7fELF":
            return held
    cubin, _ = compile_now(text, macros, architecture)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        beside.write_bytes(cubin)
        beside.replace(path)
    return cubin
