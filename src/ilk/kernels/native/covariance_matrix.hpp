// Small symmetric matrices, row by row in plain arrays: eigenvectors, Cholesky factors, orthogonal axes.
//
// The matrices here have a handful of columns and are made thousands of times a second, so calls into a
// linear algebra library would cost more than the arithmetic.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "constants.hpp"
#include "vectors.hpp"

namespace ilk {
namespace {
namespace quick {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

// Scratch memory handed out front to back; the caller has made it large enough.
struct Room {
    double* next;
    double* take(Index count) {
        double* here = next;
        next += count;
        return here;
    }
};

inline void copy_numbers(const double* from, Index count, double* to) {
    for (Index i = 0; i < count; ++i) to[i] = from[i];
}

// Call visit with the number of columns as a type where it is small, so that loops over columns are written out;
// else with zero.
template <class Visit>
ILK_INLINE auto with_columns(Index d, Visit visit) {
    switch (d) {
        case 2: return visit(std::integral_constant<int, 2>{});
        case 3: return visit(std::integral_constant<int, 3>{});
        case 4: return visit(std::integral_constant<int, 4>{});
        case 5: return visit(std::integral_constant<int, 5>{});
        case 6: return visit(std::integral_constant<int, 6>{});
        case 7: return visit(std::integral_constant<int, 7>{});
        case 8: return visit(std::integral_constant<int, 8>{});
        default: return visit(std::integral_constant<int, 0>{});
    }
}

// Sum of the products of numbers that make whole vectors: eight sums side by side.
ILK_INLINE double dot_eights(const double* a, const double* b, Index count) {
    Eight sums = {};
    for (Index i = 0; i < count; i += eight) sums += load<Eight>(a + i) * load<Eight>(b + i);
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// The same of any count: what makes whole vectors, then the rest one after the other.
ILK_INLINE double dot(const double* a, const double* b, Index count) {
    const Index whole = count / eight * eight;
    double total = whole > 0 ? dot_eights(a, b, whole) : 0.0;
    for (Index i = whole; i < count; ++i) total += a[i] * b[i];
    return total;
}

ILK_INLINE void turn(double* __restrict__ one, double* __restrict__ other, Index count, double cosine, double sine) {
    for (Index i = 0; i < count; ++i) {
        const double a = one[i], b = other[i];
        one[i] = cosine * a + sine * b;
        other[i] = cosine * b - sine * a;
    }
}

// Some rows of a b, eight columns of them, the sums in registers.
template <int rows>
ILK_INLINE void multiply_eight(const double* a, const double* b, Index d, double* product) {
    Eight sums[rows] = {};
    for (Index l = 0; l < d; ++l) {
        const Eight row = load<Eight>(b + l * d);
#pragma GCC unroll 4
        for (int i = 0; i < rows; ++i) sums[i] += row * a[i * d + l];
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) store(product + i * d, sums[i]);
}

// product = a b, all d x d; the last eight columns may be made twice. Below eight columns row by row, so that the
// innermost loop has no sum to wait for.
ILK_INLINE void multiply(const double* a, const double* b, Index d, double* __restrict__ product) {
    if (d < eight) {
        for (Index i = 0; i < d; ++i) {
            for (Index j = 0; j < d; ++j) product[i * d + j] = a[i * d] * b[j];
            for (Index l = 1; l < d; ++l)
                for (Index j = 0; j < d; ++j) product[i * d + j] += a[i * d + l] * b[l * d + j];
        }
        return;
    }
    for (Index done = 0; done < d; done += eight) {
        const Index j = done + eight <= d ? done : d - eight;
        Index i = 0;
        for (; i + 4 <= d; i += 4) multiply_eight<4>(a + i * d, b + j, d, product + i * d + j);
        for (; i < d; ++i) multiply_eight<1>(a + i * d, b + j, d, product + i * d + j);
    }
}

ILK_INLINE void transpose(const double* matrix, Index d, double* result) {
    for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < d; ++j) result[j * d + i] = matrix[i * d + j];
}

// What is left of being not quite orthogonal after many rotations is squared away: one step towards the polar
// factor, axes (3 - axes' axes) / 2. Room: 3 d d.
ILK_INLINE void orthogonalise(double* axes, Index d, Room room) {
    double *turned = room.take(d * d), *inner = room.take(d * d), *next = room.take(d * d);
    transpose(axes, d, turned);
    multiply(turned, axes, d, inner);
    for (Index i = 0; i < d * d; ++i) inner[i] *= -0.5;
    for (Index i = 0; i < d; ++i) inner[i * (d + 1)] += 1.5;
    multiply(axes, inner, d, next);
    copy_numbers(next, d * d, axes);
}

// One sweep of Jacobi rotations over all pairs; whether any was needed. `vectors` are in rows.
ILK_INLINE bool jacobi_sweep(double* matrix, Index d, double* vectors, double nothing) {
    bool turned = false;
    for (Index p = 0; p < d; ++p)
        for (Index q = p + 1; q < d; ++q) {
            const double across = matrix[p * d + q];
            const double one = matrix[p * d + p], other = matrix[q * d + q];
            // Below this a rotation moves no eigenvalue by a rounding, not even a small one of a graded matrix.
            if (!(across * across > 1e-34 * std::fabs(one * other)) || !(std::fabs(across) > nothing)) continue;
            // Two roots and one division in a row: waiting for them is most of a rotation.
            const double gap = other - one, reach = std::sqrt(gap * gap + 4 * across * across);
            const double sum = reach + std::fabs(gap), norm = 1 / std::sqrt(2 * reach * sum);
            const double signed_across = gap < 0 ? -across : across;
            const double cosine = sum * norm, sine = -2 * signed_across * norm;
            const double change = 2 * signed_across * across / sum;
            turn(matrix + p * d, matrix + q * d, d, cosine, sine);
            for (Index i = 0; i < d; ++i) {  // the columns are the rows, but where both are turned
                matrix[i * d + p] = matrix[p * d + i];
                matrix[i * d + q] = matrix[q * d + i];
            }
            matrix[p * d + p] = one - change;
            matrix[q * d + q] = other + change;
            matrix[p * d + q] = matrix[q * d + p] = 0;
            turn(vectors + p * d, vectors + q * d, d, cosine, sine);
            turned = true;
        }
    return turned;
}

template <int fixed>
inline void eigen_of(const double* matrix, Index size, const double* start, double* values, double* axes, Room room) {
    const Index d = fixed ? fixed : size;
    double *work = room.take(d * d), *vectors = room.take(d * d), *half = room.take(d * d);
    if (start == nullptr) {
        copy_numbers(matrix, d * d, work);
        for (Index i = 0; i < d * d; ++i) vectors[i] = i % (d + 1) == 0;
    } else {
        transpose(start, d, vectors);
        multiply(vectors, matrix, d, half);
        multiply(half, start, d, work);
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j < i; ++j) work[j * d + i] = work[i * d + j];
    }
    double largest = 0;
    for (Index i = 0; i < d; ++i) largest = std::fmax(largest, std::fabs(work[i * d + i]));
    for (int sweep = 0; sweep < 40 && jacobi_sweep(work, d, vectors, 1e-20 * largest); ++sweep) {
    }
    for (Index i = 0; i < d; ++i) values[i] = std::fmax(work[i * d + i], 0.0);
    for (Index i = 0; i < d; ++i) {
        Index next = i;
        for (Index j = i + 1; j < d; ++j)
            if (values[j] > values[next]) next = j;
        const double value = values[next];
        values[next] = values[i];
        values[i] = value;
        for (Index j = 0; j < d; ++j) {
            axes[j * d + i] = vectors[next * d + j];
            vectors[next * d + j] = vectors[i * d + j];
        }
    }
    if (start != nullptr) orthogonalise(axes, d, room);
}

// Eigenvalues (clamped at zero, largest first) and eigenvectors (in the columns of `axes`) of a symmetric
// matrix. From `start`, axes that are nearly the eigenvectors, one or two sweeps are enough; null: from the
// columns. Room: 6 d d.
inline void eigen_descending(const double* matrix, Index d, const double* start, double* values, double* axes,
                             Room room) {
    with_columns(d, [&](auto fixed) { eigen_of<decltype(fixed)::value>(matrix, d, start, values, axes, room); });
}

// Lower triangular factor of a symmetric matrix, zeros above; false (and no use) when a pivot is not positive.
ILK_INLINE bool cholesky(const double* matrix, Index d, double* lower) {
    for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < d; ++j) {
            if (j > i) {
                lower[i * d + j] = 0;
                continue;
            }
            const double rest = matrix[i * d + j] - dot(lower + i * d, lower + j * d, j);
            if (i == j && !(rest > 0)) return false;
            lower[i * d + j] = i == j ? std::sqrt(rest) : rest / lower[j * d + j];
        }
    return true;
}

// Inverse of a lower triangular matrix, zeros above; row by row from those before.
ILK_INLINE void invert_lower(const double* lower, Index d, double* inverse) {
    for (Index i = 0; i < d; ++i) {
        double* row = inverse + i * d;
        const double pivot = 1 / lower[i * d + i];
        for (Index j = 0; j < d; ++j) row[j] = 0;
        for (Index l = 0; l < i; ++l)
            for (Index j = 0; j <= l; ++j) row[j] -= lower[i * d + l] * inverse[l * d + j];
        for (Index j = 0; j < d; ++j) row[j] *= pivot;
        row[i] = pivot;
    }
}

// Trace of a matrix times that of its inverse: the condition number lies between this over d^2 and this.
// Infinite where there is no inverse. Room: 2 d d.
inline double condition_bound(const double* matrix, Index size, Room room) {
    return with_columns(size, [&](auto fixed) {
        const Index d = decltype(fixed)::value ? decltype(fixed)::value : size;
        double *lower = room.take(d * d), *inverse = room.take(d * d);
        if (!cholesky(matrix, d, lower)) return infinity;
        invert_lower(lower, d, inverse);
        double trace = 0;
        for (Index i = 0; i < d; ++i) trace += matrix[i * d + i];
        return trace * dot(inverse, inverse, d * d);
    });
}

// Number of eigenvalues above the rounding of the largest: the usual numeric rank. Room: 9 d d + d.
inline Index numeric_rank(const double* matrix, Index d, Room room) {
    if (condition_bound(matrix, d, room) < 1e12) return d;  // far from the limit; NaN and doubt go on
    double *values = room.take(d), *axes = room.take(d * d);
    eigen_descending(matrix, d, nullptr, values, axes, room);
    Index rank = 0;
    for (Index i = 0; i < d; ++i) rank += values[i] > static_cast<double>(d) * epsilon * values[0];
    return rank;
}

// Lower triangular whitening from the square root of the covariance, so its digits are not halved: the rows of the
// root made orthogonal one after the other, then the triangle inverted. Room: 2 d d + d.
inline void whiten(const double* logs, const double* axes, Index columns, double* result, Room room) {
    with_columns(columns, [&](auto fixed) {
        const Index d = decltype(fixed)::value ? decltype(fixed)::value : columns;
        double *half = room.take(d * d), *lower = room.take(d * d), *deviation = room.take(d);
        for (Index j = 0; j < d; ++j) deviation[j] = std::exp(logs[j] / 2);
        for (Index i = 0; i < d; ++i)
            for (Index j = 0; j < d; ++j) half[i * d + j] = axes[i * d + j] * deviation[j];
        for (Index i = 0; i < d; ++i) {
            double* row = half + i * d;
            const double length = std::sqrt(dot(row, row, d)), scale = 1 / length;
            lower[i * d + i] = length;
            for (Index j = 0; j < d; ++j) row[j] *= scale;
            for (Index below = i + 1; below < d; ++below) {
                double* other = half + below * d;
                const double along = lower[below * d + i] = dot(row, other, d);
                for (Index j = 0; j < d; ++j) other[j] -= along * row[j];
            }
        }
        invert_lower(lower, d, result);
    });
}

}  // namespace quick
}  // namespace
}  // namespace ilk
