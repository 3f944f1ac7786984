// Axes common to all components: one sweep of pairwise rotations (EVE, VVE), and the alternation of
// proportional covariances (VEE). The meaning, and the reasons, are in families/orientation.py.
#pragma once

#include "covariance_profile.hpp"

namespace ilk {
namespace {
namespace quick {

// Scatter along common axes (K, d): the diagonals of axes' scatter axes. Room: d d.
inline void scatter_along(const double* scatter, const double* axes, Index k, Index d, double* along, Room room) {
    double* turned = room.take(d * d);
    for (Index c = 0; c < k; ++c) {
        double* __restrict__ own = along + c * d;
        multiply(scatter + c * d * d, axes, d, turned);
        for (Index j = 0; j < d; ++j) own[j] = 0;
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j < d; ++j) own[j] += turned[i * d + j] * axes[i * d + j];
    }
}

// Weights with which the scatter along each axis counts in a rotation, variances held at their profile.
inline void precisions(const Shares& shares, const double* length, double* precision, Room room) {
    const Index k = shares.components, d = shares.columns;
    double* middle = room.take(k);
    double top = -infinity;
    for (Index c = 0; c < k; ++c) {
        middle[c] = 0;
        if (shares.volume == 'E')
            for (Index j = 0; j < d; ++j) middle[c] += std::log(length[c * d + j]) / static_cast<double>(d);
        top = std::fmax(top, middle[c]);
    }
    for (Index c = 0; c < k; ++c) {
        const double share = shares.volume == 'E' ? std::exp(middle[c] - top) : shares.count[c];
        for (Index j = 0; j < d; ++j) precision[c * d + j] = share / length[c * d + j];
    }
}

// Cosine and sine of half the angle of the point (x, y), which lies between -90 and 90 degrees.
ILK_INLINE void half_angle(double x, double y, double& cosine, double& sine) {
    const double reach = std::sqrt(x * x + y * y);
    cosine = 1;
    sine = 0;
    if (!(reach > 0)) return;
    const double larger = std::sqrt((reach + std::fabs(x)) / (2 * reach)), smaller = y / (2 * reach * larger);
    cosine = x < 0 ? std::fabs(smaller) : larger;
    sine = x < 0 ? std::copysign(larger, y) : smaller;
}

// The scatters of all components while their common axes are turned.
struct TurnedRoots {
    double* roots;   // (K, axis, wide): a root of each scatter along the axes, with zeros up to whole vectors
    double* length;  // (K, axis): squared lengths, which are the scatter along the axes
    double* axes;    // (axis, wide), an axis a row
    Index wide;

    double* root(Index c, Index axis, Index d) const { return roots + (c * d + axis) * wide; }
};

// Turn one pair of axes to the best angle with the variances held.
inline void rotate_pair(const Shares& shares, Index first, Index second, const double* precision,
                        const TurnedRoots& turned) {
    const Index k = shares.components, d = shares.columns, wide = turned.wide;
    double *length = turned.length, across = 0, rise = 0, cosine, sine;
    for (Index c = 0; c < k; ++c) {
        const double gap = precision[c * d + first] - precision[c * d + second];
        across += gap * dot_eights(turned.root(c, first, d), turned.root(c, second, d), wide);
        rise += gap * (length[c * d + second] - length[c * d + first]);
    }
    half_angle(rise + 0.0, -2 * across + 0.0, cosine, sine);  // no minus zero
    for (Index c = 0; c < k; ++c) {
        double *one = turned.root(c, first, d), *other = turned.root(c, second, d);
        turn(one, other, wide, cosine, sine);
        length[c * d + first] = dot_eights(one, one, wide);
        length[c * d + second] = dot_eights(other, other, wide);
    }
    turn(turned.axes + first * wide, turned.axes + second * wide, wide, cosine, sine);
}

// Roots of the scatters turned into the axes, (K, axis, d): squared lengths are the scatter along the axes, and
// do not cancel. False when a scatter has no root but for rounding. Room: 2 d d.
inline bool turn_roots(const Shares& shares, const double* scatter, const double* axes, double* turned, Room room) {
    const Index k = shares.components, d = shares.columns;
    double *lower = room.take(d * d), *rows = room.take(d * d);
    transpose(axes, d, rows);
    for (Index c = 0; c < k; ++c) {
        if (!cholesky(scatter + c * d * d, d, lower)) return false;
        multiply(rows, lower, d, turned + c * d * d);
    }
    return true;
}

// Room that `sweep_axes` needs.
constexpr Index sweep_room(Index k, Index d) {
    return k * d * d + (k + 1) * d * rounded_up(d, eight) + 2 * k * d + k + 4 * d * d + d + 1;
}

// EVE, VVE: every pair of axes turned once, in place, in rounds of disjoint pairs (a round-robin tournament by
// the circle method).
inline void sweep_axes(const Shares& shares, const double* scatter, double* axes, Room room) {
    const Index k = shares.components, d = shares.columns, even = d + d % 2, wide = rounded_up(d, eight);
    double *narrow = room.take(k * d * d), *precision = room.take(k * d), *circle = room.take(even);
    const TurnedRoots turned{room.take(k * d * wide), room.take(k * d), room.take(d * wide), wide};
    if (!turn_roots(shares, scatter, axes, narrow, room)) return;
    for (Index i = 0; i < (k + 1) * d; ++i) {
        double* row = i < k * d ? turned.roots + i * wide : turned.axes + (i - k * d) * wide;
        for (Index j = 0; j < wide; ++j)
            row[j] = j >= d ? 0.0 : i < k * d ? narrow[i * d + j] : axes[j * d + i - k * d];
        if (i < k * d) turned.length[i] = dot_eights(row, row, wide);
    }
    for (Index i = 0; i < even; ++i) circle[i] = static_cast<double>(i);
    for (Index round = 0; round < even - 1; ++round) {
        precisions(shares, turned.length, precision, room);
        for (Index i = 0; i < even / 2; ++i) {
            const Index first = static_cast<Index>(circle[i]), second = static_cast<Index>(circle[even - 1 - i]);
            if (first < d && second < d) rotate_pair(shares, first, second, precision, turned);
        }
        const double last = circle[even - 1];
        for (Index i = even - 1; i > 1; --i) circle[i] = circle[i - 1];
        circle[1] = last;
    }
    for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < d; ++j) axes[i * d + j] = turned.axes[j * wide + i];
    orthogonalise(axes, d, room);
}

// trace(scatter_k common^-1) of each component; infinite where there is no inverse. Room: 8 d d + d.
inline void traces_within(const double* common, const double* scatter, Index k, Index d, double* traces, Room room) {
    double *lower = room.take(d * d), *inverse = room.take(d * d);
    if (cholesky(common, d, lower)) {
        invert_lower(lower, d, inverse);
        for (Index i = 0; i < d; ++i) {  // inverse of common = inverse' inverse, into `lower`
            double* __restrict__ row = lower + i * d;
            for (Index j = 0; j <= i; ++j) row[j] = 0;
            for (Index l = i; l < d; ++l)
                for (Index j = 0; j <= i; ++j) row[j] += inverse[l * d + i] * inverse[l * d + j];
        }
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j < i; ++j) lower[j * d + i] = lower[i * d + j];
        for (Index c = 0; c < k; ++c) traces[c] = dot(lower, scatter + c * d * d, d * d);
        return;
    }
    double *values = room.take(d), *along = lower;
    eigen_descending(common, d, nullptr, values, inverse, room);
    for (Index c = 0; c < k; ++c) {
        scatter_along(scatter + c * d * d, inverse, 1, d, along, room);
        traces[c] = 0;
        for (Index j = 0; j < d; ++j) traces[c] += std::fmax(along[j], 0.0) / values[j];
        if (__builtin_isnan(traces[c])) traces[c] = infinity;
    }
}

// VEE: log-volumes (K,) and the matrix common to all. `log_volume` holds the previous ones if `warm`.
// Room: K d d + 2 K + 9 d d + 2 d.
inline void proportional(const Shares& shares, const double* scatter, bool warm, double* log_volume, double* common,
                         Room room) {
    const Index k = shares.components, d = shares.columns, cells = d * d;
    double *relative = room.take(k * cells), *unit = room.take(d), *start = room.take(k), *traces = room.take(k);
    const double total = sum_of(shares.count, k), columns = static_cast<double>(d);
    for (Index i = 0; i < d; ++i) {
        unit[i] = 0;
        for (Index c = 0; c < k; ++c) unit[i] += scatter[c * cells + i * (d + 1)];
        unit[i] = 1 / std::sqrt(unit[i]);
    }
    for (Index c = 0; c < k; ++c)
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j < d; ++j) {
                const Index at = c * cells + i * d + j;
                relative[at] = scatter[at] * unit[i] * unit[j];
            }
    const auto weighted_sum = [&](const double* matrices) {
        for (Index i = 0; i < cells; ++i) common[i] = 0;
        for (Index c = 0; c < k; ++c) {
            const double scale = std::exp(-start[c]) / total;
            for (Index i = 0; i < cells; ++i) common[i] += matrices[c * cells + i] * scale;
        }
    };
    if (!warm)
        for (Index c = 0; c < k; ++c) {
            double trace = 0;
            for (Index i = 0; i < d; ++i) trace += relative[c * cells + i * (d + 1)];
            log_volume[c] = std::log(trace / (columns * shares.count[c]));
        }
    for (int round = 0; round < (warm ? rounds_in_em : rounds_alone); ++round) {
        const double middle = sum_of(log_volume, k) / static_cast<double>(k);
        for (Index c = 0; c < k; ++c) start[c] = log_volume[c] - middle;
        weighted_sum(relative);
        traces_within(common, relative, k, d, traces, room);
        double least = infinity, most = -infinity, change = 0;
        for (Index c = 0; c < k; ++c) {
            log_volume[c] = std::log(traces[c] / (columns * shares.count[c]));
            least = std::fmin(least, log_volume[c]);
            most = std::fmax(most, log_volume[c]);
        }
        const double now = sum_of(log_volume, k) / static_cast<double>(k);
        for (Index c = 0; c < k; ++c) change = std::fmax(change, std::fabs(log_volume[c] - now - start[c]));
        if (!(most - least < runaway) || change < still) break;
    }
    weighted_sum(scatter);
}

}  // namespace quick
}  // namespace
}  // namespace ilk
