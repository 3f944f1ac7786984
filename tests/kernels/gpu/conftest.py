"""The card of the tests of kernels, as it is and as if it had only what Ampere has; without one they are skipped."""

from __future__ import annotations

import pytest

from ilk.kernels.gpu.launch import Device, open_device
from ilk.kernels.gpu.nvrtc import Unavailable


@pytest.fixture(scope="module", params=["own", "ampere"])
def device(request):
    try:
        return open_device() if request.param == "own" else Device(ampere=True)
    except Unavailable as why:
        pytest.skip(str(why))
