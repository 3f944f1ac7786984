"""The bill of materials of an installed ilk, as CycloneDX 1.5: `python tools/sbom.py > dist/ilk.cdx.json`."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution


def needed(name: str, found: dict[str, Distribution]) -> None:
    """A package and all that it needs without extras, each once."""
    try:
        own = distribution(name)
    except PackageNotFoundError:
        return
    key = own.name.lower().replace("_", "-")
    if key in found:
        return
    found[key] = own
    for line in own.requires or ():
        requirement, _, marker = line.partition(";")
        if "extra" not in marker:
            needed(re.split(r"[\s<>=!~\[(]", requirement.strip(), maxsplit=1)[0], found)


def bill(root: str) -> dict[str, object]:
    """The document."""
    found: dict[str, Distribution] = {}
    needed(root, found)
    parts = [_component(name, own) for name, own in sorted(found.items())]
    whole = next(part for part in parts if part["name"] == root)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {**whole, "type": "application"}},
        "components": [part for part in parts if part is not whole],
    }


def _component(name: str, own: Distribution) -> dict[str, object]:
    licence = own.metadata.get("License-Expression")
    made: dict[str, object] = {
        "type": "library",
        "name": name,
        "version": own.version,
        "purl": f"pkg:pypi/{name}@{own.version}",
    }
    return made | ({"licenses": [{"expression": licence}]} if licence else {})


if __name__ == "__main__":
    json.dump(bill("ilk"), sys.stdout, indent=1)
    print()
