"""Packs that Spark's Python workers keep on their own disks, besides what Spark persists.

A pass that finds all its packs there moves none from the JVM to Python, which costs far more than the sums. A shelf
lies in the folder that Spark gives an application on each executor and removes with it; what is not on the shelf is
taken from the frame, so a lost shelf costs one pass and changes nothing. Where workers cannot keep packs (no room, no
right to write), two passes find that out and later ones do not ask.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ilk.engines.packed import Pack, PackLayout

PATIENCE = 2  # passes in a row that lack a pack, after which the shelf is given up
REMEMBERED = 64  # shelves that nobody needs any more, which workers clear when they come by

_cleared: list[str] = []


@dataclass
class WorkerCache:
    """The packs of one frame; plain data, so that it can be shipped."""

    name: str = field(default_factory=lambda: f"ilk-{uuid.uuid4().hex}")
    others: tuple[str, ...] = ()  # to be cleared
    n_lacking: int = 0  # passes in a row that lacked a pack

    @property
    def serves(self) -> bool:
        """Whether it is worth asking."""
        return self.n_lacking < PATIENCE

    def learn(self, lacking: bool) -> None:
        """Whether a pass that asked lacked a pack."""
        self.n_lacking = self.n_lacking + 1 if lacking else 0

    def put(self, part: int, within: int, data: Any) -> None:
        """Keep the bytes of a pack, unless they are there, there is no room, or nobody will ask for them."""
        if not self.serves:
            return
        folder = _root() / self.name
        place = folder / f"{part}-{within}"
        with contextlib.suppress(OSError):
            if place.exists() and place.stat().st_size == len(data):
                return
            folder.mkdir(exist_ok=True)
            made = folder / uuid.uuid4().hex
            try:
                made.write_bytes(data)
                os.replace(made, place)
            finally:
                made.unlink(missing_ok=True)

    def get(self, part: int, within: int, n_rows: int, layout: PackLayout) -> Pack | None:
        """The pack, mapped into memory; None where it is not here."""
        try:
            data = np.memmap(_root() / self.name / f"{part}-{within}", mode="r")
        except (OSError, ValueError):
            return None
        return Pack.from_bytes(data, n_rows, layout) if len(data) == n_rows * layout.row_bytes else None

    def clear_others(self) -> None:
        for name in self.others:
            shutil.rmtree(_root() / name, ignore_errors=True)

    def shipped(self) -> WorkerCache:
        """The shelf as it goes to the workers, with what they may clear."""
        return WorkerCache(self.name, tuple(_cleared), self.n_lacking)

    def forget(self) -> None:
        """Nobody needs it any more."""
        _cleared.append(self.name)
        del _cleared[:-REMEMBERED]


def _root() -> Path:
    from pyspark import SparkFiles

    return Path(SparkFiles.getRootDirectory())
