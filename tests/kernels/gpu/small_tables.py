"""All kernels once on small tables, for `compute-sanitizer`: `python -m tests.kernels.gpu.small_tables`."""

from __future__ import annotations

import numpy as np

from ilk.kernels.gpu import flow
from ilk.kernels.gpu.launch import Device, open_device
from tests.kernels.gpu import test_mixture_on_card as mixtures
from tests.kernels.gpu import test_on_card as k_means
from tests.kernels.gpu import test_product_on_card as products
from tests.kernels.gpu import test_student_on_card as students

ROWS = 6001


def every_kernel(device: Device) -> None:
    """K-means of every kind, mixtures, products, and parts of a table."""
    for columns, k in ((2, 20), (16, 10), (20, 60), (32, 100), (64, 300), (200, 70)):
        x = k_means.blobs(ROWS, columns, k, np.float32)
        k_means.compare(device, x, x[:k])
    k_means.test_rows_that_say_the_same_are_drawn_by_the_card_as_by_the_cpu(device)
    k_means.test_distances_of_seeds_have_the_bits_of_the_cpu(device, 7, 8, np.float32)
    x = np.random.default_rng(0).normal(size=(ROWS, 32)).astype(np.float32)  # about zero: cells with rests
    k_means.compare(device, x, x[:60])
    x = k_means.blobs(ROWS, 64, 300, np.float16)
    k_means.compare(device, x, x[:300])
    x = k_means.blobs(ROWS, 20, 60, np.float64)
    k_means.compare(device, x, x[:60], weight=np.ones(ROWS))
    for columns, k, diagonal in (
        (8, 5, False),
        (32, 32, False),
        (20, 5, True),
        (100, 3, False),
        (40, 30, True),
        (150, 3, False),
    ):
        _, code, numbers, resident = mixtures.table_of(device, ROWS, columns, k, np.float32)
        mean, whiten, logs = mixtures.components(numbers, k, diagonal)
        resident._mixture_step(*code, None, mean, whiten, logs)
        resident._mixture_labels(*code, mean, whiten, logs)
        parts = students.students(numbers, k, diagonal)
        resident._student_tails(*code, None, *parts, parts[-1][:, None] * np.linspace(0.5, 2, 8))
        resident._student_step(*code, None, *parts, parts[-1])
        resident._student_labels(*code, *parts)
    for columns, levels, k in products.SHAPES:
        _, codes, resident = products.table_of(device, ROWS, columns, levels)
        parts = products.components(columns, levels, k)
        resident._product_step(*products.code_of(columns), codes, None, *parts)
        resident._product_labels(*products.code_of(columns), codes, *parts)
        if columns:
            counts = np.arange(columns) % 2 == 0
            resident._product_step(*products.code_of(columns), codes, None, *parts, counts=counts)
    in_parts(device)


def in_parts(device: Device) -> None:
    """A table that passes through in three parts."""
    x = k_means.blobs(3 * 4096, 16, 10, np.float32)
    flow.PART_BYTES = 4096 * 64
    cells = flow.Flowing(device, x, print)
    encoding = k_means.encoded(x)
    given = encoding.power, encoding.centre, encoding.factor, None, x[:10].astype(np.float64) * encoding.power
    cells.run("nearest_step", lambda *_: None, *given)
    raw, codes, _ = products.table_of(device, 3 * 4096, 4, (2, 5, 3))
    flow.PART_BYTES = 4096 * 44
    cells = flow.Flowing(device, raw, print, codes)
    cells.run(
        "product_step",
        lambda *_: None,
        *products.code_of(4),
        codes,
        None,
        *products.components(4, (2, 5, 3), 3),
    )


if __name__ == "__main__":
    every_kernel(open_device())
    every_kernel(Device(ampere=True))
    print("every kernel ran")
