"""Which kernel for which table: sizes, shared memory and grids as pure functions, which need no GPU.

K-means (decision 31):
- `tiny`: up to four columns, plain float, centres in shared memory;
- `few`: few centres times columns, plain float, centres as constants;
- `fused`: tensor cores, all sums in shared memory, one read of the table;
- `large`: tensor cores, centres stream by; sums are a second read;
- `mma`: the same on the tensor cores of other cards than Hopper, and for more than 128 columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ilk.kernels.gpu.nvrtc import source, wgmma

SHARED_LIMIT = 227 * 1024  # bytes that one block may have on Hopper
FLUSH_ROWS = 16384  # rows between writings of `tiny`, `few` and `fused`
FEW_CELLS = 400  # centres times columns, up to which `few` is fastest (seen at 56 and 160)
FEW_COLUMNS = 32
FUSED_CENTRES = 248
LARGE_COLUMNS = 128  # beyond, the fragments of a row do not fit the registers, and are read slab by slab
SLAB_COLUMNS = 64
MMA_CHUNK = 64  # centres at a time of `mma`
LEAST_ROWS = 4096  # tables of fewer rows are the CPU's
MOST_ROWS = 1 << 30  # of one launch: lists hold int32 row numbers
LIST_SHARE = 8  # one row in so many has room on a list
SEED_POINTS, SEED_ROWS = 8, 128  # of one read, and of the smallest block
ANY_PARTS = 5  # of 15 bits, of sums of any numbers: 74 bits below the largest, and a rest
RAW = {"float16": "u16", "float32": "float", "float64": "double"}
REAL = {"float16": "float", "float32": "float", "float64": "double"}


SUMMING = ("common.cuh", "digits.cuh")


def up(value: int, step: int) -> int:
    """The next multiple.

    >>> up(5, 4), up(8, 4)
    (8, 8)
    """
    return -(-value // step) * step


@dataclass(frozen=True)
class Digits:
    """How cells are cut into whole numbers (`digits.cuh`) so that int32 sums hold 2^headroom of them."""

    headroom: int

    @property
    def high_bits(self) -> int:
        """Numbers are below so many bits of units."""
        return 30 - self.headroom

    @property
    def low_bits(self) -> int:
        """Below the unit; a number has at most half of it."""
        return 31 - self.headroom

    @property
    def macros(self) -> dict[str, Any]:
        return {"HEADROOM": self.headroom, "LOW_BITS": self.low_bits}


# Rows of one centre between two writings, as a power of two: the fewer there is room for, the more digits a cell may
# have. `few` and `fused` have room for a quarter of the rows, the second read for a sixteenth, and int64 sums of all
# for 2^26 of a centre; a pass that finds more is made again with room for all.
HEADROOM = {"tiny": 14, "few": 12, "fused": 12, "large": 12, "mma": 12}
CAREFUL = {"few": 14, "fused": 14, "large": 16, "mma": 16}


@dataclass(frozen=True)
class Build:
    """A kernel and how it is compiled and launched; `products` is the width of the wgmma function it calls."""

    name: str
    files: tuple[str, ...]
    macros: Mapping[str, Any] = field(default_factory=dict)
    shared: int = 0
    threads: int = 256
    products: int = 0
    text: str = ""  # generated, after the first file

    @property
    def fits(self) -> bool:
        return self.fits_in(SHARED_LIMIT)

    def fits_in(self, room: int) -> bool:
        """Whether a card has the shared memory."""
        return self.shared <= room

    def source(self) -> str:
        """The text that is compiled."""
        return _source(self.files, self.products, self.text)


@cache
def _source(files: tuple[str, ...], products: int, text: str) -> str:
    made = (wgmma(products) if products else "") + text
    return source(files[0]) + made + source(*files[1:])


@dataclass(frozen=True)
class KMeansPlan:
    """How a table of so many columns is given to K centres: `kind` of kernel, columns it reads (the rest are zeros)."""

    kind: str
    columns: int
    k: int
    wide: int
    half: bool = False
    room: int = SHARED_LIMIT  # of a block, in shared memory
    careful: bool = False  # sums have room for any number of rows of a centre

    @property
    def sums_at_once(self) -> bool:
        """Whether labels and sums come from one read."""
        return self.kind not in ("large", "mma")

    @property
    def digits(self) -> Digits:
        """Of the cells that are added up."""
        return Digits(CAREFUL.get(self.kind, HEADROOM[self.kind]) if self.careful else HEADROOM[self.kind])

    @property
    def may_run_over(self) -> bool:
        """Whether sums may not have room for all rows of a centre."""
        return not self.careful and self.kind in CAREFUL

    def screen(self, labels: bool, terms: int = 1) -> Build:
        """The first launch."""
        if self.kind == "tiny":
            return tiny(self.wide, self.k, labels)
        if self.kind == "few":
            return few(self.wide, self.k, labels, self.room, self.careful)
        if self.kind == "fused":
            return fused(self.wide, self.k, terms=terms, labels=labels, careful=self.careful)
        if self.kind == "mma":
            return mma(self.wide, self.k)
        return large(self.wide, self.k, half=self.half)

    def settle(self, labels: bool) -> Build | None:
        """The second launch, for the rows on the list; none where plain floats are used."""
        if self.kind == "fused":
            return fused(self.wide, self.k, terms=3, gather=True, labels=labels, careful=self.careful)
        if self.kind == "mma":
            return mma(self.wide, self.k, terms=3, gather=True)
        return (
            large(self.wide, self.k, terms=3, gather=True, half=self.half) if self.kind == "large" else None
        )


@cache
def kmeans_plan(columns: int, k: int, half: bool = False) -> KMeansPlan | None:
    """The plan, or None where no kernel is made for it.

    >>> [kmeans_plan(d, k).kind for d, k in ((2, 100), (16, 10), (32, 100), (128, 1000))]
    ['tiny', 'few', 'fused', 'large']
    """
    plan = KMeansPlan("tiny", columns, k, columns)
    if columns <= 4 and plan.screen(True).fits and exact(plan, "float32", factor=False, labels=True).fits:
        return plan
    wide = up(columns, 4)
    if k * wide <= FEW_CELLS and wide <= FEW_COLUMNS:
        return KMeansPlan("few", columns, k, wide)
    wide = up(columns, 16)
    if not half and k <= FUSED_CENTRES and wide <= LARGE_COLUMNS:
        builds = fused(wide, k), fused(wide, k, terms=3), fused(wide, k, terms=3, gather=True)
        if all(build.fits for build in builds):
            return KMeansPlan("fused", columns, k, wide)
    wide = up(columns, 64)
    if wide <= LARGE_COLUMNS:
        plan = KMeansPlan("large", columns, k, wide, half and wide == columns)
        settle = plan.settle(True)
        if plan.screen(True).fits and settle is not None and settle.fits:
            return plan
    return plan_elsewhere(columns, k, SHARED_LIMIT)


@cache
def plan_elsewhere(columns: int, k: int, room: int) -> KMeansPlan | None:
    """The plan for a card that is no Hopper, with so many bytes of shared memory for a block, and for wide tables.

    >>> [plan_elsewhere(d, k, 99 * 1024).kind for d, k in ((2, 100), (16, 10), (32, 100), (128, 1000))]
    ['tiny', 'few', 'mma', 'mma']
    """
    wide = up(columns, 4)
    plain = [KMeansPlan("tiny", columns, k, columns, room=room)] if columns <= 4 else []
    if k * wide <= FEW_CELLS and wide <= FEW_COLUMNS:
        plain.append(KMeansPlan("few", columns, k, wide, room=room))
    for plan in plain:
        ends = exact(plan, "float32", factor=False, labels=True)
        if plan.screen(True).fits_in(room) and ends.fits_in(room):
            return plan
    wide = up(columns, 16 if columns <= LARGE_COLUMNS else SLAB_COLUMNS)
    plan = KMeansPlan("mma", columns, k, wide, room=room)
    settle = plan.settle(True)
    fits = settle is not None and settle.fits_in(room)
    return plan if fits and plan.screen(True).fits_in(room) else None


def tiny(d: int, k: int, labels: bool) -> Build:
    """Centres (k up to eights, 2, 4 or 8 floats each), counts and sums of two integers a cell."""
    width = 2 if d == 1 else 4 if d <= 3 else 8
    shared = up(k, 8) // 8 * (8 * width + 4) * 4 + (k + 1) * 4 + (k + 1) * d * 8
    macros = {"D": d, "K": k, "PER": 4, "LABELS": int(labels), "BLOCK_ROWS": FLUSH_ROWS, "SMEM": shared}
    macros |= Digits(HEADROOM["tiny"]).macros
    return Build("kmeans_tiny", (*SUMMING, "kmeans_tiny.cu"), macros, shared, 512)


def few(d: int, k: int, labels: bool, room: int = SHARED_LIMIT, careful: bool = False) -> Build:
    """Rings of two slots of 64 rows a warp, two buffers of sums."""
    at_once = 32 // d
    sums = at_once * (up((k + 1) * d * 8, 128) + d * 4)
    for warps in (16, 12, 8, 4):
        place = up(32 + 2 * (k + 1) * 4, 128) + 2 * sums
        shared = up(place + warps * 64 * 4, 128) + warps * 2 * 64 * (d * 4 + 16)
        if shared <= room:
            break
    macros = {"D": d, "K": k, "PER": 2, "WARPS": warps, "STAGES": 2}
    macros |= {"LABELS": int(labels), "BLOCK_ROWS": FLUSH_ROWS, "SMEM": shared}
    macros |= Digits(CAREFUL["few"] if careful else HEADROOM["few"]).macros
    return Build("kmeans_few", (*SUMMING, "kmeans_few.cu"), macros, shared, warps * 32)


def fused(
    d: int, k: int, *, terms: int = 1, gather: bool = False, labels: bool = False, careful: bool = False
) -> Build:
    """As many warpgroups as registers allow, as many stages as shared memory does."""
    padded = max(16, up(k, 8))
    image = ((2 if terms == 3 else 1) * d + 16) * padded * 2
    # Registers of a thread as ptxas gave them, and what it can be had down to without spills.
    wanted = 0.6 * padded + 1.2 * d + 15 + (d / 4 if terms == 3 else 0)
    most = next((groups for groups, room in ((4, 124), (3, 172)) if wanted <= room), 2)
    shared, groups, stages = 0, most, 2
    for groups, stages in [(g, s) for g in range(most, 0, -1) for s in ((2,) if gather else (4, 3, 2))]:
        warps = groups * 4
        place = up(image + warps * stages * 8 + 32 + 2 * (k + 1) * 4, 128)
        shared = place + warps * 64 + warps * stages * 64 * d + 16 * (k + 1) * d
        if shared <= SHARED_LIMIT:
            break
    macros = {"D": d, "K": k, "NP": padded, "WGS": groups, "STAGES": stages, "TERMS": terms}
    macros |= {"GATHER": int(gather), "LABELS": int(labels), "FLUSH_ROWS": FLUSH_ROWS, "SMEM": shared}
    macros |= Digits(CAREFUL["fused"] if careful else HEADROOM["fused"]).macros
    return Build("kmeans_fused", (*SUMMING, "kmeans_fused.cu"), macros, shared, groups * 128, padded)


def large(d: int, k: int, *, terms: int = 1, gather: bool = False, half: bool = False) -> Build:
    """Chunks of 128 centres (64 of split numbers) in rings of three."""
    chunk = 128 if terms == 1 else 64
    chunks, shared, stages = -(-k // chunk), 0, 2
    for stages in (3, 2):
        held = stages * (2 if terms == 3 else 1) * chunk * d * 2 + 3 * 64 * d * (2 if half else 4)
        shared = held + chunks * chunk * 4 + d * 4 + (2 * stages + 6) * 8
        if shared <= SHARED_LIMIT:
            break
    macros = {"D": d, "CHUNKS": chunks, "NC": chunk, "STAGES": stages, "TERMS": terms}
    macros |= {"GATHER": int(gather), "HALF": int(half), "SMEM": shared}
    return Build("kmeans_large", ("common.cuh", "search.cuh", "kmeans_large.cu"), macros, shared, 512, chunk)


def mma(d: int, k: int, *, terms: int = 1, gather: bool = False) -> Build:
    """Chunks of 64 centres in two stages, of more than 128 columns in slabs of 64; two tiles of 16 rows a warp, one of
    split numbers."""
    parts, slabs = 2 if terms == 3 else 1, 1 if d <= LARGE_COLUMNS else d // SLAB_COLUMNS
    shared = 2 * (parts * MMA_CHUNK * (d // slabs) * 2 + MMA_CHUNK * 4)
    macros = {"D": d, "SLABS": slabs, "CHUNKS": -(-k // MMA_CHUNK), "NC": MMA_CHUNK, "TILES": 3 - parts}
    macros |= {"TERMS": terms}
    macros |= {"GATHER": int(gather), "SMEM": shared}
    return Build("kmeans_mma", ("common.cuh", "search.cuh", "kmeans_mma.cu"), macros, shared, 256)


def sums(d: int, k: int, half: bool, room: int = SHARED_LIMIT, careful: bool = False) -> Build:
    """Sums of `large` and `mma`: two integers for each of 16 columns of at most so many centres."""
    k = min(k, (room - 132) // 132)
    shared = (k + 1) * 132
    macros = {"D": d, "K": k, "HALF": int(half), "SMEM": shared}
    macros |= Digits(CAREFUL["large"] if careful else HEADROOM["large"]).macros
    return Build("kmeans_sums", (*SUMMING, "kmeans_sums.cu"), macros, shared, 1024)


def sums_any(d: int, k: int, dtype: str, *, factor: bool, weighted: bool, room: int = SHARED_LIMIT) -> Build:
    """Sums of any numbers under weights: five integers for each of 16 columns of at most so many centres."""
    each = ANY_PARTS * 68
    k = min(k, room // each - 1)
    shared = (k + 1) * each
    macros = {"D": d, "K": k, "PARTS": ANY_PARTS, "WEIGHTED": int(weighted), "SMEM": shared}
    macros |= numbers(dtype, factor)
    return Build("kmeans_sums_any", ("common.cuh", "numbers.cuh", "kmeans_sums_any.cu"), macros, shared, 1024)


def exact(plan: KMeansPlan, dtype: str, *, factor: bool, labels: bool) -> Build:
    """The rows that the other kernels leave open."""
    adds = int(plan.sums_at_once)
    at_once = 4 if plan.k > 64 else 2 if plan.k > 32 else 1
    shared = ((plan.k * plan.wide + plan.k) * 8 if adds else 0) + 32 * 32 * at_once * 8
    macros = {
        "D": plan.columns,
        "DP": plan.wide,
        "K": plan.k,
        "SUMS": adds,
        "LABELS": int(labels),
        "SMEM": shared,
    }
    macros |= numbers(dtype, factor) | plan.digits.macros
    return Build("kmeans_exact", (*SUMMING, "numbers.cuh", "kmeans_exact.cu"), macros, shared, 512)


def table(name: str, d: int, dtype: str, *, factor: bool) -> Build:
    """One of the kernels of `table.cu`."""
    threads = 1024 if name == "survey" else 256
    return Build(
        name, ("common.cuh", "numbers.cuh", "table.cu"), {"D": d, **numbers(dtype, factor)}, 0, threads
    )


def rests(name: str, d: int, half: bool, digits: Digits) -> Build:
    """One of the kernels of `rests.cu`."""
    return Build(name, (*SUMMING, "rests.cu"), {"D": d, "HALF": int(half), **digits.macros})


def reduction(whole: bool) -> Build:
    """Partials added up: int64 or doubles."""
    return Build("reduce_whole" if whole else "reduce_partials", ("common.cuh", "reduce.cu"), {}, 0, 1024)


def seeding(d: int, dtype: str, points: int, *, factor: bool) -> Build:
    """A step of k-means++: distances to at most `SEED_POINTS` points."""
    warps = 4 if dtype == "float64" else 8  # 34 KB of shared memory
    macros = {"D": d, "POINTS": points, "WARPS": warps, **numbers(dtype, factor)}
    return Build("seed_step", ("common.cuh", "numbers.cuh", "seeding.cu"), macros, 0, warps * 32)


def numbers(dtype: str, factor: bool) -> dict[str, Any]:
    """Macros of `numbers.cuh`."""
    return {"RAW": RAW[dtype], "REAL": REAL[dtype], "FACTOR": int(factor)}


@dataclass(frozen=True)
class Stretches:
    """How `fused` cuts a table: blocks of partials of the first launch and of the second, and room of a CTA's list."""

    first: int
    second: int
    room: int


def stretches(n_rows: int, grid: int, screen: Build, settle: Build) -> Stretches:
    """Rounds of tiles between two writings, for the rows and for a full list."""

    def cut(tiles: int, ctas: int, build: Build) -> int:
        groups = int(build.macros["WGS"])
        rounds = FLUSH_ROWS // (64 * groups)
        return -(-tiles // (ctas * groups * rounds))

    room = max(64, -(-n_rows // (LIST_SHARE * grid)))
    return Stretches(cut(-(-n_rows // 64), grid, screen), cut(-(-room // 64), 1, settle), room)
