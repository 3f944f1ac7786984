"""The two calls for a whole table: find and describe its groups, compare mixtures."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ilk.analysis.as_estimator import estimator_of
from ilk.analysis.asked import k_of, ks_to_try, seconds_of
from ilk.analysis.cautions import STOPPED
from ilk.analysis.checkpoint import Checkpoint
from ilk.analysis.job import Job
from ilk.analysis.prepare import prepare
from ilk.analysis.progress import reporting
from ilk.analysis.result import Result
from ilk.analysis.run import run
from ilk.engines.devices import brought
from ilk.families.covariance import STRUCTURES, Structure
from ilk.fitting.deadline import Deadline
from ilk.fitting.weights import row_weights
from ilk.methods import GAUSSIAN
from ilk.model.model import Model
from ilk.random import DEFAULT_SEED, seed_of, seed_or_state
from ilk.selection.candidates import Search
from ilk.selection.k_range import k_most
from ilk.selection.mixtures import search_mixtures
from ilk.selection.progress import Progress
from ilk.threads import one_blas_thread, threads_or_jobs


def cluster(
    data: Any,
    *,
    k: Any = "auto",
    method: str = "auto",
    weight: Any = None,
    weights_are: str | None = None,
    types: Any = None,
    truth: str | None = None,
    id: str | None = None,
    ignore: str | Sequence[str] = (),
    columns: str | Sequence[str] | None = None,
    column_weights: Mapping[str, float] | None = None,
    transforms: Mapping[str, str] | None = None,
    scale: str | None = "standard",
    merge: str = "separation",
    min_size: int | None = None,
    max_size: int | None = None,
    match_to: Result | Model | str | os.PathLike[str] | None = None,
    known: Any = None,
    must_link: Any = None,
    cannot_link: Any = None,
    seed: int = DEFAULT_SEED,
    random_state: Any = None,
    budget: float | None = None,
    threads: int | None = None,
    n_jobs: int | None = None,
    device: str = "auto",
    callback: Callable[[Progress], None] | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
    verbose: int = 0,
    memory: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str] | None = None,
    sheet: str | None = None,
    table: str | None = None,
    sql: str | None = None,
) -> Result:
    """Find the groups of a table, choose how many there are, and say what each is.

    Parameters
    ----------
    data : frame, array, list, mapping or path
        A frame (pandas, Polars, Arrow, DuckDB, Spark, Dask), a 2-D array, a list of rows, a mapping of columns, or
        the path of a file: CSV, Parquet, Arrow, JSON, Excel, SQLite or DuckDB; or a postgresql:// address. Cells on a
        GPU (torch, CuPy, JAX, cuDF) too.
    k : "auto", int, range or str, default="auto"
        A number is the number of groups: those of "auto" where it finds so many, else so many components; with
        merge="none" always so many components. A range, also as it is typed ("2..6"), is how many components the best
        model may have; "auto" has no limit. Components without a density dip between them are merged into groups.
    method : str, default="auto"
        "auto", "gaussian", "assorted", "k-means", "k-medians", "trimmed-k-means" or another method ("spectral",
        "typical-cuts", "dirichlet-process", ...; `ilk choose` says what each is for). "auto" takes the assorted
        model where there are categories or missing values, or most columns repeat a value, such as 0; else the better
        by BIC of that and of Gaussian mixtures of fourteen structures.
    weight : None, str or array of shape (n_rows,), default=None
        How much a row counts: the name of a column, or a number for each row.
    weights_are : None, "counts" or "sampling", default=None
        What weights mean: numbers of repeated rows, or how many a row of a sample stands for, which are scaled so
        that they add up to the effective number of rows (Kish). None takes whole numbers for counts unless they are
        above 100 on average and above 10,000 in all, and others for those of a sample.
    types : None, mapping or path, default=None
        Types of columns where the automatic choice is wrong, as {"year": "categorical"}, or the path of a types file.
    truth : None or str, default=None
        Column with a known class to compare with, never used for fitting.
    id : None or str, default=None
        Column that names the rows.
    ignore : str or sequence of str, default=()
        Columns to leave out.
    columns : None, str or sequence of str, default=None
        The only columns to use; None uses all that can be used.
    column_weights : None or mapping, default=None
        How much columns count, such as {"income": 2}: a weight of 2 is the column twice, one of 0 leaves it out. Any
        number for methods of distances, whole numbers for the assorted model, which "auto" then is.
    transforms : None or mapping, default=None
        What methods see of columns of numbers, such as {"income": "log", "visits": "rank"}: the logarithm, the rank
        among the rows of the fit, or with "none" the value, also where the assorted model would choose a scale. Groups
        are described in the units given.
    scale : None or "standard", default="standard"
        "standard" divides each column by its standard deviation; None keeps the units given.
    merge : "separation" or "none", default="separation"
        "separation" merges components without a density dip between them into one group; "none" takes every
        component as a group.
    min_size : None or int, default=None
        Smallest number of rows of a group; smaller ones join the group they fit best.
    max_size : None or int, default=None
        Largest number of rows of a group; full ones pass on the rows that it costs least.
    match_to : None, Result, Model or path, default=None
        An earlier result or model, or the path of its file or run: its letters and names go to the groups that
        correspond.
    known : None, str or array of shape (n_rows,), default=None
        Labels of the rows whose group is known, -1 or missing for the others, or the name of their column. Rows of a
        label stay together, apart from those of other labels. By a Gaussian mixture or K-means, on numbers in memory;
        components are not merged, and stability is not tested.
    must_link : None or pairs of row numbers, default=None
        Rows that belong to the same group, counted from 0, such as [(0, 5), (5, 9)].
    cannot_link : None or pairs of row numbers, default=None
        Rows that belong to different groups; by K-means.
    seed : int, default=0
        Seed of the random draws: the same number gives the same result, whatever the number of threads.
    random_state : None, int, Generator, RandomState or SeedSequence, default=None
        Another spelling of `seed`; give one of them.
    budget : None or float, default=None
        Seconds for all of it, reading included, kept within a second or a tenth; what there was no time for is said
        (`time-limit`, "not tested"). Reading, and the methods that are no search, cannot be cut short.
    threads : None or int, default=None
        Number of threads; None and -1 use all cores. The result does not depend on it.
    n_jobs : None or int, default=None
        Another spelling of `threads`; give one of them.
    device : "auto", "cpu" or "cuda", default="auto"
        Where passes over the rows run. "cuda" is an NVIDIA GPU (`pip install "ilk[gpu]"`); what it cannot do, the CPU
        does, and a caution says so. "auto" goes there where the table is large enough for it to pay.
    callback : None or callable, default=None
        Called with a `Progress` after each candidate.
    progress : None, bool or callable, default=None
        Whether to show how far the run is: a bar in a notebook and on a terminal, elsewhere a line a stage on stderr;
        None shows it in a notebook. A function is called as `callback` is.
    verbose : int, default=0
        1 prints a line for each candidate and stage to stderr.
    memory : None, float or str, default=None
        Bytes, or a text such as "2GB", that the run may use; None takes most of what the machine has. A Parquet
        file or folder, a text file or an Arrow stream that does not fit is read in parts: labels, sizes and
        parameters are those of memory, groups are described from a sample of rows, and there are no
        `probabilities`.
    checkpoint : None or path, default=None
        A file in which a run of more than half a minute keeps what it has done. The same call with this file goes on
        where a killed one ended, with the same result; the file is taken away at the end, and refused where it is of
        another table, other options or another version. Not with a budget.
    sep : None or str, default=None
        What separates the fields of a text file; None finds it out.
    encoding : None or str, default=None
        Encoding of a text file; None takes UTF-8, and cp1252 with a caution where it is not.
    decimal : None or str, default=None
        Decimal mark of a text file; None takes the point, and finds out columns with another.
    missing : None or sequence of str, default=None
        The texts that mean a missing value in a text file or workbook, instead of "NA", "n/a", "?" and the like.
    sheet : None or str, default=None
        Sheet of a workbook; None takes the first with cells.
    table : None or str, default=None
        Table of an SQLite or DuckDB file or a PostgreSQL server; None takes the only one.
    sql : None or str, default=None
        A query whose result is clustered: over the table, which is called `data` there, over the tables of a database
        or the sheets of a workbook by their names, or on a PostgreSQL server.

    Returns
    -------
    Result
        Labels, groups, how far to trust them, and the model that gives new rows theirs.

    See Also
    --------
    select : Compares Gaussian mixtures of every structure.
    AssortedMixture : The model for tables of mixed columns, as an estimator.
    load : Reads a saved model back.

    Examples
    --------
    >>> import ilk
    >>> result = ilk.cluster({"size": [1.0, 1.1, 1.2, 0.9, 8.0, 8.2, 8.1, 7.9]}, k=2)
    >>> result.labels.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> [group.name for group in result.groups]
    ['low size', 'high size']
    """
    seed, threads = seed_or_state(seed, random_state), threads_or_jobs(threads, n_jobs)
    data, device = brought(data, device)
    reading = {"sep": sep, "encoding": encoding, "decimal": decimal, "missing": missing}
    reading |= {"sheet": sheet, "table": table, "sql": sql}
    job = Job(
        data,
        reading={name: value for name, value in reading.items() if value is not None},
        k=k_of(k),
        method=method,
        weight=weight,
        weights_are=weights_are,
        types=types,
        truth=truth,
        id=id,
        ignore=ignore,
        columns=columns,
        scale=scale,
        seed=seed,
        budget=budget,
        threads=threads,
        device=device,
        merge=merge,
        min_size=min_size,
        max_size=max_size,
        match_to=match_to.model if isinstance(match_to, Result) else match_to,
        memory=memory,
        column_weights=column_weights,
        transforms=transforms,
        known=known,
        must_link=must_link,
        cannot_link=cannot_link,
        checkpoint=None if checkpoint is None else Checkpoint(checkpoint),
    )
    with reporting(progress, callback, verbose) as told:
        result = run(replace(job, callback=told))
    if job.checkpoint is not None and not result.interrupted:
        job.checkpoint.done()
    if result.interrupted:
        STOPPED.warn()
    return result


def select(
    data: Any,
    *,
    k: Any = "auto",
    structures: str | Sequence[str] = "all",
    thorough: bool = True,
    weight: str | None = None,
    types: Any = None,
    ignore: str | Sequence[str] = (),
    scale: str | None = None,
    seed: int = DEFAULT_SEED,
    random_state: Any = None,
    budget: float | None = None,
    threads: int | None = None,
    n_jobs: int | None = None,
    callback: Callable[[Progress], None] | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
    verbose: int = 0,
) -> Search:
    """Fit Gaussian mixtures of every structure at every K, and choose the lowest BIC.

    Each candidate has log-likelihood, parameters, BIC, ICL, AIC and adjusted BIC (all lower is better), its status,
    and how many of its starts reached the best. The result prints as a table of BIC; `.chosen` is the winner,
    `.margin(.runner_up)` by how much, `.chosen.estimator()` the winner as a fitted `GaussianMixture`.

    Parameters
    ----------
    data : frame, array, list, mapping or path
        A table, as `cluster` takes it; all columns that are used must be numbers.
    k : "auto", int, range or str, default="auto"
        Numbers of components to try, a range also as it is typed ("2..6"); "auto" fits 1 to 9, and more for as long as
        they lower the BIC.
    structures : str or sequence of str, default="all"
        "all", or names such as "VEV".
    thorough : bool, default=True
        False is several times faster: every candidate has one start (two for EEE and VVV), and only the
        promising ones of the best K and of those beside it have all.
    weight : None or str, default=None
        Column that says how much a row counts.
    types : None, mapping or path, default=None
        Types of columns where the automatic choice is wrong.
    ignore : str or sequence of str, default=()
        Columns to leave out.
    scale : None or "standard", default=None
        "standard" divides each column by its standard deviation; None keeps the units given.
    seed : int, default=0
        Seed of the random draws: the same number gives the same result, whatever the number of threads.
    random_state : None, int, Generator, RandomState or SeedSequence, default=None
        Another spelling of `seed`; give one of them.
    budget : None or float, default=None
        Seconds for all of it, reading included, kept within a second or a tenth; what there was no time for is said
        (`time-limit`, "not tested"). Reading, and the methods that are no search, cannot be cut short.
    threads : None or int, default=None
        Number of threads; None and -1 use all cores. The result does not depend on it.
    n_jobs : None or int, default=None
        Another spelling of `threads`; give one of them.
    callback : None or callable, default=None
        Called with a `Progress` after each candidate.
    progress : None, bool or callable, default=None
        Whether to show how far the run is: a bar in a notebook and on a terminal, elsewhere a line a stage on stderr;
        None shows it in a notebook. A function is called as `callback` is.
    verbose : int, default=0
        1 prints a line for each candidate to stderr.

    Returns
    -------
    Search
        All candidates, and the choice.

    See Also
    --------
    cluster : Chooses among more models, and describes the groups.
    GaussianMixture : One of the candidates, as an estimator.

    References
    ----------
    Fraley and Raftery (2002). Model-based clustering, discriminant analysis, and density estimation. Journal of the
    American Statistical Association 97, 611-631.

    Examples
    --------
    >>> import ilk, numpy as np
    >>> draws = np.random.default_rng(0)
    >>> X = np.vstack([draws.normal(0, 1, (40, 2)), draws.normal(9, 1, (40, 2))])
    >>> found = ilk.select(X, k=range(1, 4), structures=["EII", "VVV"])
    >>> found.chosen.structure, found.chosen.k
    ('EII', 2)
    """
    seed, threads = seed_or_state(seed, random_state), threads_or_jobs(threads, n_jobs)
    job = Job(
        data,
        k=k_of(k),
        method=GAUSSIAN,
        weight=weight,
        types=types,
        truth=None,
        id=None,
        ignore=ignore,
        scale=scale,
        seed=seed,
        budget=budget,
        threads=threads,
    )
    names = (
        [s.name for s in STRUCTURES] if isinstance(structures, str) and structures == "all" else structures
    )
    wanted = [Structure.parse(name) for name in ([names] if isinstance(names, str) else names)]
    ready = prepare(job)
    ks, _ = ks_to_try(job.k, ready.rows)
    with reporting(progress, callback, verbose) as told, one_blas_thread():
        found = search_mixtures(
            ready.rows,
            ks,
            seed_of(seed),
            structures=wanted,
            thorough=thorough,
            most=k_most(job.k, ks, row_weights(ready.rows).n_counting),
            deadline=Deadline.after(seconds_of(budget)),
            callback=told,
        )
    names_in = [column.name for column in ready.used.numeric] if hasattr(data, "columns") else None
    options = {"scale": scale, "random_state": seed_of(seed), "threads": threads}
    make = partial(estimator_of, found, ready.rows, options, names_in)
    candidates = list(found.candidates)
    candidates[found.winner] = replace(found.chosen, _make=make)
    return replace(found, candidates=tuple(candidates))
