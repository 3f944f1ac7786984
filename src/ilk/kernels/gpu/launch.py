"""Kernels, memory and copies on an NVIDIA GPU: the driver through ctypes, no other package.

device = open_device()
kernel = device.kernel("reduce_whole", text, macros)
kernel(grid, threads, array, 5, 1.5)                  # arrays, whole numbers (64 bits), float32 numbers
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ilk.kernels.gpu.nvrtc import Unavailable, compiled

Array = NDArray[Any]

ARCHITECTURES = {
    (8, 0): "sm_80",
    (8, 6): "sm_86",
    (8, 9): "sm_89",
    (9, 0): "sm_90a",
    (10, 0): "sm_100",
    (12, 0): "sm_120",
}
"""Compute capabilities that kernels are written for, and what NVRTC calls them."""
HOPPER = "sm_90a"
SLOW_DOUBLES = ("sm_86", "sm_89", "sm_120")  # a 64th of the rate of float32
AMPERE_SHARED = 99 * 1024  # bytes of shared memory that a block may have on the smallest of these cards
SHARED_UNASKED = 48 * 1024  # bytes of shared memory that a kernel may have without asking
OUT_OF_MEMORY = 2
_DRIVER = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}
_lock = threading.Lock()
_libraries: list[ctypes.CDLL] = []


class OutOfMemory(Unavailable):
    """The card has not enough memory."""


def _driver() -> ctypes.CDLL:
    with _lock:
        if not _libraries:
            name = _DRIVER.get(sys.platform)
            try:
                if name is None:
                    raise OSError
                _libraries.append(ctypes.CDLL(name))
            except OSError:
                raise Unavailable("there is no NVIDIA driver on this machine") from None
        return _libraries[0]


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
        if not self.nbytes:
            return self
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
    """One card: its context (shared with whoever else uses it in this process), a stream, and the kernels loaded.

    `ampere` uses of a later card only what Ampere has, to try its kernels."""

    def __init__(self, number: int = 0, *, ampere: bool = False) -> None:
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
                f"the kernels are written for compute capability 8.0 and later, and this is {self.name} "
                f"({capability[0]}.{capability[1]})"
            )
        self.architecture = ARCHITECTURES[capability]
        self.multiprocessors = self._attribute(16)
        self.hopper = self.architecture == HOPPER and not ampere
        self.slow_doubles = self.architecture in SLOW_DOUBLES
        self._macros = {"AMPERE": 1} if ampere else {}
        self.shared_limit = min(self._attribute(97), AMPERE_SHARED) if ampere else self._attribute(97)
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

    def other_stream(self) -> ctypes.c_void_p:
        """A stream for copies beside kernels, which the others do not wait for."""
        stream = ctypes.c_void_p()
        self.use()
        _check(_driver().cuStreamCreate(ctypes.byref(stream), 1), "stream")
        return stream

    def event(self) -> ctypes.c_void_p:
        """A mark that one stream sets and others wait for."""
        event = ctypes.c_void_p()
        self.use()
        _check(_driver().cuEventCreate(ctypes.byref(event), 2), "event")  # without times
        return event

    def copy_in(
        self, to: DeviceArray, address: int, size: int, stream: ctypes.c_void_p, done: ctypes.c_void_p
    ) -> None:
        """Begin to copy bytes of the host to the device on a stream of their own, which then sets `done`."""
        self.use()
        count = ctypes.c_size_t(size)
        _check(_driver().cuMemcpyHtoDAsync_v2(_pointer(to.address), _pointer(address), count, stream), "copy")
        _check(_driver().cuEventRecord(done, stream), "copy")

    def wait_for_event(self, event: ctypes.c_void_p) -> None:
        """What is launched from now on begins after the event; the host goes on."""
        self.use()
        _check(_driver().cuStreamWaitEvent(self.stream, event, 0), "copy")

    def close_stream(self, stream: ctypes.c_void_p, events: Sequence[ctypes.c_void_p]) -> None:
        """Wait for the copies of a stream, and let go of it and of its events."""
        with suppress(Unavailable, TypeError, AttributeError):
            self.use()
            _driver().cuStreamSynchronize(stream)
            for event in events:
                _driver().cuEventDestroy_v2(event)
            _driver().cuStreamDestroy_v2(stream)

    def lock_pages(self, address: int, size: int) -> bool:
        """Whether memory of the host could be made such that the card reads it at the rate of the bus."""
        self.use()
        return not _driver().cuMemHostRegister_v2(_pointer(address), ctypes.c_size_t(size), 0)

    def unlock_pages(self, address: int) -> None:
        with suppress(Unavailable, TypeError, AttributeError):
            self.use()
            _driver().cuMemHostUnregister(_pointer(address))

    def locked_buffer(self, size: int) -> int:
        """New memory of the host that the card reads at the rate of the bus; freed with the process."""
        address = ctypes.c_void_p()
        self.use()
        _check(
            _driver().cuMemHostAlloc(ctypes.byref(address), ctypes.c_size_t(size), 0), "page-locked memory"
        )
        return int(address.value or 0)

    def free_locked(self, address: int) -> None:
        with suppress(Unavailable, TypeError, AttributeError):
            self.use()
            _driver().cuMemFreeHost(_pointer(address))

    def synchronize(self) -> None:
        _check(_driver().cuStreamSynchronize(self.stream), "a kernel failed")

    def wait_for(self, stream: int) -> None:
        """Until all that was begun on another library's stream is done."""
        self.use()
        _check(_driver().cuStreamSynchronize(_pointer(stream)), "a stream")

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
        key = name, text, tuple(sorted(macros.items())), shared
        if key not in self._kernels:
            if shared > self.shared_limit:
                raise Unavailable(
                    f"{name} wants {shared} bytes of shared memory, {self.name} has {self.shared_limit}"
                )
            cubin = compiled(text, {**macros, **self._macros}, self.architecture)
            self._kernels[key] = Kernel(self, cubin, name, shared)
        return self._kernels[key]


def card_name(number: int = 0) -> str | None:
    """What the driver calls the card, found without opening it; None where there is none."""
    try:
        driver = _driver()
    except Unavailable:
        return None
    handle, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(handle), number)
    if failed or driver.cuDeviceGetName(name, 256, handle):
        return None
    return name.value.decode(errors="replace")


_devices: dict[int, Device] = {}


def open_device(number: int = 0) -> Device:
    """The card with this number, opened once."""
    if number not in _devices or _devices[number]._pid != os.getpid():
        _devices[number] = Device(number)
    return _devices[number]
