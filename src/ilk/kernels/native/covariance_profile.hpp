// Log-variances from the scatter along the axes, for each pair of volume and shape letters. The meaning, and
// the reasons, are in families/orientation.py (`profile`).
#pragma once

#include "covariance_matrix.hpp"

namespace ilk {
namespace {
namespace quick {


struct Shares {
    char volume, shape;
    Index components, columns;
    const double* count;  // (components,)
};

inline double sum_of(const double* values, Index count) {
    double total = 0;
    for (Index i = 0; i < count; ++i) total += values[i];
    return total;
}

// log(scatter / count), minus infinity where there is no scatter.
inline double log_ratio(double scatter, double count) {
    return scatter > 0 ? std::log(scatter) - std::log(count) : -infinity;
}

// Whether an alternation without a minimum has carried the volumes apart; not numbers count as apart.
inline bool runs_away(double least, double most) { return !(std::log(most) - std::log(least) < runaway); }

// Shapes free, volumes equal.
inline void equal_volumes(const Shares& shares, const double* scatter, double* log_variance) {
    const Index k = shares.components, d = shares.columns;
    double top = -infinity, volume = 0;
    for (Index i = 0; i < k * d; ++i) log_variance[i] = scatter[i] > 0 ? std::log(scatter[i]) : -infinity;
    const auto middle = [&](Index component) { return sum_of(log_variance + component * d, d) / static_cast<double>(d); };
    for (Index c = 0; c < k; ++c) top = std::fmax(top, middle(c));
    if (!__builtin_isfinite(top)) top = 0;
    for (Index c = 0; c < k; ++c) volume += std::exp(middle(c) - top);
    const double log_volume = std::log(volume) + top - std::log(sum_of(shares.count, k));
    for (Index c = 0; c < k; ++c) {
        const double own = middle(c);
        for (Index j = 0; j < d; ++j)
            log_variance[c * d + j] = __builtin_isfinite(own) ? log_variance[c * d + j] - own + log_volume : -infinity;
    }
}

// Shapes equal, volumes free: matrix scaling, each half-step an exact minimisation. Every row and column has
// scatter (tested before). Room: K + 2 d.
inline void equal_shapes(const Shares& shares, const double* scatter, const double* log_volume, double* log_variance,
                         Room room) {
    const Index k = shares.components, d = shares.columns;
    double *volume = room.take(k), *shape = room.take(d), *next = room.take(d);
    const double total = sum_of(shares.count, k);
    const double middle = log_volume ? sum_of(log_volume, k) / static_cast<double>(k) : 0;
    for (Index c = 0; c < k; ++c)
        volume[c] = log_volume ? std::exp(log_volume[c] - middle)
                               : sum_of(scatter + c * d, d) / (static_cast<double>(d) * shares.count[c]);
    const auto shape_given_volume = [&](double* result) {
        for (Index j = 0; j < d; ++j) result[j] = 0;
        for (Index c = 0; c < k; ++c) {
            const double scale = 1 / (volume[c] * total);
            for (Index j = 0; j < d; ++j) result[j] += scatter[c * d + j] * scale;
        }
    };
    shape_given_volume(next);
    const int rounds = log_volume ? rounds_in_em : rounds_alone;
    for (int round = 0; round < rounds; ++round) {
        double least = infinity, most = -infinity, change = 0;
        for (Index j = 0; j < d; ++j) shape[j] = 1 / next[j];
        for (Index c = 0; c < k; ++c) {
            volume[c] = dot(scatter + c * d, shape, d) / (static_cast<double>(d) * shares.count[c]);
            least = std::fmin(least, volume[c]);
            most = std::fmax(most, volume[c]);
        }
        shape_given_volume(next);
        for (Index j = 0; j < d; ++j) change = std::fmax(change, std::fabs(next[j] * shape[j] - 1));
        if (change < still || runs_away(least, most)) break;
    }
    for (Index c = 0; c < k; ++c) {
        const double log_of_volume = std::log(volume[c]);
        for (Index j = 0; j < d; ++j) log_variance[c * d + j] = log_of_volume - std::log(shape[j]);
    }
}

// The log-variances (K, d) that minimise the cost along given axes; `log_volume` (K,) is where the alternation
// of equal shapes starts, null: nowhere yet. Room: K + 2 d.
inline void profile(const Shares& shares, const double* scatter, const double* log_volume, double* log_variance,
                    Room room) {
    const Index k = shares.components, d = shares.columns;
    const double columns = static_cast<double>(d), total = sum_of(shares.count, k);
    if (shares.volume == 'V' && shares.shape == 'E') return equal_shapes(shares, scatter, log_volume, log_variance, room);
    if (shares.volume == 'E' && shares.shape == 'V') return equal_volumes(shares, scatter, log_variance);
    if (shares.volume == 'E' && shares.shape == 'I') {
        const double common = log_ratio(sum_of(scatter, k * d), total * columns);
        for (Index i = 0; i < k * d; ++i) log_variance[i] = common;
    } else if (shares.shape == 'I') {
        for (Index c = 0; c < k; ++c) {
            const double own = log_ratio(sum_of(scatter + c * d, d), shares.count[c] * columns);
            for (Index j = 0; j < d; ++j) log_variance[c * d + j] = own;
        }
    } else if (shares.shape == 'E') {
        for (Index j = 0; j < d; ++j) {
            double pooled = 0;
            for (Index c = 0; c < k; ++c) pooled += scatter[c * d + j];
            const double common = log_ratio(pooled, total);
            for (Index c = 0; c < k; ++c) log_variance[c * d + j] = common;
        }
    } else {
        for (Index c = 0; c < k; ++c)
            for (Index j = 0; j < d; ++j) log_variance[c * d + j] = log_ratio(scatter[c * d + j], shares.count[c]);
    }
}

// What every update lowers, from the scatter along the axes.
inline double cost_along(const Shares& shares, const double* along, const double* log_variance) {
    double cost = 0;
    for (Index c = 0; c < shares.components; ++c)
        for (Index i = c * shares.columns; i < (c + 1) * shares.columns; ++i)
            cost += shares.count[c] * log_variance[i] + along[i] * std::exp(-log_variance[i]);
    return cost;
}

}  // namespace quick
}  // namespace
}  // namespace ilk
