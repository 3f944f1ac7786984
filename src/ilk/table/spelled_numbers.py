"""Numbers as people write them: currency, unit or per cent, thousands marks, a decimal comma, brackets for minus."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ilk.errors import shown
from ilk.table.columns import Column

CURRENCY = (
    r"US\$|CA\$|AU\$|NZ\$|HK\$|R\$|A\$|C\$|[$€£¥₹₽₩₪₺฿₴₫]|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|"
    r"PLN|CZK|HUF|RON|BRL|MXN|ZAR|TRY|RUB|KRW|SGD|HKD|Rs\.?|Fr\.|kr\.?|zł"
)
UNIT = r"[%‰]|[\p{L}°µμΩ][\p{L}°µμ²³/%]{0,10}[23]?"
SPACES = "\\s\u00a0\u202f\u2009"
GROUPS = f"{SPACES}'’"
_CELL = (
    f"^(?P<open>\\()?[{SPACES}]*(?P<sign>[+\\-−–]?)[{SPACES}]*(?P<before>(?i:{CURRENCY})?)[{SPACES}]*"
    f"(?P<inner>[+\\-−–]?)[{SPACES}]*(?P<number>[0-9](?:[0-9.,{GROUPS}]*[0-9])?|[.,][0-9]+)"
    f"(?P<power>(?:[eE][+-]?[0-9]+)?)[{SPACES}]*(?P<after>(?:(?i:{CURRENCY})|{UNIT})?)[{SPACES}]*"
    f"(?P<last>[-−]?)(?P<close>\\))?$"
)
_SAME = {"usd": "$", "us$": "$", "eur": "€", "gbp": "£", "inr": "₹", "rs": "₹", "rs.": "₹", "jpy": "¥"}
_IS_CURRENCY = re.compile(CURRENCY, re.IGNORECASE)


def _is_number(decimal: str) -> str:
    """The pattern of digits with this decimal mark; a group of thousands never begins with a zero."""
    other = "," if decimal == "." else r"\."
    mark = r"\." if decimal == "." else ","
    grouped = "|".join(f"[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+" for group in (other, "['’]", f"[{SPACES}]"))
    return f"^(?:(?:[0-9]+|{grouped})(?:{mark}[0-9]+)?|{mark}[0-9]+)$"


_NUMBERS = {decimal: _is_number(decimal) for decimal in (".", ",")}
_THREE = r"^[1-9][0-9]{0,2}[.,][0-9]{3}$"


def _same_unit(unit: str) -> str:
    """What is compared of units: $ and USD, kg and KG, day and days are the same."""
    low = unit.casefold()
    low = _SAME.get(low, low)
    return low[:-1] if len(low) > 2 and low.endswith("s") and low[-2] != "s" else low


@dataclass(frozen=True)
class SpelledNumbers:
    """The parts of the texts that look like numbers: `digits` with their marks, the different units, the share."""

    digits: Column
    units: tuple[str, ...]
    bare: bool
    bare_zeros: bool
    share: float

    @classmethod
    def of(cls, texts: Column) -> SpelledNumbers:
        parts = pc.extract_regex(texts, _CELL)
        there = parts.filter(pc.is_valid(parts))
        if not len(there):
            return cls(there, (), True, True, 0.0)
        before, after = (pc.struct_field(there, side) for side in ("before", "after"))
        units = _joined(before, after)
        found = {str(unit) for unit in pc.unique(units).to_pylist() if unit}
        digits = pc.struct_field(there, "number")
        bare = digits.filter(pc.equal(units, ""))
        zeros = pc.all(pc.equal(bare, "0")).as_py()
        return cls(digits, tuple(sorted(found)), len(bare) > 0, bool(zeros), len(there) / len(texts))

    def marks(self, decimal: str) -> tuple[str, str, str] | str:
        """Decimal mark, unit, and whether the texts decide the mark ("decided"), leave it open ("doubt") or have none
        (""); or why the texts are no numbers of one kind."""
        if len({_same_unit(unit) for unit in self.units}) > 1:
            listed = ", ".join(repr(shown(unit)) for unit in self.units[:5])
            return f"its cells have different units: {listed}"
        unit = min(self.units, key=len, default="")
        if self.bare and unit and not self.bare_zeros and not _IS_CURRENCY.fullmatch(unit):
            return f"some cells have the unit {shown(unit)!r} and others none"
        fits = [mark for mark, pattern in _NUMBERS.items() if _all(self.digits, pattern)]
        if not fits:
            return "its cells differ in their decimal marks"
        if len(fits) == 1:
            return fits[0], unit, "decided"
        open_to_both = _any(self.digits, _THREE)
        mark = decimal if open_to_both and decimal else "."
        return mark, unit, "doubt" if open_to_both and not decimal else ""


def _joined(one: Column, two: Column) -> Column:
    return pc.binary_join_element_wise(one, two, pa.scalar("", one.type))


def _all(texts: Column, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def _any(texts: Column, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def numbers_of_texts(texts: Column, decimal: str, unit: str) -> Column:
    """The numbers that texts say, null where they say none with this decimal mark and unit.

    >>> numbers_of_texts(pa.array(["1.234,5 €", "-2 €", "3 kg"]), ",", "€").to_pylist()
    [1234.5, -2.0, None]
    """
    parts: Any = pc.extract_regex(pc.utf8_trim_whitespace(texts), _CELL)
    part = {field.name: pc.fill_null(pc.struct_field(parts, field.name), "") for field in parts.type}
    digits = part["number"]
    units = _joined(part["before"], part["after"])
    known = [u for u in pc.unique(units).to_pylist() if not u or _same_unit(u) == _same_unit(unit)]
    good = pc.and_(
        pc.match_substring_regex(digits, _NUMBERS[decimal]), pc.is_in(units, pa.array(known, units.type))
    )
    signs = [part[side] for side in ("sign", "inner", "last")]
    brackets = pc.and_(pc.equal(part["open"], "("), pc.equal(part["close"], ")"))
    good = pc.and_(good, pc.equal(pc.equal(part["open"], "("), pc.equal(part["close"], ")")))
    minus = brackets
    for sign in signs:
        minus = pc.or_(minus, pc.is_in(sign, pa.array(["-", "−", "–"], sign.type)))
    bare = pc.replace_substring_regex(digits, f"[{GROUPS}{',' if decimal == '.' else '.'}]", "")
    bare = bare if decimal == "." else pc.replace_substring(bare, ",", ".")
    bare = _joined(bare, part["power"])
    value = pc.if_else(good, bare, pa.scalar(None, bare.type)).cast(pa.float64())
    return pc.if_else(minus, pc.negate(value), value)
