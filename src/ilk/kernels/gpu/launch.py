"""CUDA C++ to kernels on a GPU: NVRTC and the driver through ctypes, no other package.

    cubin = compiled(source("common.cuh", "encode.cu"), {"D": 32}, "sm_90a")    # needs no GPU
    device = open_device()
    kernel = device.kernel(cubin, "encode", shared=0)
    kernel(grid, threads, array, 5, 1.5)                  # arrays, whole numbers (64 bits), float32 numbers

What cannot be is said in one sentence by `Unavailable`, so that the caller can go on without.
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ARCHITECTURES = {(9, 0): "sm_90a"}
"""Compute capabilities that the kernels are written for, and what NVRTC calls them."""
COMPILER_OPTIONS = ("--std=c++17", "-default-device", "--extra-device-vectorization")
SHARED_UNASKED = 48 * 1024  # bytes of shared memory that a kernel may have without asking
OUT_OF_MEMORY = 2
_LIBRARY = {"linux": "libnvrtc.so.1[0-9]", "win32": "nvrtc64_1*0_0.dll"}
_DRIVER = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}
_FOLDERS = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cuda_nvrtc/bin", "nvidia/cu13/bin/x86_64")
_TOOLKITS = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/opt/cuda/lib64")


class Unavailable(RuntimeError):
    """Why the GPU does not do it, in one sentence."""


class OutOfMemory(Unavailable):
    """The card has not enough memory."""


# --- compiling: needs no GPU


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
_libraries: dict[str, ctypes.CDLL] = {}


def nvrtc() -> ctypes.CDLL:
    """NVIDIA's run-time compiler."""
    with _lock:
        if "nvrtc" not in _libraries:
            path = find_nvrtc()
            if path is None:
                raise Unavailable(
                    "NVRTC, which compiles the kernels, is not installed: pip install 'ilk[gpu]'"
                )
            try:
                _libraries["nvrtc"] = ctypes.CDLL(path)
            except OSError as error:
                raise Unavailable(f"NVRTC could not be loaded ({error})") from None
        return _libraries["nvrtc"]


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


# --- running


def _driver() -> ctypes.CDLL:
    with _lock:
        if "cuda" not in _libraries:
            name = _DRIVER.get(sys.platform)
            try:
                if name is None:
                    raise OSError
                _libraries["cuda"] = ctypes.CDLL(name)
            except OSError:
                raise Unavailable("there is no NVIDIA driver on this machine") from None
        return _libraries["cuda"]


def _check(code: int, what: str) -> None:
    if not code:
        return
    text = ctypes.c_char_p()
    _driver().cuGetErrorString(code, ctypes.byref(text))
    said = f"{what}: {(text.value or b'unknown error').decode()} ({code})"
    raise (
        OutOfMemory(f"the card has not enough memory ({said})")
        if code == OUT_OF_MEMORY
        else Unavailable(said)
    )


def _pointer(address: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(address)


class DeviceArray:
    """Memory on a device: an address, a shape and a type; freed when it is gone, unless it is somebody else's."""

    def __init__(
        self, device: Device, shape: tuple[int, ...], dtype: Any, *, address: int = 0, owner: Any = None
    ):
        self.device, self.shape, self.dtype = device, shape, np.dtype(dtype)
        self.size = int(np.prod(shape, dtype=np.int64))
        self.nbytes = self.size * self.dtype.itemsize
        self.owner, self._mine = owner, owner is None
        self.address = address if owner is not None else device._allocate(max(self.nbytes, 16))

    def __del__(self) -> None:
        if getattr(self, "_mine", False) and getattr(self, "address", 0):
            self.device._free(self.address)

    def rows(self, first: int, last: int) -> DeviceArray:
        """A view of rows first .. last."""
        width = self.nbytes // max(self.shape[0], 1)
        shape = (last - first, *self.shape[1:])
        return DeviceArray(self.device, shape, self.dtype, address=self.address + first * width, owner=self)

    def fill(self, array: Array) -> DeviceArray:
        """Copied from the host."""
        array = np.ascontiguousarray(array, dtype=self.dtype)
        assert array.size == self.size, (array.shape, self.shape)
        self.device.use()
        _check(
            _driver().cuMemcpyHtoDAsync_v2(
                _pointer(self.address),
                _pointer(array.ctypes.data),
                ctypes.c_size_t(self.nbytes),
                self.device.stream,
            ),
            "copy to the device",
        )  # of memory that may be swapped out, the driver has taken a copy when it returns
        return self

    def zero(self) -> DeviceArray:
        """All bytes 0, in the order of the stream."""
        self.device.use()
        bytes_ = ctypes.c_size_t(self.nbytes)
        _check(_driver().cuMemsetD8Async(_pointer(self.address), 0, bytes_, self.device.stream), "clear")
        return self

    def fetch(self, out: Array | None = None) -> Array:
        """Copied to the host; waits for what was launched before."""
        found = np.empty(self.shape, dtype=self.dtype) if out is None else out
        self.device.use()
        if self.nbytes:
            _check(
                _driver().cuMemcpyDtoHAsync_v2(
                    _pointer(found.ctypes.data),
                    _pointer(self.address),
                    ctypes.c_size_t(self.nbytes),
                    self.device.stream,
                ),
                "copy from the device",
            )
        self.device.synchronize()
        return found


class Kernel:
    """One function of a cubin, with the shared memory it asks for."""

    def __init__(self, device: Device, cubin: bytes, name: str, shared: int) -> None:
        self.device, self.name, self.shared = device, name, shared
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        device.use()
        _check(_driver().cuModuleLoadData(ctypes.byref(self._module), cubin), "load a kernel")
        found = ctypes.byref(self._function), self._module, name.encode()
        _check(_driver().cuModuleGetFunction(*found), f"kernel {name}")
        if shared > SHARED_UNASKED:
            _check(
                _driver().cuFuncSetAttribute(self._function, 8, shared), f"{shared} bytes of shared memory"
            )

    def attribute(self, number: int) -> int:
        """Of the function, as the driver numbers them: 3 local bytes, 4 registers."""
        value = ctypes.c_int()
        _driver().cuFuncGetAttribute(ctypes.byref(value), number, self._function)
        return value.value

    def set_constant(self, name: str, array: DeviceArray) -> None:
        """A copy into a constant of the module, in the order of the stream."""
        at, size = ctypes.c_void_p(), ctypes.c_size_t()
        _check(
            _driver().cuModuleGetGlobal_v2(ctypes.byref(at), ctypes.byref(size), self._module, name.encode()),
            name,
        )
        assert size.value == array.nbytes, (name, size.value, array.nbytes)
        _check(_driver().cuMemcpyDtoDAsync_v2(at, _pointer(array.address), size, self.device.stream), name)

    def __call__(self, grid: int, threads: int, *given: Any) -> None:
        values = [_argument(value) for value in given]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.device.use()
        _check(
            _driver().cuLaunchKernel(
                self._function, grid, 1, 1, threads, 1, 1, self.shared, self.device.stream, pointers, None
            ),
            self.name,
        )


def _argument(value: Any) -> Any:
    if isinstance(value, DeviceArray):
        return ctypes.c_void_p(value.address)
    if value is None:
        return ctypes.c_void_p(0)
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_longlong(value)


class Device:
    """One card: its context (shared with whoever else uses it in this process), a stream, and the kernels loaded."""

    def __init__(self, number: int = 0) -> None:
        driver = _driver()
        count = ctypes.c_int()
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value <= number:
            raise Unavailable("no NVIDIA GPU was found")
        self.number, self._handle, self._context = number, ctypes.c_int(), ctypes.c_void_p()
        self._pid = os.getpid()
        _check(driver.cuDeviceGet(ctypes.byref(self._handle), number), "device")
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, 256, self._handle)
        self.name = name.value.decode(errors="replace")
        capability = self._attribute(75), self._attribute(76)
        if capability not in ARCHITECTURES:
            raise Unavailable(
                f"the kernels are written for NVIDIA Hopper (compute capability 9.0), and this is {self.name} "
                f"({capability[0]}.{capability[1]})"
            )
        self.architecture = ARCHITECTURES[capability]
        self.multiprocessors = self._attribute(16)
        self.shared_limit = self._attribute(97)
        _check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), self._handle), "context")
        self.stream = ctypes.c_void_p(
            0
        )  # the legacy stream: it waits for whatever the caller has begun, on any other
        self._kernels: dict[tuple[object, ...], Kernel] = {}

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        _check(_driver().cuDeviceGetAttribute(ctypes.byref(value), number, self._handle), "device")
        return value.value

    def use(self) -> None:
        """Make its context that of the calling thread."""
        if os.getpid() != self._pid:
            raise Unavailable("a process that was forked after the GPU was used cannot use it")
        _check(_driver().cuCtxSetCurrent(self._context), "context")

    def synchronize(self) -> None:
        _check(_driver().cuStreamSynchronize(self.stream), "a kernel failed")

    def free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.use()
        _check(_driver().cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "memory")
        return free.value

    def _allocate(self, size: int) -> int:
        address = ctypes.c_void_p()
        self.use()
        _check(
            _driver().cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)), f"{size / 2**30:.1f} GiB"
        )
        return int(address.value or 0)

    def _free(self, address: int) -> None:
        if os.getpid() == self._pid:
            with suppress(Unavailable, TypeError, AttributeError):  # the interpreter may be closing down
                self.use()
                _driver().cuMemFree_v2(_pointer(address))

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        return DeviceArray(self, (shape,) if isinstance(shape, int) else shape, dtype)

    def array(self, values: Any, dtype: Any) -> DeviceArray:
        """A copy of host values."""
        values = np.ascontiguousarray(values, dtype=dtype)
        return self.empty(values.shape, values.dtype).fill(values)

    def kernel(self, name: str, text: str, macros: Mapping[str, object], shared: int = 0) -> Kernel:
        """A kernel compiled for this card, kept while the process lasts."""
        key = name, hashlib.sha256(text.encode()).digest(), tuple(sorted(macros.items())), shared
        if key not in self._kernels:
            if shared > self.shared_limit:
                raise Unavailable(
                    f"{name} wants {shared} bytes of shared memory, {self.name} has {self.shared_limit}"
                )
            self._kernels[key] = Kernel(self, compiled(text, macros, self.architecture), name, shared)
        return self._kernels[key]


_devices: dict[int, Device] = {}


def open_device(number: int = 0) -> Device:
    """The card with this number, opened once."""
    if number not in _devices or _devices[number]._pid != os.getpid():
        _devices[number] = Device(number)
    return _devices[number]
