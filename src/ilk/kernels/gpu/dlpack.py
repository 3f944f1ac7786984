"""Arrays of other libraries that lie on a GPU, as DLPack or `__cuda_array_interface__` tell it; nothing is copied.

By DLPack the library that made the array makes the stream of the kernels here wait for what it has begun.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ilk.kernels.gpu.nvrtc import Unavailable

CUDA = (2, 13)  # kinds of devices: memory of a card, and managed memory
LEGACY_STREAM = 1  # as DLPack and `__cuda_array_interface__` number it
NAMES = {(2, 16): "float16", (2, 32): "float32", (2, 64): "float64"}  # kinds of numbers and their bits


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


@dataclass(frozen=True)
class Foreign:
    """Where cells lie: their address, type and strides in cells (None: rows one after the other)."""

    address: int
    shape: tuple[int, ...]
    dtype: str  # a name of NumPy's, or what it is that is none
    strides: tuple[int, ...] | None
    owner: Any  # kept while the cells are in use
    stream: int | None = None  # to be waited for


def device_of(data: Any) -> int | None:
    """The number of the GPU that these cells lie on; None where they lie elsewhere, or are none."""
    if isinstance(data, np.ndarray):
        return None
    try:
        if hasattr(type(data), "__dlpack_device__"):
            kind, number = data.__dlpack_device__()
            return int(number) if int(kind) in CUDA else None
        return None if getattr(data, "__cuda_array_interface__", None) is None else 0
    except (AttributeError, TypeError, RuntimeError, ValueError, BufferError):  # elsewhere, said by an error
        return None


def foreign(data: Any) -> Foreign:
    """Cells that `device_of` has found on a GPU."""
    if hasattr(type(data), "__dlpack_device__"):
        try:
            return unpacked(data.__dlpack__(stream=LEGACY_STREAM), data)
        except (BufferError, RuntimeError, TypeError):  # such as a tensor that gradients are wanted of
            if getattr(data, "__cuda_array_interface__", None) is None:
                raise Unavailable(f"the {type(data).__name__} does not give its memory away") from None
    told = data.__cuda_array_interface__
    kind, strides = np.dtype(told["typestr"]), told.get("strides")
    cells = None if strides is None else tuple(int(size) // kind.itemsize for size in strides)
    address, shape = int(told["data"][0] or 0), tuple(int(size) for size in told["shape"])
    return Foreign(address, shape, kind.name, cells, data, told.get("stream"))


def unpacked(capsule: Any, data: Any) -> Foreign:
    """What a capsule of DLPack holds; it lets go of the cells when it is gone itself."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    name = NAMES.get((tensor.code, tensor.bits), f"kind {tensor.code} of {tensor.bits} bits")
    dtype = name if tensor.lanes == 1 else f"{tensor.lanes} x {name}"
    return Foreign((tensor.data or 0) + tensor.byte_offset, shape, dtype, strides, (capsule, data))


def as_tensor(values: Any, like: Any) -> Any:
    """Return values as an array of the library of `like` and on its device: labels beside the cells they are of.

    Parameters
    ----------
    values : array
        NumPy values, such as `labels_`.
    like : tensor or array
        Of torch, CuPy, cuDF or JAX; for anything else the values stay a NumPy array.

    Returns
    -------
    tensor or array
        The values there.

    See Also
    --------
    KMeans : Takes cells that lie on a GPU.

    Examples
    --------
    >>> import ilk, numpy as np
    >>> ilk.as_tensor(np.array([1, 0]), np.zeros((2, 3)))
    array([1, 0])
    """
    library = type(like).__module__.partition(".")[0]
    if library == "torch":
        torch = import_module("torch")
        return torch.from_numpy(np.ascontiguousarray(values)).to(like.device)
    if library in ("cupy", "cudf"):
        return import_module("cupy").asarray(values)
    if library in ("jax", "jaxlib"):
        return import_module("jax").device_put(values, next(iter(like.devices())))
    return np.asarray(values)
