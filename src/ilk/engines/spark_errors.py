"""Errors between Spark's workers and the driver: Spark brings home no more of them than their text."""

from __future__ import annotations

import base64
import contextlib
import pickle
import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from ilk.errors import EngineError, IlkError

REFUSAL = re.compile(r"\[ilk-refusal ([A-Za-z0-9+/=]+)\]")

Work = Callable[[Any, Iterator[Any]], Iterator[Any]]


def carrying(work: Work) -> Work:
    """The work of a worker on its batches; a refusal of ours rides in the text of the error."""

    @wraps(work)
    def carried(self: Any, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from work(self, batches)
        except IlkError as error:
            token = base64.b64encode(pickle.dumps(error)).decode()
            raise RuntimeError(f"{error} [ilk-refusal {token}]") from None

    return carried


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Spark's errors in our words, where the cause is known."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        refusal = REFUSAL.search(str(error))
        if refusal is not None:
            raise pickle.loads(base64.b64decode(refusal.group(1))) from None  # noqa: S301
        absent = re.search(r"No module named '([\w.]+)'", str(error))
        if absent is not None:
            raise EngineError(
                "worker-lacks-package",
                f"a Spark worker has no module {absent.group(1)!r}",
                do="Install ilk and what it needs on every worker (a cluster library, or spark.addArtifact with a "
                "packed environment), and let PYSPARK_PYTHON name that Python",
            ) from None
        raise
