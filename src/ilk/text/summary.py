"""The terminal: a summary as lines of text, the same facts in the same order as the page.

Pure text in, pure text out; nothing heavy is imported here, and everything printed comes from the summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilk.errors import quoted, shown
from ilk.methods import GIVEN, METHODS
from ilk.report.figures import (
    count_text,
    differs,
    few_cells,
    kilobytes,
    level_text,
    plural,
    score_text,
    seconds_text,
    share_text,
    tenths_text,
    told_value,
    value_text,
    varies_less,
)
from ilk.text.layout import Piece, Surface, Word, cells, line, words_of, wrap

MOST_GROUPS = 12
MOST_LEFT_OUT = 5
FACTS_SHOWN = 3
WIDE_TABLE = 84  # characters from which the table of groups has its long titles
NAME_CHARACTERS = 30
ARROWS = {"up": "▲", "down": "▼", "same": "≈"}
GROUP_COLOURS = ("blue", "red", "green", "magenta", "yellow", "cyan")
VERDICT_COLOURS = {
    "solid": "green",
    "fair": "yellow",
    "weak": "red",
    "no clear groups": "red",
}  # others: yellow
USED_KINDS = ("numeric", "count", "binary", "ordinal", "categorical")


def render(summary: Mapping[str, Any], surface: Surface) -> str:
    """The whole summary, as printed at the end of `ilk fit`."""
    lines = [
        *_head(summary, surface),
        *_columns(summary, surface),
        *_tried(summary, surface),
        *_chosen(summary, surface),
        *_trust(summary, surface),
        *_matched(summary, surface),
    ]
    if len(summary["groups"]) > 1:
        lines += ["", *_groups(summary, surface), ""]
    lines += [*_cautions(summary["warnings"], surface), *_truth(summary, surface), *_wrote(summary, surface)]
    while lines and not lines[-1]:
        lines.pop()
    return surface.fit("\n".join(lines))


def name_text(text: str) -> str:
    return shown(text, NAME_CHARACTERS)


def _listing(names: Sequence[str], most: int = MOST_LEFT_OUT) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _head(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    table = summary["table"]
    used = [c for c in table["columns"] if c["role"] == "used"]
    kinds = [(sum(c["type"] == kind for c in used), kind) for kind in USED_KINDS]
    text = f"{plural(table['rows'], 'row')}, {plural(len(used), 'column')} used"
    text += f" ({', '.join(f'{n} {kind}' for n, kind in kinds if n)})"
    described = [c for c in table["columns"] if c["role"] == "described"]
    if described:
        text += f", {len(described)} described"
    left_out = [c for c in table["columns"] if c["role"] == "left out"]
    if left_out:
        text += f", {len(left_out)} left out"
    aside = [name_text(c["name"]) for c in table["columns"] if c["role"] in ("truth", "id", "weight")]
    if aside:
        text += f", {len(aside)} not used for fitting ({_listing(aside)})"
    return line(shown(summary["source"], 40), [(text, "")], surface, "bold")


def _columns(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    table, lines = summary["table"], []
    left_out = [
        f"{name_text(c['name'])} ({shown(c['reason'], 60)})"
        for c in table["columns"]
        if c["role"] == "left out"
    ]
    if left_out:
        lines += line("left out", [(_listing(left_out), "")], surface)
    described = [name_text(c["name"]) for c in table["columns"] if c["role"] == "described"]
    if described:
        method = summary["chosen"]["method"]
        lines += line(
            "described", [(f"{_listing(described)}: shown for the groups, not used by {method}", "")], surface
        )
    missing = table["missing"]
    if missing["worst"]:
        worst = missing["worst"]
        text = f"{_percent(missing['share'])} of values, most in {name_text(worst['column'])}"
        text += f" ({_percent(worst['share'])})"
        lines += line("missing", [(text, "")], surface)
    for part in table["ledger"]["set_aside"]:
        lines += line("set aside", [(f"{plural(part['count'], part['unit'])} {part['reason']}", "")], surface)
    for part in table["ledger"]["skipped"]:
        lines += line("skipped", [(f"{plural(part['count'], part['unit'])}: {part['reason']}", "")], surface)
    return lines + line("scale", [(_scaled(summary), "")], surface)


def _scaled(summary: Mapping[str, Any]) -> str:
    """What was made of the columns before they were compared."""
    table = summary["table"]
    if table.get("compared"):
        return str(table["compared"])
    if table["treatment"]:
        alike: dict[str, list[str]] = {}
        for name, words in table["treatment"].items():
            if _telling(words):
                alike.setdefault(words, []).append(name_text(name))
        changed = [f"{', '.join(names)} {shown(words, 80)}" for words, names in alike.items()]
        rest = "others not rescaled" if changed else "numbers not rescaled, categories as they are"
        return "; ".join([*changed[:MOST_LEFT_OUT], rest])
    binary = any(c["type"] == "binary" and c["role"] == "used" for c in table["columns"])
    scaled = (
        "standardised: each column in standard deviations, of the table or within groups"
        if summary["options"]["scale"]
        else "columns not rescaled"
    )
    return scaled + (", columns of two categories as 0 and 1" if binary else "")


def _telling(words: str) -> bool:
    """Whether a column was taken for something else than it looks like."""
    return words != "as it is" and not words.endswith(" categories")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%" if 0.0005 <= share < 0.0995 else share_text(share)


def _tried(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    found = summary["search"]
    if found["methods"] == [GIVEN]:
        return []
    least, most = found["k_least"], found["k_most"]
    structures = plural(found["structures"], "covariance structure")
    known = {name: METHODS[name] for name in found["methods"] if name in METHODS}
    words = {name: method.tried.format(structures=structures) for name, method in known.items()}
    names = [words.get(method) or method for method in found["methods"]]
    text = f"{', '.join(names)}, K {least if least == most else f'{least}-{most}'}"
    most_starts = plural(found["starts"], "start") + (" each" if found["starts"] > 1 else "")
    if [known[name].search if name in known else None for name in found["methods"]] == ["growth"]:
        text += ", components split and merged"
    else:
        text += f", {'up to ' if found['structures'] else ''}{most_starts}"
    if found["rows"] < summary["table"]["rows_used"]:
        text += f", on a sample of {plural(found['rows'], 'row')}"
    return line("tried", [(text, ""), ("  " + seconds_text(found["seconds"]), "dim")], surface)


def _chosen(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    chosen = summary["chosen"]
    merged = f"{plural(chosen['components'], 'component')} -> " if chosen["components"] > chosen["k"] else ""
    asked = " as asked" if chosen["as_asked"] else ""
    model = " ".join(filter(None, (chosen["method"], chosen["structure"])))
    pieces: list[Piece] = [(f"{model}, {merged}{plural(chosen['k'], 'group')}{asked}", "bold")]
    if chosen["bic"] is not None:
        told = chosen["bic"] if chosen.get("bic_all_rows") is None else chosen["bic_all_rows"]
        sampled = (
            chosen.get("bic_all_rows") is None and summary["search"]["rows"] < summary["table"]["rows_used"]
        )
        on = f" on a sample of {plural(summary['search']['rows'], 'row')}" if sampled else ""
        pieces.append((f"  BIC {value_text(told, 1)}{on}", ""))
        rival = chosen["runner_up"]
        has_rival = rival and (rival["bic_difference"] or -1.0) >= 0
        pieces.append(("(lower is better)" + "," * bool(has_rival), "dim"))
        if has_rival:
            structure = f" {rival['structure']}" if rival["structure"] else ""
            pieces.append(
                (f"next best: K={rival['k']}{structure}, BIC +{value_text(rival['bic_difference'], 1)}", "")
            )
    return line("chosen", pieces, surface)


def _trust(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    verdict = summary["verdict"]
    word, said = verdict["word"], shown(verdict["sentence"], 500)
    return line("trust", [(f"{word}:", f"bold {VERDICT_COLOURS.get(word, 'yellow')}"), (said, "")], surface)


def _matched(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    """Whose letters the groups have."""
    found = summary.get("matching")
    if not found:
        return []
    parts = (
        [f"{_listing([one['letter'] for one in found['kept']], MOST_GROUPS)} as before"]
        if found["kept"]
        else []
    )
    parts += [f"{_listing(found[word], MOST_GROUPS)} {word}" for word in ("new", "gone") if found[word]]
    earlier = summary["options"]["match_to"]
    to = "the run before" if earlier is None else shown(earlier, 60)
    return line("matched", [(f"to {to}: {'; '.join(parts)}", "")], surface)


def _groups(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    groups = summary["groups"]
    shown_groups = groups[:MOST_GROUPS]
    measure = next((m for m in ("probability", "silhouette") if any(g[m] is not None for g in groups)), None)
    mark = max(5, *(len(g["letter"]) for g in shown_groups))
    rows = max(5, *(cells(count_text(g["rows"])) for g in shown_groups))
    wide = surface.columns >= WIDE_TABLE
    title = ("mean prob." if wide else "prob.") if measure == "probability" else measure
    head = f"  {'group':<{mark}}  {'rows':>{rows}}   share" + (f"  {title}" if title else "")
    stable = any(g["stability"] is not None for g in groups)
    head += "  stability" if stable else ""
    lines = [
        surface.paint(f"{head}   {'what sets it apart (whole table)' if wide else 'what differs'}", "dim")
    ]
    for number, group in enumerate(shown_groups):
        colour = f"bold {GROUP_COLOURS[number]}" if number < len(GROUP_COLOURS) else "bold"
        count = count_text(group["rows"])
        start = "  " + surface.paint(f"{group['letter']:<{mark}}", colour)
        start += f"  {' ' * (rows - cells(count))}{count}  {tenths_text(group['share']):>6}"
        start += f"  {score_text(group[measure]):>{len(title)}}" if measure and title else ""
        start += f"  {score_text(group['stability']):>9}" if stable else ""
        told = group if len(groups) > 2 else {**group, "unlike": None}  # unlike the other is unlike the table
        words = _apart(told, surface, summary.get("names", {}))
        lines += wrap(start + "   ", len(head) + 3, words, len(head) + 3, surface)
    if len(groups) > MOST_GROUPS:
        lines.append(surface.paint(f"  and {len(groups) - MOST_GROUPS} more, in summary.json", "dim"))
    if summary["options"]["weight"] is not None:
        lines.append(
            surface.paint(f"  shares are by weight ({name_text(summary['options']['weight'])})", "dim")
        )
    return lines


def _apart(group: Mapping[str, Any], surface: Surface, names: Mapping[str, str]) -> list[Word]:
    """The name that somebody gave, then what differs most: from the table, and from the group most like it."""
    given = words_of([(f"{shown(group['name'], 60)}:", "bold")]) if group["letter"] in names else []
    told = _told(group, FACTS_SHOWN if surface.columns > 80 else 2)
    if not told:
        return given + words_of([(_otherwise(group), "dim")])
    return given + [[*pieces, ("·", "dim")] for pieces in told[:-1]] + [told[-1]]


def _told(group: Mapping[str, Any], most: int) -> list[list[Piece]]:
    """A pair of columns where it takes one, the first fact, one that the group most like it lacks, further facts."""
    pair, unlike = group.get("pair"), group.get("unlike") or {"group": "", "facts": ()}
    telling = [fact for fact in group["facts"] if differs(fact)]
    made: list[list[Piece]] = [[(shown(pair["words"], 60), "")]] if pair else []
    made += [fact_pieces(fact) for fact in telling[:1]]
    known = {fact["column"] for fact in telling[:1]}
    apart = next((fact for fact in unlike["facts"] if fact["column"] not in known), None)
    if apart is not None:
        made.append([(f"unlike {unlike['group']}:", "dim"), *fact_pieces(apart, unlike["group"])])
        known.add(apart["column"])
    return [*made, *(fact_pieces(fact) for fact in telling[1:] if fact["column"] not in known)][:most]


def _otherwise(group: Mapping[str, Any]) -> str:
    """What is said of a group whose means and shares are those of the table."""
    closer = [name_text(fact["column"]) for fact in group["facts"] if varies_less(fact)]
    return f"varies less in {_listing(closer, 3)}" if closer else "no clear difference from the whole table"


def fact_pieces(fact: Mapping[str, Any], other: str = "") -> list[Piece]:
    """A column of a group beside the whole table, `spend 412 (180) ▲`, or beside a group, `spend 412 (B 180) ▲`."""
    if fact["type"] == "number":
        value, whole = told_value(fact), told_value(fact, "whole")
        name = name_text(fact["column"])
    else:
        value, whole = (share_text(fact[key]) for key in ("value", "whole"))
        name = level_text(name_text(fact["column"]), name_text(str(fact["category"])))
    few = few_cells(fact)
    rests = [(few, "yellow")] if few else []
    return [
        (f"{name} {value}", ""),
        (f"({other}{' ' if other else ''}{whole})", "dim"),
        (ARROWS[fact["sign"]], ""),
        *rests,
    ]


def _cautions(warnings: Sequence[Mapping[str, Any]], surface: Surface) -> list[str]:
    lines: list[str] = []
    # Rows set aside have a line of their own.
    for number, warning in enumerate(w for w in warnings if w["code"] != "empty-rows"):
        label = "" if number else "caution"
        text = surface.say(warning["text"], warning.get("options", ()))
        pieces = [(warning["code"], "yellow"), (" " + shown(text, 400), "")]
        lines += line(label, pieces, surface)
    return lines


def _truth(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    truth = summary.get("truth")
    if not truth:
        return []
    figures = ("purity", "purity"), ("ARI", "ari"), ("NMI", "nmi")
    base = truth.get("base_rate")
    beside = {"purity": "" if base is None else f" (largest class {score_text(base)})"}
    text = ", ".join(f"{word} {score_text(truth[name])}{beside.get(name, '')}" for word, name in figures)
    text += f" against {name_text(truth['column'])}"
    return line("truth", [(text + (f": {truth['finding']}" if truth["finding"] else ""), "")], surface)


def _wrote(summary: Mapping[str, Any], surface: Surface) -> list[str]:
    folder = summary.get("folder")
    if not folder:
        return []
    name = shown(folder, 80)
    sizes = summary.get("sizes", {})
    files = [f"{file} ({kilobytes(sizes[file])})" if file in sizes else file for file in summary["files"]]
    lines = line("wrote", [(f"{name}/ {' '.join(files)}", "")], surface)
    chosen = summary["chosen"]
    commands = []
    if chosen["k"] > 1:
        commands.append(f"ilk explain {quoted(name)} {summary['groups'][-1]['letter']}")
    if chosen.get("rule", True):
        commands.append(f"ilk assign {quoted(name)} new.csv")
    return lines + line("next", [("   ".join(commands), "bold")], surface) if commands else lines


def columns_table(entries: Sequence[Mapping[str, str]], surface: Surface) -> str:
    """What `ilk columns` prints: one line per column."""
    wide = min(NAME_CHARACTERS, max([6, *(cells(e["column"]) for e in entries)]))
    heads = ("column", "type", "missing")
    lines = [surface.paint(f"{heads[0]:<{wide}}  {heads[1]:<11}  {heads[2]:>7}  why", "dim")]
    for entry in entries:
        name = shown(entry["column"], NAME_CHARACTERS)
        start = surface.paint(name, "bold") + " " * max(0, wide - cells(name))
        style = "dim" if entry["type"] == "left out" else ""
        why = entry["reason"] + (f": {entry['categories']}" if entry["categories"] else "")
        start += "  " + surface.paint(f"{entry['type']:<11}", style) + f"  {entry['missing']:>7}  "
        lines += wrap(start, wide + 24, words_of([(why, style)]), wide + 24, surface)
    return surface.fit("\n".join(lines))
