"""Rows that lie on a device: which of them the kernels of a family walk there, and which are the CPU's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ilk.engines.base import Rows
from ilk.families.base import KEEP_ALL, Family, Partial, Trim
from ilk.table.block import Block


def on_device(rows: Rows, family: Family[Any]) -> Block | None:
    """All rows as a block on a device, where the kernels of the family walk it."""
    if rows.resident is None or not family.device_rows:
        return None
    return rows.resident if family.device_rows == "any" else rows.whole


def device_steps(
    rows: Rows, families: Sequence[Family[Any]], params: Sequence[Any], cuts: Sequence[Trim]
) -> list[Partial]:
    """What one pass tells all starts of rows that lie on a device. Of a table that passes through it in parts, each
    part serves all of them while it is there."""
    models = list(zip(families, params, cuts, strict=True))
    alone = len(models) == 1 or not rows.in_parts  # type: ignore[attr-defined]
    if alone or any(on_device(rows, family) is None for family in families):
        return [_device_step(rows, *model) for model in models]
    surveyed = any(family.device_rows != "any" for family in families)  # products have no use for ranges
    total: list[Partial] = []
    for block in rows.part_blocks(surveyed=surveyed):  # type: ignore[attr-defined]
        steps = [family.step(own, block, cut) for family, own, cut in models]
        total = [one + other for one, other in zip(total, steps, strict=True)] if total else steps
    return total


def _device_step(rows: Rows, family: Family[Any], params: Any, cut: Trim) -> Partial:
    """What one pass tells one start of rows that lie on a device; the CPU's part of it is said once."""
    there = on_device(rows, family)
    if there is not None:
        return family.step(params, there, cut)
    # Costs of the CPU are not those of a device to the last digit, which decides what is cut.
    parted = rows.parted if family.device_rows == "parted" and cut == KEEP_ALL else None  # type: ignore[attr-defined]
    if parted is not None:
        complete, others = parted
        partial: Partial = others.reduce(_visit, (family, params, cut))
        return family.step(params, complete, cut) + partial
    rows.tell(f"{family.name} has no kernel for this table on the GPU")  # type: ignore[attr-defined]
    return rows.reduce(_visit, (family, params, cut))


def _visit(state: tuple[Family[Any], Any, Trim], block: Block) -> Partial:
    family, params, cut = state
    return family.step(params, block, cut)
