"""Files: every write goes through `atomic`, every model through `container`."""

from ilk.store.atomic import write_atomically
from ilk.store.container import Contents, load, pack, save, unpack
from ilk.store.tree import flatten, restore

__all__ = ["Contents", "flatten", "load", "pack", "restore", "save", "unpack", "write_atomically"]
