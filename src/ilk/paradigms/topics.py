"""Topics of short texts: TF-IDF and a truncated singular value decomposition, both scikit-learn's, turned (varimax) so
that each topic has few words.

S. Deerwester, S. Dumais, G. Furnas, T. Landauer and R. Harshman (1990), Indexing by latent semantic analysis, Journal
of the American Society for Information Science 41, 391-407. H. F. Kaiser (1958), The varimax criterion for analytic
rotation in factor analysis, Psychometrika 23, 187-200.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ilk.errors import DataError, Option, shown
from ilk.table.block import Array
from ilk.table.words import MOST_WORDS, Topic, words_of

MOST_TOPICS = 4
COMMON = 0.5  # share of the texts from which a word says nothing
LEAST_TEXTS = 3  # that hold a word
TURNS, STILL = 100, 1e-9


def topics_of(texts: Sequence[str], name: str) -> dict[str, Topic]:
    """Topics by what they are called: the column and their strongest words.

    >>> texts = ["late and broken", "broken, refund", "late refund", "great service", "service great"] * 4
    >>> list(topics_of(texts, "notes"))[0].startswith("notes: ")
    True
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    count = TfidfVectorizer(
        analyzer=words_of, sublinear_tf=True, max_df=COMMON, min_df=LEAST_TEXTS, max_features=MOST_WORDS
    )
    try:
        table = count.fit_transform(texts)
    except ValueError:  # scikit-learn's word for "nothing is left"
        raise _no_words(name) from None
    words = [str(word) for word in count.get_feature_names_out()]
    n_topics = min(MOST_TOPICS, len(words) - 1, len(texts) - 1)
    if n_topics < 1:
        raise _no_words(name)
    found = TruncatedSVD(n_topics, algorithm="arpack", random_state=0).fit(table)
    weights = _turned(found.components_.T)
    made: dict[str, Topic] = {}
    for column in weights.T:
        column = column if column[np.abs(column).argmax()] > 0 else -column
        topic = Topic(tuple(words), tuple(map(float, count.idf_)), tuple(map(float, column)))
        made.setdefault(f"{name}: {' / '.join(filter(None, topic.poles))}", topic)
    return made


def _no_words(name: str) -> DataError:
    option = Option("types", {shown(name): "text"})
    what = f"{option}: no words come again in {LEAST_TEXTS} cells or more, and in less than half of them"
    return DataError("no-words", what, do="Leave the column out, or give longer texts", options=[option])


def _turned(loadings: Array) -> Array:
    """Loadings (words, topics) turned so that the variance of their squares is largest."""
    turn = np.eye(loadings.shape[1])
    reached = 0.0
    for _ in range(TURNS):
        now = loadings @ turn
        target = loadings.T @ (now**3 - now * (now**2).mean(axis=0))
        left, sizes, right = np.linalg.svd(target)
        turn = left @ right
        if sizes.sum() <= reached * (1 + STILL):
            break
        reached = float(sizes.sum())
    return np.asarray(loadings @ turn)
