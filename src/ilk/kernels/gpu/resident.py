"""What stands in a block for the raw cells of a table on a device: `ilk.kernels` calls its kernels.

A kernel that is not made for the device, or not for what is asked of it, runs on the CPU over the rows on the host, and
that is said once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from ilk.kernels.gpu import plans
from ilk.kernels.gpu.kmeans import DeviceKMeans
from ilk.kernels.gpu.launch import Array, DeviceArray
from ilk.kernels.gpu.mixture import DeviceMixture
from ilk.kernels.gpu.nvrtc import Unavailable
from ilk.kernels.gpu.product import DeviceProduct, Products, packed_codes
from ilk.kernels.gpu.product_plans import ProductPlan
from ilk.kernels.gpu.student import DeviceStudent
from ilk.kernels.gpu.table import CellEncoding, DeviceTable
from ilk.kernels.plain_mixture import Ending, ending_of
from ilk.kernels.plain_product import ProductSums

HELD_JOBS = 4  # numbers of components whose memory is kept: starts of one fit, and a search over few


class Resident:
    """All rows of a table on a device. `host` gives them in memory; `say` is told what runs on the CPU or is slow on
    this card, and why."""

    ndim = 2
    still = True  # the cells are the same in every pass
    held = HELD_JOBS

    def __init__(self, table: DeviceTable, host: Callable[[], Array], say: Callable[..., None]) -> None:
        self.table, self.host, self._say = table, host, say
        self.shape = table.raw.shape
        self.dtype = np.dtype(plans.REAL[table.dtype] if table.dtype == "float16" else table.dtype)
        self._jobs: dict[Any, Any] = {}
        self._weight: tuple[Array, DeviceArray, float] | None = None
        self._codes: tuple[Array, tuple[int, ...], DeviceArray] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.host(), dtype=dtype, copy=copy)

    def __getitem__(self, which: Any) -> Array:
        return np.asarray(self.host()[which])

    def copy(self) -> Array:
        return self.host().copy()

    def run(self, name: str, on_cpu: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """The kernel of this name, here or on the CPU."""
        here = getattr(self, "_" + name, None)
        try:
            if here is None:
                raise Unavailable(f"{name.replace('_', ' ')} has no kernel for the GPU")
            return here(*given, **named)
        except Unavailable as why:
            self._say(str(why))
        return on_cpu(self.host(), *given, **named)

    def job(self, key: Any, make: Callable[[], Any]) -> Any:
        """Memory and kernels of one shape of model, the last few kept."""
        if key not in self._jobs:
            while len(self._jobs) >= self.held:
                del self._jobs[next(iter(self._jobs))]
            self._jobs[key] = make()
        return self._jobs[key]

    def weight(self, weight: Array | None) -> tuple[DeviceArray | None, float]:
        """The weights on the device, copied once, and the largest of them."""
        if weight is None:
            return None, 1.0
        if self._weight is None or self._weight[0] is not weight:
            self._weight = weight, self.table.device.array(weight, np.float64), float(weight.max())
        return self._weight[1], self._weight[2]

    # --- kernels, by the names and arguments of `ilk.kernels`

    def _k_means(self, encoding: CellEncoding, k: int) -> DeviceKMeans:
        made: DeviceKMeans = self.job(
            ("k-means", encoding.key, k), lambda: DeviceKMeans(self.table, encoding, k)
        )
        return made

    def _nearest_step(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        weight: Array | None,
        centres: Array,
        limit: float = inf,
        share_at_limit: float = 1.0,
        *_: Any,
    ) -> tuple[Array, Array, Array]:
        job = self._k_means(CellEncoding(power, centre, factor), len(centres))
        if limit != inf:
            return job.trimmed_step(centres, *self.weight(weight), (limit, share_at_limit))
        return job.step(centres, *self.weight(weight))

    def _nearest(
        self, power: float, centre: Array, factor: Array | None, centres: Array
    ) -> tuple[Array, Array]:
        job = self._k_means(CellEncoding(power, centre, factor), len(centres))
        labels = job.labels(centres)
        return labels.fetch(), job.row_costs(centres, labels).fetch()

    def _distances(self, power: float, centre: Array, factor: Array | None, points: Array) -> Array:
        return self.table.distances(CellEncoding(power, centre, factor), points)

    def _in_doubles(self, what: str) -> None:
        """Say once what a card without units for float64 is slow at."""
        device = self.table.device
        if device.slow_doubles:
            why = f"{what} is computed in float64, which {device.name} does at a 64th of its rate"
            self._say(
                why, "slow-on-gpu", "many CPUs are faster; K-means and latent classes are not concerned"
            )

    def _mixture(self, encoding: CellEncoding, k: int, diagonal: bool) -> DeviceMixture:
        self._in_doubles("a Gaussian mixture")
        key = "mixture", encoding.key, k, diagonal
        made: DeviceMixture = self.job(key, lambda: DeviceMixture(self.table, encoding, k, diagonal))
        return made

    def _mixture_step(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        weight: Array | None,
        mean: Array,
        whiten: Array,
        log_weight: Array,
        hard: bool = False,
        limit: float = inf,
        share_at_limit: float = 1.0,
        *_: Any,
    ) -> tuple[Array, Array, Array, Array]:
        job = self._mixture(CellEncoding(power, centre, factor), len(mean), whiten.ndim == 2)
        own = np.broadcast_to(whiten, (len(mean), *whiten.shape[1:]))
        options: Any = {"hard": hard, "weight": self.weight(weight)[0], "rules": (limit, share_at_limit)}
        count, shift, scatter, cost = job.step(mean, own, log_weight, **options)
        scatter = scatter.sum(axis=0, keepdims=True) if len(whiten) < len(mean) else scatter
        return count, shift, scatter, np.array([cost, 0.0])

    def _mixture_labels(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        mean: Array,
        whiten: Array,
        log_weight: Array,
        hard: bool = False,
    ) -> tuple[Array, Array, Array]:
        job = self._mixture(CellEncoding(power, centre, factor), len(mean), whiten.ndim == 2)
        own = np.broadcast_to(whiten, (len(mean), *whiten.shape[1:]))
        return job.labels(mean, own, log_weight, hard=hard)

    def _mixture_ending(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        weight: Array | None,
        mean: Array,
        whiten: Array,
        log_weight: Array,
        n_labels: int,
        hard: bool = False,
        *_: Any,
    ) -> Ending:
        told = self._mixture_labels(power, centre, factor, mean, whiten, log_weight)
        return ending_of(*told, weight, n_labels, hard)

    def _mixture_gather(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        weight: Array | None,
        mean: Array,
        membership: Array | None,
        scatters: str = "full",
        *_: Any,
    ) -> tuple[Array, Array, Array]:
        if membership is not None and membership.ndim == 2:
            raise Unavailable("sums under given memberships have no kernel for the GPU")
        job = self._mixture(CellEncoding(power, centre, factor), len(mean), scatters == "diagonal")
        count, shift, scatter = job.gather(mean, membership, self.weight(weight)[0])
        return count, shift, scatter.sum(axis=0, keepdims=True) if scatters == "pooled" else scatter

    def _student(
        self, encoding: CellEncoding, mean: Array, whiten: Array, hard: bool, weight: Any, rules: Any
    ) -> DeviceStudent:
        self._in_doubles("a Student mixture")
        k, diagonal = len(mean), whiten.ndim == 2
        key = "student", encoding.key, k, diagonal
        made: DeviceStudent = self.job(key, lambda: DeviceStudent(self.table, encoding, k, diagonal))
        return made.under(hard, self.weight(weight)[0], rules)

    def _student_tails(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        weight: Array | None,
        mean: Array,
        whiten: Array,
        constant: Array,
        dof: Array,
        nodes: Array,
        hard: bool = False,
        *rules: float,
    ) -> tuple[Array, Array, Array]:
        given = hard, weight, rules or (inf, 1.0)
        job = self._student(CellEncoding(power, centre, factor), mean, whiten, *given)
        count, tails, cost = job.tails(mean, whiten, np.vstack([constant, dof, nodes.T]))
        return count, tails, np.array([cost, 0.0])

    def _student_step(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        weight: Array | None,
        mean: Array,
        whiten: Array,
        constant: Array,
        dof: Array,
        next_dof: Array,
        hard: bool = False,
        *rules: float,
    ) -> tuple[Array, ...]:
        given = hard, weight, rules or (inf, 1.0)
        job = self._student(CellEncoding(power, centre, factor), mean, whiten, *given)
        *sums, cost = job.pulls(mean, whiten, np.vstack([constant, dof, next_dof]))
        return *sums, np.array([cost, 0.0])

    def _student_labels(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        mean: Array,
        whiten: Array,
        constant: Array,
        dof: Array,
        hard: bool = False,
    ) -> tuple[Array, Array, Array]:
        given = hard, None, (inf, 1.0)
        job = self._student(CellEncoding(power, centre, factor), mean, whiten, *given)
        return job.placed(mean, whiten, np.vstack([constant, dof]))

    def _product(
        self, encoding: CellEncoding, codes: Array | None, k: int, level_start: Array, counts: Array | None
    ) -> DeviceProduct:
        if self.shape[1]:
            self._in_doubles("a mixture with columns of numbers")
        levels = tuple(np.diff(level_start).tolist())
        room, factor = self.table.device.shared_limit, encoding.factor is not None
        counted = counts is not None
        plan = ProductPlan(self.shape[1], levels, k, self.table.dtype, factor, room, counted)
        cells, still = None if codes is None else self._packed(codes, plan), self.still
        made: DeviceProduct = self.job(
            ("product", encoding.key, levels, k, counted),
            lambda: DeviceProduct(self.table, encoding, plan, cells, still),
        )
        return made

    def _packed(self, codes: Array, plan: ProductPlan) -> DeviceArray:
        """The codes on the device, copied once."""
        if self._codes is None or self._codes[0] is not codes or self._codes[1] != plan.levels:
            self._jobs.clear()  # those of the codes before
            self._codes = codes, plan.levels, packed_codes(self.table, codes, plan)
        return self._codes[2]

    def _product_step(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        codes: Array | None,
        weight: Array | None,
        *given: Any,
        counts: Array | None = None,
    ) -> tuple[ProductSums, float, float]:
        *components, level_start = (np.asarray(part) for part in given[:6])
        hard, limit, share = (list(given[6:]) + [False, inf, 1.0][len(given) - 6 :])[:3]
        shape = codes, len(components[0]), level_start, counts
        job = self._product(CellEncoding(power, centre, factor), *shape)
        options: Any = {"hard": hard, "weight": self.weight(weight)[0], "rules": (limit, share)}
        return job.step(replace(Products(*components), counts=counts), **options)

    def _product_labels(
        self,
        power: float,
        centre: Array,
        factor: Array | None,
        codes: Array | None,
        *given: Any,
        hard: bool = False,
        counts: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        *components, level_start = given
        shape = codes, len(components[0]), level_start, counts
        job = self._product(CellEncoding(power, centre, factor), *shape)
        return job.labels(replace(Products(*components), counts=counts), hard=hard)
