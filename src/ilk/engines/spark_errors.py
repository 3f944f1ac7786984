"""What comes home from Spark's workers: results and refusals, and errors of Spark itself.

A refusal is a result like any other: every task ends, so the first row that is refused is the same every time, and no
text of an error is ever taken for a message. Results are signed with a secret of the job, which cells and files cannot
know, and opened only under that signature.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import pickle
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ilk.errors import (
    DataError,
    EngineError,
    IlkError,
    ModelFileError,
    NoModelError,
    Option,
    ResourceError,
    UsageError,
    shown,
)

CLASSES = {
    kind.__name__: kind
    for kind in (UsageError, DataError, NoModelError, ResourceError, ModelFileError, EngineError)
}
FIELDS = ("code", "what", "where", "do")
SIGNATURE_BYTES = 32
SHOWN_ERROR = 300  # characters of an error of Spark


@dataclass(frozen=True)
class Refused:
    """A refusal on a worker, as JSON; it becomes an error of a fixed list of classes.

    >>> Refused.of(DataError("bad-cell", "a cell is 3", do="Give 0 or 1")).error()
    DataError('a cell is 3. Give 0 or 1.')
    """

    text: str

    @classmethod
    def of(cls, error: IlkError) -> Refused:
        kind = next((name for name, kind in CLASSES.items() if isinstance(error, kind)), "")
        options = [(option.name, _plain(option.value)) for option in error.options]
        texts = {name: getattr(error, name) for name in FIELDS}
        return cls(json.dumps({"class": kind, "options": options} | texts))

    def error(self) -> IlkError:
        document = json.loads(self.text)
        code, what, where, do = (document[name] for name in FIELDS)
        options = [Option(name, _value(value)) for name, value in document["options"]]
        return CLASSES.get(document["class"], IlkError)(code, what, where=where, do=do, options=options)


def _plain(value: Any) -> Any:
    """The value of an option as JSON has it; a range by its ends."""
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    return value if isinstance(value, (str, int, float, list, dict, type(None))) else str(value)


def _value(plain: Any) -> Any:
    """The value of an option that `_plain` wrote.

    >>> _value(_plain(range(1, 9))), _value(_plain({"year": "numeric"}))
    (range(1, 9), {'year': 'numeric'})
    """
    bounds = plain.get("range") if isinstance(plain, dict) else None
    return range(*bounds) if isinstance(bounds, list) else plain


@dataclass(frozen=True)
class Secret:
    """Signs what a job sends home; it travels to the workers inside the work itself, and stands in no text."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(SIGNATURE_BYTES), repr=False)

    def seal(self, value: Any) -> bytes:
        """A result of a worker as bytes, behind their signature."""
        data = pickle.dumps(value, protocol=5)
        return hmac.digest(self.key, data, "sha256") + data

    def unseal(self, data: Any) -> Any:
        """The result that `seal` made these bytes of; others are not opened.

        >>> secret = Secret()
        >>> secret.unseal(secret.seal([1, 2]))
        [1, 2]
        """
        whole = memoryview(data)
        signature, rest = whole[:SIGNATURE_BYTES], whole[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, hmac.digest(self.key, rest, "sha256")):
            raise EngineError("foreign-result", "a result of a Spark task is not signed by this job")
        return pickle.loads(rest)  # noqa: S301


def is_data_fault(error: Any) -> bool:
    """Whether Spark failed on a cell: a cast, an overflow, a division (class 22 of SQL's states)."""
    return str(error.getSqlState() or "").startswith("22")


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Spark's errors in our words, where the cause is known."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if is_data_fault(error):
            raise DataError(
                "frame-fails",
                f"Spark cannot compute a cell of the frame: {shown(error, SHOWN_ERROR)}",
                do="Correct the cell or the expression; functions such as try_cast give NULL instead",
            ) from error
        absent = re.search(r"No module named '([\w.]+)'", str(error))
        if absent is not None:
            raise EngineError(
                "worker-lacks-package",
                f"a Spark worker has no module {absent.group(1)!r}",
                do="Install ilk and what it needs on every worker (a cluster library, or spark.addArtifact with a "
                "packed environment), and let PYSPARK_PYTHON name that Python",
            ) from None
        raise
