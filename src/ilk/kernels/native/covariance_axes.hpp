// Axes common to all components: one sweep of pairwise rotations (EVE, VVE), and the alternation of
// proportional covariances (VEE). The meaning, and the reasons, are in families/orientation.py.
#pragma once

#include "covariance_profile.hpp"

namespace ilk {
namespace {
namespace quick {

// Scatter along common axes (K, d): the diagonals of axes' scatter axes. Room: d.
inline void scatter_along(const double* scatter, const double* axes, Index k, Index d, double* along, Room room) {
    double* turned = room.take(d);
    for (Index c = 0; c < k; ++c)
        for (Index j = 0; j < d; ++j) {
            for (Index i = 0; i < d; ++i) turned[i] = 0;
            for (Index l = 0; l < d; ++l)
                for (Index i = 0; i < d; ++i) turned[i] += scatter[(c * d + l) * d + i] * axes[l * d + j];
            double total = 0;
            for (Index i = 0; i < d; ++i) total += turned[i] * axes[i * d + j];
            along[c * d + j] = total;
        }
}

// Weights with which the scatter along each axis counts in a rotation, variances held at their profile.
inline void precisions(const Shares& shares, const double* turned, double* precision, Room room) {
    const Index k = shares.components, d = shares.columns;
    double* middle = room.take(k);
    double top = -infinity;
    for (Index c = 0; c < k; ++c) {
        middle[c] = 0;
        for (Index j = 0; j < d; ++j) {
            const double* column = turned + (c * d + j) * d;
            precision[c * d + j] = dot(column, column, d);
            if (shares.volume == 'E') middle[c] += std::log(precision[c * d + j]) / static_cast<double>(d);
        }
        top = std::fmax(top, middle[c]);
    }
    for (Index c = 0; c < k; ++c) {
        const double share = shares.volume == 'E' ? std::exp(middle[c] - top) : shares.count[c];
        for (Index j = 0; j < d; ++j) precision[c * d + j] = share / precision[c * d + j];
    }
}

// Turn one pair of axes to the best angle with the variances held.
inline void rotate_pair(const Shares& shares, Index first, Index second, const double* precision, double* turned,
                        double* axes) {
    const Index k = shares.components, d = shares.columns;
    double across = 0, rise = 0;
    for (Index c = 0; c < k; ++c) {
        const double *one = turned + (c * d + first) * d, *other = turned + (c * d + second) * d;
        const double gap = precision[c * d + first] - precision[c * d + second];
        across += gap * dot(one, other, d);
        rise += gap * (dot(other, other, d) - dot(one, one, d));
    }
    const double angle = std::atan2(-2 * across + 0.0, rise + 0.0) / 2;  // no minus zero
    const double cosine = std::cos(angle), sine = std::sin(angle);
    for (Index c = 0; c < k; ++c)
        turn(turned + (c * d + first) * d, turned + (c * d + second) * d, d, cosine, sine);
    for (Index i = 0; i < d; ++i) {
        const double a = axes[i * d + first], b = axes[i * d + second];
        axes[i * d + first] = cosine * a + sine * b;
        axes[i * d + second] = cosine * b - sine * a;
    }
}

// Roots of the scatters turned into the axes, (K, axis, d): squared lengths are the scatter along the axes, and
// do not cancel. False when a scatter has no root but for rounding. Room: d d.
inline bool turn_roots(const Shares& shares, const double* scatter, const double* axes, double* turned, Room room) {
    const Index k = shares.components, d = shares.columns;
    double* lower = room.take(d * d);
    for (Index c = 0; c < k; ++c) {
        if (!cholesky(scatter + c * d * d, d, lower)) return false;
        for (Index j = 0; j < d; ++j)
            for (Index i = 0; i < d; ++i) {
                double total = 0;
                for (Index l = i; l < d; ++l) total += lower[l * d + i] * axes[l * d + j];
                turned[(c * d + j) * d + i] = total;
            }
    }
    return true;
}

// EVE, VVE: every pair of axes turned once, in place, in rounds of disjoint pairs (a round-robin tournament by
// the circle method). Room: K d d + 2 K d + K + 4 d d + d.
inline void sweep_axes(const Shares& shares, const double* scatter, double* axes, Room room) {
    const Index k = shares.components, d = shares.columns, even = d + d % 2;
    double *turned = room.take(k * d * d), *precision = room.take(k * d), *circle = room.take(even);
    if (!turn_roots(shares, scatter, axes, turned, room)) return;
    for (Index i = 0; i < even; ++i) circle[i] = static_cast<double>(i);
    for (Index round = 0; round < even - 1; ++round) {
        precisions(shares, turned, precision, room);
        for (Index i = 0; i < even / 2; ++i) {
            const Index first = static_cast<Index>(circle[i]), second = static_cast<Index>(circle[even - 1 - i]);
            if (first < d && second < d) rotate_pair(shares, first, second, precision, turned, axes);
        }
        const double last = circle[even - 1];
        for (Index i = even - 1; i > 1; --i) circle[i] = circle[i - 1];
        circle[1] = last;
    }
    orthogonalise(axes, d, room);
}

// trace(scatter_k common^-1) of each component; infinite where there is no inverse. Room: 8 d d + d.
inline void traces_within(const double* common, const double* scatter, Index k, Index d, double* traces, Room room) {
    double *lower = room.take(d * d), *inverse = room.take(d * d);
    if (cholesky(common, d, lower)) {
        invert_lower(lower, d, inverse);
        for (Index i = 0; i < d; ++i)  // inverse of common = inverse' inverse, into `lower`
            for (Index j = 0; j <= i; ++j) {
                double total = 0;
                for (Index l = i; l < d; ++l) total += inverse[l * d + i] * inverse[l * d + j];
                lower[i * d + j] = lower[j * d + i] = total;
            }
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
