"""The words of the report, each explained in a sentence: the end of block 9."""

from __future__ import annotations

from ilk.report.html import Html, fold, tag
from ilk.report.view import View

PAGE = "docs/glossary.md"  # of the documentation, which has more of them
WORDS = {
    "group": "Rows that belong together (a cluster). Letters are in order of size.",
    "component": "One part of the mixture model. Components without a density dip between them form one group.",
    "segment": "A part of a table without clear groups: an arbitrary cut, given for convenience.",
    "separation": "The dip in density between two groups: Hartigan's dip statistic times the square root of the "
    "number of rows, on the line that separates them best. 0 is no dip.",
    "stability": "Mean Jaccard index between a group and the group most like it when the whole analysis is "
    "repeated on bootstrap resamples of the rows. 1: always the same rows.",
    "mean prob.": "Mean probability, over the rows of a group, that they belong to it.",
    "verdict": "Solid, fair or weak, from separation, stability and ICL, each compared with its threshold; weak "
    "too where a group dissolves (stability below 0.50). No clear groups: nothing separates the rows. Not tested: "
    "stability was not measured, or no other number of groups was tried.",
    "BIC, ICL": "Criteria that weigh fit against the number of parameters; lower is better. ICL also penalises "
    "overlap between components.",
    "silhouette": "How much nearer a row is to its own group than to the next, from -1 to 1.",
    "relevance": "How far the groups differ from the whole table in a column: Kullback-Leibler divergence in nats "
    "per row (1 nat = 1.44 bits).",
    "novelty": "How unusual a row is in its group: 0 at the centre, 1 for more unusual than any row of the fit.",
    "assorted": "A mixed-type mixture with feature selection per group: a group has a distribution of its own only "
    "in the columns that distinguish it.",
}


def render(view: View) -> Html:
    """The words as a fold; `segment` and `assorted` only where the report has them."""
    unused = {"segment"} if view.clear else set()
    unused |= set() if "assorted" in view.summary["search"]["methods"] else {"assorted"}
    entries = [[tag("dt", word), tag("dd", text)] for word, text in WORDS.items() if word not in unused]
    return fold(
        "Words used in this report",
        tag("dl", entries, class_="facts"),
        tag("p", f"More in the documentation of ilk: {PAGE}.", class_="note"),
    )
