"""Reading a model back: a file is refused unless every field of it makes sense. Nothing in it is run."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ilk import store
from ilk.errors import ModelFileError, UsageError, shown
from ilk.families.assorted import Clusters
from ilk.families.blended import Blend
from ilk.families.centroid import Centroids
from ilk.families.covariance import Covariance
from ilk.families.dirichlet import Posteriors
from ilk.families.gaussian import Mixture
from ilk.families.unruled import UNRULED
from ilk.fitting.levels import SOFT_LEVELS, Levels
from ilk.fitting.model import KIND, N_QUANTILES, Model
from ilk.fitting.placing import ASSORTED, PROCESS, Params, family_of, is_soft, takes_codes
from ilk.fitting.scene import CELLS, Treat
from ilk.paradigms.bottleneck import Bottleneck
from ilk.table.block import Array, Encoding
from ilk.table.schema import Schema
from ilk.table.treat import Plan


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model back; a file that is not ours, damaged or senseless is refused. Nothing in it is run.

    Parameters
    ----------
    path : path of a file that `Result.save` or `ilk fit` wrote
    """
    packed = store.load(path)
    where = shown(os.fspath(path), 200)
    if packed.kind != KIND:
        raise ModelFileError(
            "model-type",
            f"the file holds a {shown(packed.kind)}, not a {KIND}",
            where=where,
            do="Give a file that Result.save or ilk fit wrote",
        )
    return _Checked(store.restore(packed.document, packed.arrays), where).model()


class _Checked:
    """Semantic checks of a file that is well formed: every field that does not fit is named."""

    def __init__(self, tree: dict[str, Any], where: str) -> None:
        self.tree, self.where = tree, where

    def model(self) -> Model:
        tree = self.tree
        family = self.text("family")
        try:
            known = family in ASSORTED or family_of(family) is not None
        except UsageError:  # a structure that does not exist
            known = False
        self.need(known, "family", f"{shown(family)} is not known to this version")
        schema = Schema.from_dict(tree.get("schema"))
        treat = self.treatment(schema, family) if family in ASSORTED else None
        binary = [c for c in schema.coded if c.kind == "binary" and len(c.levels or ()) == 2]
        n_columns = len(schema.numeric) + len(binary)
        any_kind = treat is not None or takes_codes(family)
        n_columns = len(schema.numeric) if any_kind else n_columns
        ruled = family != UNRULED.name
        fits = len(schema.used) > 0 and (not ruled or any_kind or n_columns == len(schema.used))
        self.need(fits, "schema", "its columns do not fit the method")
        letters, names = self.texts("letters"), self.texts("names")
        k = len(letters)
        self.need(
            0 < k == len(names) and len(set(letters)) == k,
            "letters",
            "marks and names of the groups do not fit",
        )
        group_of = self.groups(k)
        params: Params = None
        parameters = self.section("parameters")
        if treat is not None:
            make_treated = self.clusters if treat.numbers == CELLS else self.blend
            params = make_treated(parameters, len(group_of), treat.plan)
        elif family == PROCESS.name:
            params = self.posteriors(len(group_of), schema)
        elif takes_codes(family):
            params = self.levels(len(group_of), schema, family != SOFT_LEVELS.name)
        elif ruled:
            make = self.mixture if is_soft(family) else self.centroids
            params = make(parameters, len(group_of), n_columns)
        sizes = self.array(tree, "sizes", (k,), least=0.0)
        self.need(bool(sizes.sum() > 0), "sizes", "no group has a row")
        quantiles = self.array(tree, "quantiles", (k, N_QUANTILES))
        self.need(bool((np.diff(quantiles, axis=1) >= 0).all()), "quantiles", "they do not rise")
        return Model(
            self.text("method"),
            family,
            self.section("options"),
            schema,
            self.encoding(n_columns if ruled else self.encoded_columns()),
            params,
            group_of,
            letters,
            names,
            sizes,
            quantiles,
            self.section("training"),
            treat,
        )

    def treatment(self, schema: Schema, family: str) -> Treat:
        """What is made of the columns; every column it names must be one of the table, its block that of the family."""
        try:
            treat = Treat.from_dict(self.section("treatment"))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            treat = None
        self.need(treat is not None, "treatment", "it is not complete")
        assert treat is not None
        n_numbers, n_coded = len(schema.numeric), len(schema.coded)
        sources = [(n.source, n_numbers) for n in treat.plan.numbers]
        sources += [(c.source, n_coded if c.kind == "levels" else n_numbers) for c in treat.plan.categories]
        good = bool(sources) and all(0 <= source < count for source, count in sources)
        self.need(good, "treatment", "its columns are not those of the table")
        self.need(treat.family.name == family, "treatment", "its block of numbers is not that of the family")
        return treat

    def blend(self, parameters: dict[str, Any], k: int, plan: Plan) -> Blend:
        numbers, levels = parameters.get("numbers"), parameters.get("levels")
        self.need(isinstance(numbers, dict) and isinstance(levels, dict), "parameters", "a part is not there")
        assert isinstance(numbers, dict)
        assert isinstance(levels, dict)
        shares = {**levels, "mixing": numbers.get("mixing")}  # the shares are those of the numbers
        clusters = self.clusters(shares, k, replace(plan, numbers=()))
        mixture = self.mixture(numbers, k, len(plan.numbers))
        return Blend(mixture, replace(clusters, mixing=np.ones(k)))

    def clusters(self, parameters: dict[str, Any], k: int, plan: Plan) -> Clusters:
        n_numbers, n_levels = len(plan.numbers), int(plan.level_start[-1])
        mixing = self.array(parameters, "mixing", (k,), least=0.0)
        self.need(abs(float(mixing.sum()) - 1) < 1e-6, "mixing", "the shares do not add up to 1")
        variance = self.array(parameters, "variance", (k, n_numbers), least=0.0)
        self.need(bool((variance > 0).all()), "variance", "one of them is 0")
        group = parameters.get("group")
        shape = (k, len(plan.names))
        good = isinstance(group, np.ndarray) and group.dtype.kind == "i" and group.shape == shape
        self.need(good, "group", f"it is not an array of {shape[0]}x{shape[1]} whole numbers")
        assert isinstance(group, np.ndarray)
        self.need(bool(((group >= 0) & (group < k)).all()), "group", "it names no component")
        return Clusters(
            mixing,
            self.array(parameters, "mean", (k, n_numbers)),
            variance,
            self.array(parameters, "log_level", (k, n_levels)),
            group,
        )

    def posteriors(self, k: int, schema: Schema) -> Posteriors:
        parameters, d = self.section("parameters"), len(schema.numeric)
        n_levels = int(schema.level_start[-1])
        shapes = {
            "stick": (k, 2),
            "strength": (k, d),
            "shape": (k, d),
            "rate": (k, d),
            "level": (k, n_levels),
        }
        positive = {name: self.array(parameters, name, shape, least=0.0) for name, shape in shapes.items()}
        for name in ("stick", "strength", "shape", "rate"):
            self.need(bool((positive[name] > 0).all()), name, "one of them is 0")
        return Posteriors(
            self.array(parameters, "mixing", (k,), least=0.0),
            self.array(parameters, "mean", (k, d)),
            self.array(parameters, "log_share", (k,)),
            *positive.values(),
        )

    def levels(self, k: int, schema: Schema, deterministic: bool) -> Levels:
        parameters = self.section("parameters")
        beta, ends = parameters.get("beta"), parameters.get("knot_ends")
        self.need(
            isinstance(beta, float) and math.isfinite(beta) and beta >= 0, "beta", "it is no number from 0"
        )
        whole = isinstance(ends, list) and all(type(end) is int for end in ends)
        edges = [0, *ends] if isinstance(ends, list) and whole else [0]
        rises = whole and all(a < b for a, b in pairwise(edges)) and len(edges) == len(schema.numeric) + 1
        self.need(rises, "knot_ends", "they are not those of the numeric columns")
        knots = self.array(parameters, "knots", (edges[-1],))
        each = tuple(knots[a:b] for a, b in pairwise(edges))
        self.need(all(bool((np.diff(one) > 0).all()) for one in each), "knots", "they do not rise")
        share = self.array(parameters, "share", (k,), least=0.0)
        self.need(bool((share > 0).all()), "share", "one of them is 0")
        given = self.array(parameters, "given", (k, edges[-1] + int(schema.level_start[-1])), least=0.0)
        return Levels(Bottleneck(share, given, float(beta or 0.0), deterministic), each, schema.level_start)

    def groups(self, k: int) -> tuple[int, ...]:
        """The group of each component; files from before components were merged have one group each."""
        value = self.tree.get("groups", list(range(k)))
        whole = isinstance(value, list) and all(type(group) is int for group in value)
        self.need(whole and set(value) == set(range(k)), "groups", "components and groups do not fit")
        return tuple(value)

    def centroids(self, parameters: dict[str, Any], k: int, n_columns: int) -> Centroids:
        weight = self.array(parameters, "weight", (k,), least=0.0)
        return Centroids(self.array(parameters, "centre", (k, n_columns)), weight)

    def mixture(self, parameters: dict[str, Any], k: int, n_columns: int) -> Mixture:
        mixing = self.array(parameters, "mixing", (k,), least=0.0)
        self.need(abs(float(mixing.sum()) - 1) < 1e-6, "mixing", "the shares do not add up to 1")
        mean = self.array(parameters, "mean", (k, n_columns))
        log_variance = self.array(parameters, "log_variance", (k, n_columns))
        axes = parameters.get("axes")
        if axes is not None:
            common = isinstance(axes, np.ndarray) and axes.ndim == 2
            shape = (n_columns, n_columns) if common else (k, n_columns, n_columns)
            axes = self.array(parameters, "axes", shape)
            product = axes.swapaxes(-1, -2) @ axes
            self.need(
                bool(np.allclose(product, np.eye(n_columns), atol=1e-6)), "axes", "they are not orthogonal"
            )
        return Mixture(mixing, mean, Covariance(log_variance, axes))

    def encoded_columns(self) -> int:
        """How many columns were encoded, where no parameters say so."""
        centre = self.section("encoding").get("centre")
        return len(centre) if isinstance(centre, np.ndarray) else 0

    def encoding(self, n_columns: int) -> Encoding:
        plain = self.section("encoding")
        power = plain.get("power")
        good = isinstance(power, float) and math.isfinite(power) and power > 0 and math.frexp(power)[0] == 0.5
        self.need(good, "encoding power", "it is not a power of two")
        factor = None
        if plain.get("factor") is not None:
            factor = self.array(plain, "factor", (n_columns,), least=0.0)
        return Encoding(float(power or 1.0), self.array(plain, "centre", (n_columns,)), factor)

    def need(self, good: bool, name: str, why: str) -> None:
        if not good:
            raise ModelFileError(
                "model-content",
                f"the entry {name} of the model is not valid: {why}",
                where=self.where,
                do="Fit and save the model again",
            )

    def section(self, name: str) -> dict[str, Any]:
        value = self.tree.get(name)
        self.need(isinstance(value, dict), name, "it is not there")
        return dict(value or {})

    def text(self, name: str) -> str:
        value = self.tree.get(name)
        self.need(isinstance(value, str), name, "it is not text")
        return str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.tree.get(name)
        self.need(
            isinstance(value, list) and all(isinstance(v, str) for v in value),
            name,
            "it is not a list of text",
        )
        return tuple(value or ())

    def array(
        self, tree: Mapping[str, Any], name: str, shape: tuple[int, ...], least: float = -math.inf
    ) -> Array:
        value = tree.get(name)
        good = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.shape == shape
        self.need(good, name, f"it is not an array of {'x'.join(map(str, shape))} numbers")
        assert isinstance(value, np.ndarray)
        self.need(
            bool(np.isfinite(value).all() and (value >= least).all()),
            name,
            "it holds NaN, infinity or a negative number",
        )
        return value
