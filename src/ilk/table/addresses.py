"""Addresses of servers: what may be told of them, and what may not."""

from __future__ import annotations

import re
from urllib.parse import unquote

from ilk.errors import shown

POSTGRES = ("postgresql://", "postgres://")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/{1,2}|(?:https?|s3|gs|file|ftp|data|az|hf):")


def is_address(text: str) -> bool:
    """Whether a text is an address rather than the name of a file."""
    return _ADDRESS.match(text) is not None


def place_of(source: str) -> str:
    """A source by what may be told of it: of an address scheme, host, port and path, never who asks and how.

    >>> place_of("postgresql://me:secret@db.example.org:5433/shop?password=secret")
    'postgresql://db.example.org:5433/shop'
    >>> place_of("shop.csv")
    'shop.csv'
    """
    scheme, sign, rest = source.partition("://")
    if not sign or not is_address(source):
        return source
    bare, *options = re.split(r"[?#]", rest, maxsplit=1)
    if options and "@" in options[0]:  # a password with a question mark, or one among the options: who knows
        return f"{scheme}://"
    return shown(f"{scheme}://{bare.rpartition('@')[2]}", 120)


def without_secrets(text: str, address: str) -> str:
    """What a server says of itself, without what was said to it: user, password, options, and parts of them.

    >>> without_secrets('no port "ret"; no user "me"', "postgresql://me:ret@host/db")
    'no port "***"; no user "***"'
    """
    place = place_of(address).partition("://")[2]
    rest = address.partition("://")[2]
    secret = rest.replace(place, "") if place else rest
    for part in sorted({address, rest, secret, *re.split(r"[:@?&=/]", secret)}, key=len, reverse=True):
        for spelled in (part, unquote(part)):
            if len(spelled) > 3:  # shorter ones are in other words, too; in quotes they are hidden below
                text = text.replace(spelled, "***")
    hidden = {secret, unquote(secret)}
    return re.sub(r'"([^"]+)"', lambda m: '"***"' if any(m[1] in one for one in hidden) else m[0], text)
