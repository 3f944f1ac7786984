"""Passes on a GPU beside what else runs there: `python -m benchmarks.gpu`, or with names of `PARTS`.

Needs an NVIDIA Hopper card and torch, which makes the tables. Two times a pass: of its kernels, by CUDA events around
each while the card still sleeps, so that it never waits for the host to launch the next one, and of the whole call as a
fit sees it (parameters in, sums out, arithmetic on the host); medians. The floor is the larger of reading the table
once at the card's own copy rate and of the products at its own rate. Beside it the same pass in torch, in flash-kmeans
and in scikit-learn on the same tensors, where they are installed.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import Any

import numpy as np

from ilk.kernels.gpu import launch, plans
from ilk.kernels.gpu.flow import Flowing
from ilk.kernels.gpu.kmeans import DeviceKMeans
from ilk.kernels.gpu.mixture import DeviceMixture
from ilk.kernels.gpu.product import DeviceProduct, Products
from ilk.kernels.gpu.product_plans import ProductPlan
from ilk.kernels.gpu.table import CellEncoding, DeviceTable, on_device

READ = 4.3e12  # bytes a second: a copy on an H200, read and written
HALF, DOUBLE = 790e12, 65e12  # products a second in f16 and f64

# pass, rows, columns, k, type, what it may take at most (ms)
K_MEANS = [
    ("K-means f32", 10**8, 32, 100, "float32", 6.0),
    ("K-means f32", 10**8, 16, 10, "float32", 2.3),
    ("K-means f32", 10**7, 2, 100, "float32", 0.45),
    ("K-means f32", 10**7, 128, 1000, "float32", 8.0),
    ("K-means f16", 1 << 22, 128, 1000, "float16", 2.7),
    ("K-means f32", 10**7, 20, 50, "float32", None),
    ("K-means f64", 10**7, 32, 100, "float64", None),
]
MIXTURES = [
    ("full EM f64", 10**7, 32, 32, "float64", False, 24.0),
    ("full EM f32", 10**7, 32, 32, "float32", False, None),
    ("full EM f64", 4 * 10**7, 8, 128, "float64", False, 50.0),
    ("full EM f64", 4 * 10**7, 5, 100, "float64", False, None),
    ("full EM f64", 2 * 10**7, 16, 64, "float64", False, None),
    ("full EM f64", 5 * 10**6, 64, 16, "float64", False, None),
    ("full EM f64", 10**6, 256, 8, "float64", False, None),
    ("full EM f32", 2 * 10**5, 1000, 4, "float32", False, None),
    ("diagonal EM f64", 10**7, 32, 32, "float64", True, 3.0),
    ("diagonal EM f32", 10**7, 32, 32, "float32", True, 3.0),
]


SLEEP = 4_000_000  # cycles: 2 ms, in which the host launches all kernels of a pass


class Clock:
    """Time of the kernels launched while it runs."""

    def __init__(self) -> None:
        import torch

        self.torch, self.events = torch, []
        self.usual = launch.Kernel.__call__

    def __enter__(self) -> Clock:
        clock, usual = self, self.usual

        def timed(kernel: Any, *given: Any) -> None:
            before, after = (clock.torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()
            usual(kernel, *given)
            after.record()
            clock.events.append((kernel.name, before, after))

        launch.Kernel.__call__ = timed  # type: ignore[method-assign]
        self.torch.cuda._sleep(SLEEP)
        return self

    def __exit__(self, *_: object) -> None:
        launch.Kernel.__call__ = self.usual  # type: ignore[method-assign]
        self.torch.cuda.synchronize()

    @property
    def milliseconds(self) -> float:
        return sum(before.elapsed_time(after) for _, before, after in self.events)

    def by_kernel(self) -> str:
        found: dict[str, float] = {}
        for name, before, after in self.events:
            found[name] = found.get(name, 0.0) + before.elapsed_time(after)
        return ", ".join(f"{name} {ms:.2f}" for name, ms in found.items())


def measured(call: Any, repeats: int = 9) -> tuple[float, float, str]:
    """Kernels, whole call (ms), and the kernels one by one."""
    call()
    kernels, whole, text = [], [], ""
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        whole.append((time.perf_counter() - begun) * 1e3)
        with Clock() as clock:
            call()
        kernels.append(clock.milliseconds)
        text = clock.by_kernel()
    return median(kernels), median(whole), text


def blobs(n: int, d: int, k: int, dtype: str) -> tuple[Any, Any]:
    """A table of k clouds on the card, and k of its rows."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(0)
    centres = torch.randn(k, d, device="cuda", generator=generator) * 3
    x = torch.empty(n, d, device="cuda", dtype=getattr(torch, dtype))
    for first in range(0, n, 1 << 22):
        part = x[first : first + (1 << 22)]
        own = torch.randint(0, k, (len(part),), device="cuda", generator=generator)
        part.copy_(centres[own] + torch.randn(part.shape, device="cuda", generator=generator))
    return x, x[:: max(1, n // k)][:k].double().cpu().numpy()


def table_of(x: Any) -> tuple[DeviceTable, CellEncoding]:
    device = launch.open_device()
    return DeviceTable(device, on_device(device, x)), CellEncoding(2.0**-5, np.zeros(x.shape[1]))


def line(
    name: str, shape: str, found: tuple[float, float, str], floor: float, most: float | None, rest: str = ""
) -> None:
    kernels, whole, text = found
    bar = "" if most is None else f" (at most {most:g})"
    times = (
        f"kernels {kernels:8.3f} ms{bar}, call {whole:8.3f} ms, floor {floor:6.2f} ({floor / kernels:4.0%})"
    )
    print(f"{name:16} {shape:22} {times} {rest} [{text}]", flush=True)


def torch_k_means(x: Any, centres: Any) -> tuple[float, float]:
    """A pass in torch, by chunks: ms and cost."""
    import torch

    c = torch.as_tensor(centres, device="cuda", dtype=x.dtype)

    def step() -> float:
        cost, sums = 0.0, torch.zeros(c.shape, device="cuda", dtype=torch.float64)
        size = max(1, (1 << 28) // len(c))
        for part in x.split(size):
            score = (c * c).sum(1) - 2 * part @ c.T
            least, label = score.min(1)
            cost += float((least.double() + (part.double() ** 2).sum(1)).sum())
            sums.index_add_(0, label, part.double())
        torch.cuda.synchronize()
        return cost

    step()
    begun = time.perf_counter()
    cost = step()
    return (time.perf_counter() - begun) * 1e3, cost


def flash_k_means(x: Any, centres: Any) -> tuple[float, float]:
    """A pass of flash-kmeans from these centres: ms and cost; nan where it is not installed, or refuses."""
    import torch

    try:
        from flash_kmeans import batch_kmeans_Euclid as fit
    except ImportError:
        return float("nan"), float("nan")
    c = torch.as_tensor(centres, device="cuda", dtype=x.dtype)

    def passes(count: int) -> tuple[float, Any]:
        torch.cuda.synchronize()
        begun = time.perf_counter()
        label = fit(x[None], len(c), max_iters=count, tol=-1.0, init_centroids=c[None])[0][0]
        torch.cuda.synchronize()
        return (time.perf_counter() - begun) * 1e3, label

    try:
        label = passes(1)[1].long()
        size = 1 << 24
        pieces = zip(x.split(size), label.split(size), strict=True)
        cost = sum(float(((part.double() - c.double()[own]) ** 2).sum()) for part, own in pieces)
        return min((passes(11)[0] - passes(1)[0]) / 10 for _ in range(3)), cost
    except Exception as why:  # of the peer, whatever it is
        print("flash-kmeans:", type(why).__name__, str(why)[:120])
        return float("nan"), float("nan")


def sklearn_mixture(x: Any, mean: Any, whiten: Any) -> tuple[float, float]:
    """A pass of scikit-learn's GaussianMixture over the tensor (array API): ms and mean log-likelihood."""
    import warnings

    import torch

    try:
        import sklearn
        from sklearn.mixture import GaussianMixture

        k, precision = len(mean), np.einsum("kji,kjl->kil", whiten, whiten)
        starts = (np.full(k, 1 / k), mean, precision)
        weights, means, precisions = (torch.as_tensor(s, device="cuda", dtype=x.dtype) for s in starts)

        def passes(count: int) -> tuple[float, Any]:
            given: Any = {"weights_init": weights, "means_init": means, "precisions_init": precisions}
            model = GaussianMixture(k, tol=0.0, max_iter=count, init_params="random", **given)
            torch.cuda.synchronize()
            begun = time.perf_counter()
            model.fit(x)
            torch.cuda.synchronize()
            return (time.perf_counter() - begun) * 1e3, model

        with sklearn.config_context(array_api_dispatch=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            once, first = passes(1)
            return (passes(4)[0] - once) / 3, float(first.lower_bound_)
    except Exception as why:
        print("scikit-learn:", type(why).__name__, str(why)[:120])
        return float("nan"), float("nan")


def one_kmeans(name: str, n: int, d: int, k: int, dtype: str, most: float | None) -> None:
    x, rows = blobs(n, d, k, dtype)
    table, encoding = table_of(x)
    job, centres = DeviceKMeans(table, encoding, k), rows * encoding.power
    cost = float(job.step(centres)[2].sum()) / encoding.power**2
    found = measured(lambda: job.step(centres))
    floor = max(x.nbytes / READ, 2 * n * d * k / HALF if job.plan.kind == "large" else 0) * 1e3
    slower, theirs = torch_k_means(x, rows) if dtype != "float16" else (float("nan"), float("nan"))
    flash, flashed = flash_k_means(x, rows) if dtype != "float64" else (float("nan"), float("nan"))
    status = job._memory["status"].fetch()
    told = f"{job.plan.kind}, listed {status[1:-1].sum() / n:.2%}, open {status[0]}"
    line(
        name,
        f"{n:.0e} x {d}, k {k}",
        found,
        floor,
        most,
        f"torch {slower:.0f} ms, flash-kmeans {flash:.2f} ms; cost {cost:.10g}, torch {theirs:.10g}, "
        f"flash-kmeans {flashed:.10g}; {told}",
    )


def kmeans() -> None:
    for case in K_MEANS:
        one_kmeans(*case)


def one_mixture(name: str, n: int, d: int, k: int, dtype: str, diagonal: bool, most: float | None) -> None:
    x, rows = blobs(n, d, k, dtype)
    table, encoding = table_of(x)
    job, mean = DeviceMixture(table, encoding, k, diagonal), rows * encoding.power
    lower = np.tril(np.random.default_rng(0).normal(size=(k, d, d))) / 50
    whiten = (np.ones((k, d)) if diagonal else np.eye(d) + lower) / encoding.power
    logs = np.full(k, -np.log(k))
    found = measured(lambda: job.step(mean, whiten, logs), 5)
    beside = ""
    if n * d * k <= 10**7 * 32**2 and not diagonal and dtype == "float64":
        slope = np.abs(np.einsum("kii->ki", whiten) * encoding.power)
        constant = np.log(slope).sum(axis=1) - d / 2 * np.log(2 * np.pi)
        own = -job.step(mean, whiten, logs + constant)[3] / n
        slower, theirs = sklearn_mixture(x, rows, whiten * encoding.power)
        beside = f"scikit-learn {slower:.0f} ms; mean log-likelihood {own:.10g}, scikit-learn {theirs:.10g}"
    products = (
        8 * n * k * d if diagonal else 2 * n * k * d * (d + 8)
    )  # E and M, symmetric halves in blocks of 8
    floor = max(products / DOUBLE, x.nbytes / READ) * 1e3
    line(name, f"{n:.0e} x {d}, K {k}", found, floor, most, beside)


def mixtures() -> None:
    for case in MIXTURES:
        one_mixture(*case)


def one_seeding(n: int, d: int, most: float | None) -> None:
    x, rows = blobs(n, d, 100, "float32")
    table, encoding = table_of(x)
    build, device = plans.seeding(d, "float32", 1, factor=False), table.device
    distance, point = device.empty((1, n), "f8"), device.array(rows[3:4] * encoding.power, np.float64)
    kernel, given = table.build(build), (table.raw, n, table.encoding_array(encoding), point, distance)
    found = measured(lambda: kernel(table.seed_grid, build.threads, *given))
    line("k-means++ step", f"{n:.0e} x {d}", found, (x.nbytes + 8 * n) / READ * 1e3, most)


def seeding() -> None:
    one_seeding(10**8, 32, 3.3)
    one_seeding(10**8, 16, None)


LEVELS = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)


def drawn_classes(n: int, k: int) -> tuple[Any, Any]:
    """Codes of K latent classes on the card (columns, n), and their components."""
    import torch

    generator = torch.Generator(device="cuda").manual_seed(0)
    codes = torch.empty(len(LEVELS), n, device="cuda", dtype=torch.uint8)
    shares = [torch.softmax(torch.randn(k, m, device="cuda", generator=generator) * 1.5, 1) for m in LEVELS]
    for first in range(0, n, 1 << 23):
        part = codes[:, first : first + (1 << 23)]
        own = torch.randint(0, k, (part.shape[1],), device="cuda", generator=generator)
        for column, share in enumerate(shares):
            draws = torch.rand(part.shape[1], 1, device="cuda", generator=generator)
            part[column] = (draws > share.cumsum(1)[own][:, :-1]).sum(1).to(torch.uint8)
    shares = [share + 0.02 for share in shares]  # not yet the parameters that the rows were drawn from
    logs = np.concatenate(
        [np.log((s / s.sum(1, keepdim=True)).double().cpu().numpy()) for s in shares], axis=1
    )
    empty = np.empty((k, 0))
    return codes, Products(np.full(k, -np.log(k)), empty, empty, empty, logs)


def one_classes(n: int, k: int, most: float | None) -> None:
    device = launch.open_device()
    codes, given = drawn_classes(n, k)
    cells = launch.DeviceArray(device, tuple(codes.shape), np.uint8, address=codes.data_ptr(), owner=codes)
    table = DeviceTable(device, device.empty((n, 0), np.float64))
    plan = ProductPlan(0, LEVELS, k, "float64")
    job = DeviceProduct(table, CellEncoding(1.0, np.zeros(0)), plan, cells)
    found = measured(lambda: job.step(given, hard=False, weight=None), 5)
    line("latent classes", f"{n:.0e} x {len(LEVELS)}, K {k}", found, codes.nbytes / READ * 1e3, most)


def classes() -> None:
    one_classes(10**8, 16, 5.0)
    one_classes(10**7, 5, None)


def other_cards() -> None:
    """What Ampere has, on this card: `mma.sync`, `cp.async`, f64 products of 8 x 8 x 4, 99 KB of shared memory."""
    own = launch.open_device()
    launch._devices[0] = launch.Device(ampere=True)
    try:
        for case in ((10**7, 32, 100), (10**7, 128, 1000)):
            one_kmeans("K-means by mma", *case, "float32", None)
        one_mixture("full EM f64", 4 * 10**6, 32, 32, "float64", False, None)
        one_classes(10**7, 16, None)
    finally:
        launch._devices[0] = own


def _copy_rate() -> float:
    """GB/s of one long copy from page-locked memory to the card."""
    import torch

    host = torch.empty(1 << 30, dtype=torch.uint8, pin_memory=True)
    there = torch.empty_like(host, device="cuda")
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(3):
        before.record()
        there.copy_(host, non_blocking=True)
        after.record()
        torch.cuda.synchronize()
        times.append(before.elapsed_time(after))
    return host.nbytes / min(times) / 1e6


def streaming() -> None:
    """A pass over rows in host memory, page-locked where they lie, and through buffers that threads fill."""
    n, d, k = 4 * 10**7, 32, 100
    x, rows = blobs(n, d, k, "float32")
    host = x.cpu().numpy()
    del x
    encoding = CellEncoding(2.0**-5, np.zeros(d))
    given = encoding.power, encoding.centre, None, None, rows * encoding.power
    print(f"copies of locked pages alone: {_copy_rate():.1f} GB/s", flush=True)
    for name, cells in (("locked pages", host), ("filled buffers", host.view(np.memmap))):
        begun = time.perf_counter()
        flowing = Flowing(launch.open_device(), cells, print)
        flowing.run("nearest_step", print, *given)
        first, times = time.perf_counter() - begun, []
        for _ in range(3):
            begun = time.perf_counter()
            flowing.run("nearest_step", print, *given)
            times.append(time.perf_counter() - begun)
        rate = host.nbytes / median(times) / 1e9
        print(
            f"{name}: {rate:.1f} GB/s a pass of {host.nbytes / 1e9:.1f} GB; the first {first:.2f} s",
            flush=True,
        )
        del flowing


def mixed_table(n: int) -> Any:
    """Ten numbers and ten categories of five groups, as an Arrow table."""
    import pyarrow as pa

    draw = np.random.default_rng(0)
    group = draw.integers(0, 5, n)
    columns: dict[str, Any] = {}
    for number in range(10):
        columns[f"n{number}"] = (draw.normal(size=5) * 3)[group] + draw.normal(size=n)
    for number in range(10):
        code = np.where(draw.random(n) < 0.3, draw.integers(0, 4, n), (group + number) % 4).astype(np.int8)
        columns[f"c{number}"] = pa.DictionaryArray.from_arrays(code, ["red", "green", "blue", "grey"])
    return pa.table(columns)


def timed(model: Any, data: Any) -> tuple[float, Any]:
    begun = time.perf_counter()
    model = model(data) if callable(model) else model.fit(data)
    return time.perf_counter() - begun, model


def fits() -> None:
    import torch

    import ilk

    options: dict[str, Any] = {"random_state": 0, "n_init": 1, "max_iter": 20}
    cases: list[tuple[str, int, int, Any]] = [
        ("KMeans(100)", 10**8, 32, lambda device: ilk.KMeans(100, device=device, **options)),
        ("GaussianMixture(32)", 10**7, 32, lambda device: ilk.GaussianMixture(32, device=device, **options)),
    ]
    for name, n, d, make in cases:
        x, _ = blobs(n, d, 100 if "KMeans" in name else 32, "float32")
        timed(make("cuda"), x[: 1 << 17])  # kernels are compiled
        seconds, here = timed(make("cuda"), x)
        host = x.cpu().numpy()
        del x
        torch.cuda.empty_cache()
        copied, _ = timed(make("cuda"), host)
        slower, there = timed(make("cpu"), host)
        same = float((here.labels_ == there.labels_).mean())
        print(
            f"{name} {n:.0e} x {d}: GPU {seconds:.2f} s, {here.n_iter_} passes; from host memory {copied:.2f} s; "
            f"CPU {slower:.2f} s, {there.n_iter_} passes; labels alike {same:.8f}",
            flush=True,
        )


def whole() -> None:
    """`ilk.cluster` on ten million rows of mixed columns."""
    import ilk

    table = mixed_table(10**7)
    ilk.cluster(table.slice(0, 100_000), device="cuda")  # kernels are compiled
    seconds, here = timed(lambda data: ilk.cluster(data, device="cuda"), table)
    print(f"cluster 1e7 x 20 mixed: GPU {seconds:.1f} s, {here.k} groups", flush=True)
    slower, there = timed(lambda data: ilk.cluster(data, device="cpu"), table)
    same = float((here.labels == there.labels).mean())
    print(
        f"cluster 1e7 x 20 mixed: CPU {slower:.1f} s, {there.k} groups; labels alike {same:.8f}", flush=True
    )


PARTS = {
    "kmeans": kmeans,
    "mixtures": mixtures,
    "classes": classes,
    "other cards": other_cards,
    "seeding": seeding,
    "streaming": streaming,
    "fits": fits,
    "whole": whole,
}


if __name__ == "__main__":
    import torch

    print(
        torch.cuda.get_device_name(),
        "torch",
        torch.__version__,
        "clock",
        torch.cuda.clock_rate(),
        "MHz",
        flush=True,
    )
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
