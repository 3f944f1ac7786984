"""Counter-based random streams: the same numbers whatever the order in which they are asked for.

A stream is named by (seed, purpose, indices): start 3 draws the same numbers whether it runs first, last,
or on another machine, and nothing has to be saved but the name.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ilk.errors import UsageError

Seed = int


def stream(seed: Seed, purpose: str, *indices: int) -> np.random.Generator:
    """A Philox generator keyed by the seed, a word for what it is used for, and any indices.

    >>> float(stream(0, "start", 3).random()) == float(stream(0, "start", 3).random())
    True
    """
    name = f"{seed}/{purpose}/" + "/".join(str(int(i)) for i in indices)
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype=np.uint64)))


def seed_of(random_state: object) -> Seed:
    """One integer seed from any form of `random_state`; a generator is advanced by one draw.

    >>> seed_of(7), seed_of(np.int64(7))
    (7, 7)
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, (bool, np.bool_)):
        raise _refused(random_state)
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.SeedSequence):
        return int(random_state.generate_state(1, np.uint64)[0])
    raise _refused(random_state)


class _NotGiven(int):
    """A default that is known from the same number given by the user."""


DEFAULT_SEED: Seed = _NotGiven(0)


def seed_or_state(seed: Any, random_state: Any) -> Any:
    """`seed`, or scikit-learn's spelling `random_state` where that is given.

    >>> seed_or_state(3, None), seed_or_state(DEFAULT_SEED, 7)
    (3, 7)
    """
    if random_state is None:
        return seed
    both = (int, np.integer)
    same = isinstance(seed, both) and isinstance(random_state, both) and seed == random_state
    if seed is DEFAULT_SEED or seed is random_state or same:
        return random_state
    raise UsageError(
        "seed-twice",
        f"seed={seed!r} and random_state={random_state!r} are two spellings of one option",
        do="Give one of them",
    )


def _refused(random_state: object) -> UsageError:
    return UsageError(
        "bad-seed",
        f"random_state={random_state!r} is not a seed",
        do="Give None, a whole number of 0 or more, a NumPy Generator, RandomState or SeedSequence",
    )
