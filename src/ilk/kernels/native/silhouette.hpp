// Sums of Euclidean distances from each row to every cluster of a sorted table, by differences.
#pragma once

#include "vectors.hpp"

namespace ilk {
namespace {

constexpr int many = 4;  // table rows at a time: they share the loads of the packed rows
constexpr int silhouette_vectors = vector_registers == 32 ? 3 : 2;
constexpr Index silhouette_rows = silhouette_vectors * lanes<double>;

// Add the distances of a tile of rows, [column][row], to `count` consecutive table rows.
template <int count>
ILK_INLINE void add_distances(const double* tile, const double* table, Index columns, const double* weight,
                              Vector<double> (&total)[silhouette_vectors]) {
    using V = Vector<double>;
    V squared[count][silhouette_vectors] = {};
    for (Index column = 0; column < columns; ++column, tile += silhouette_rows) {
        V x[silhouette_vectors];
#pragma GCC unroll 3
        for (int part = 0; part < silhouette_vectors; ++part) x[part] = load<V>(tile + part * lanes<double>);
#pragma GCC unroll 4
        for (int row = 0; row < count; ++row) {
            const V y = everywhere<V>(table[row * columns + column]);
#pragma GCC unroll 3
            for (int part = 0; part < silhouette_vectors; ++part) {
                const V difference = x[part] - y;
                squared[row][part] = multiply_add(difference, difference, squared[row][part]);
            }
        }
    }
#pragma GCC unroll 4
    for (int row = 0; row < count; ++row)
#pragma GCC unroll 3
        for (int part = 0; part < silhouette_vectors; ++part) {
            const V distance = square_root(squared[row][part]);
            total[part] += weight ? distance * weight[row] : distance;
        }
}

inline void silhouette_sums(const double* rows, Index n_rows, const SortedTable& table, double* sums) {
    Scratch<double> tile(silhouette_rows * table.columns);
    for (Index first = 0; first < n_rows; first += silhouette_rows) {
        const Index count = n_rows - first < silhouette_rows ? n_rows - first : silhouette_rows;
        for (Index row = 0; row < count; ++row)
            for (Index column = 0; column < table.columns; ++column)
                tile[column * silhouette_rows + row] = rows[(first + row) * table.columns + column];

        for (Index cluster = 0; cluster < table.clusters; ++cluster) {
            Vector<double> total[silhouette_vectors] = {};
            const Index end = table.starts[cluster + 1];
            Index row = table.starts[cluster];
            const auto at = [&](Index index) { return table.values + index * table.columns; };
            const auto weight_at = [&](Index index) { return table.weight ? table.weight + index : nullptr; };
            for (; row + many <= end; row += many)
                add_distances<many>(tile, at(row), table.columns, weight_at(row), total);
            for (; row < end; ++row) add_distances<1>(tile, at(row), table.columns, weight_at(row), total);
            for (Index index = 0; index < count; ++index)
                sums[(first + index) * table.clusters + cluster] = total[index / lanes<double>][index % lanes<double>];
        }
    }
}

}  // namespace
}  // namespace ilk
