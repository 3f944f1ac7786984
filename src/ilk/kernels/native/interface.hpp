// What the binding (module.cpp) and the kernels (instructions.cpp) share: plain data, no code.
//
// instructions.cpp is compiled once per instruction set. Anything inline that both sides shared could be
// emitted with the wider instructions and then run on a processor that lacks them, so nothing here is.
#pragma once

#include <cstdint>

namespace ilk {

using Index = std::int64_t;

// A table as the user holds it, with the encoding: number = (raw * power - centre) * factor.
template <class Number>
struct Table {
    const Number* raw;
    Index rows, columns;
    Index row_step, column_step;  // in numbers; any sign
    double power;                 // a power of two
    const double* centre;
    const double* factor;  // null when no column is scaled
};

struct Centres {
    const double* values;  // (count, columns), row by row
    Index count;
};

// Rows costing more than `limit` do not count; rows costing exactly `limit` count with this share.
struct Trim {
    double limit, share_at_limit;
};

// Where the sums of one block go; pairs are (leading, trailing) parts of a sum.
struct StepSums {
    double* sums;     // (centres, columns, 2)
    double* weights;  // (centres,)
    double* cost;     // (2,)
    double* squares;  // (2,) the sum of weight * |x|^2; not a number until it is known, and then kept by the caller
};

// Cells with any strides, in numbers.
struct Cells {
    const double* values;
    Index rows, columns, row_step, column_step;
};

// Where a tally goes.
struct Tally {
    double* sizes;      // (labels,)
    Index* first_rows;  // (labels,)
    double* cost;       // (2,)
};

// Where smallest, largest and summed values go, each (columns,).
struct Ranges {
    double *low, *high, *total;
};

struct SortedTable {
    const double* values;  // (rows, columns), rows of one cluster next to each other
    const double* weight;  // (rows,), null when every row counts one
    const Index* starts;   // (clusters + 1,)
    Index columns, clusters;
};

// Components of a Gaussian mixture: log_weight - |whiten (x - mean)|^2 / 2.
struct Components {
    const double* mean;        // (count, columns)
    const double* whiten;      // (count, columns, columns), lower triangular; (count, columns) when diagonal
    const double* log_weight;  // (count,)
    Index count;
    bool diagonal;
    bool tied = false;  // whiten is one matrix (1, columns, columns) for all
    // (columns, columns), an axis in each column, where all components lie along common ones: whiten is (count, columns)
    // then, the inverse deviations along them. Only scores know of it. Null: none.
    const double* axes = nullptr;
};

// Where the sums of one EM step go; scatter has the shape of whiten, that of tied components is the sum over them.
struct MixtureStep {
    double *count, *shift, *scatter, *cost;
};

// Which rows belong where: memberships (rows, components), row by row, or a label per row; all to the only component
// where there is neither.
struct Given {
    const double* membership;
    const std::int32_t* labels;
};

// Where the likeliest component of each row, its score and the cost of the row go.
struct RowResults {
    std::int32_t* labels;
    double *top, *cost;
};

// Categories of the rows: codes (rows, columns), row by row; those of column c are its levels start[c] .. start[c + 1]
// among all. A code that is no level is missing.
struct Levels {
    const std::int32_t* codes;
    const Index* start;  // (columns + 1,)
    Index columns;
};

// Components that are products over columns: Gaussian numbers (count, columns) and levels (count, all levels).
struct Product {
    const double* log_mixing;  // (count,)
    const double *mean, *precision, *log_norm;
    const double* log_level;
    Index count;
};

// Where their sums go: (count,), (count, columns) three times, (count, all levels); cost and entropy are one number.
struct ProductSums {
    double *weight, *observed, *first, *second, *counts, *cost, *entropy;
};

// What the covariances of a mixture share, as in families/covariance.py; E and V of one column are EII, VII.
struct Letters {
    char volume, shape, orientation;
};

struct CovarianceSums {
    Letters letters;
    Index components, columns;
    const double* count;                  // (K,)
    const double* scatter;                // (K, d) for orientation I, else (K, d, d)
    const double* previous_log_variance;  // (K, d), null: none
    const double* previous_axes;          // (d, d) for orientation E, (K, d, d) for V; null: none
    const double* column_variances;       // (d,)
};

struct CovarianceResult {
    double *log_variance, *axes;  // as the previous ones; not filled when starved
    std::uint8_t* poor;           // (K,) which components are starved or singular
};

enum class CovarianceStatus { ok, singular, starved };

// A run of EM over a complete table.
struct RunTask {
    const double* numbers;  // (rows, columns), encoded
    Index rows, columns;
    const double* weight;  // null: every row counts one
    Letters letters;
    Index components;
    const double* column_variances;
    bool hard, equal_mixing;
    double tolerance;
    Index max_passes;
    double seconds;  // after which control goes back, with the run where it is
};

// Parameters to go on from, and the last whose cost is known; both are brought up to date.
struct RunState {
    double *mixing, *mean, *log_variance, *axes;
    double *measured_mixing, *measured_mean, *measured_log_variance, *measured_axes;
    double cost;    // of the measured ones, infinite at first
    double* costs;  // (max_passes,)
};

enum class RunReason { running, no_lower_cost, degenerate, nothing_changed, tolerance, vacant };
enum class RunStatus { ok, singular, vanished };

struct RunEnd {
    RunReason reason;
    RunStatus status;
    Index passes;
    double cost;
};

template <class Number>
struct TableKernels {
    void (*nearest_step)(const Table<Number>&, const double* weight, Centres, Trim, StepSums);
    void (*nearest)(const Table<Number>&, Centres, std::int32_t* labels, double* cost);
    void (*distances)(const Table<Number>&, Centres points, double* squared);
    void (*mixture_step)(const Table<Number>&, const double* weight, Components, bool hard, Trim, MixtureStep);
    void (*mixture_scores)(const Table<Number>&, Components, double* scores);
    void (*mixture_labels)(const Table<Number>&, Components, bool hard, RowResults);
    void (*mixture_gather)(const Table<Number>&, const double* weight, Components, Given, MixtureStep);
    void (*product_scores)(const Table<Number>&, Levels, Product, double* scores);
    void (*product_step)(const Table<Number>&, Levels, const double* weight, Product, bool hard, Trim, ProductSums);
    void (*product_sums)(const Table<Number>&, Levels, const double* membership, const double* mean, Index components,
                         ProductSums);
    void (*column_ranges)(const Number* cells, Index rows, Index columns, const double* pivot, Ranges);
    void (*content_sums)(const Table<Number>&, const std::uint64_t* factors, std::uint64_t missing,
                         std::uint64_t* sums);
};

struct Kernels {
    const char* instructions;
    TableKernels<float> float32;
    TableKernels<double> float64;
    void (*group_sums)(const Cells& values, const Cells& weight, const std::int32_t* labels, Index n_groups,
                       double* sums);
    void (*tally)(const std::int32_t* labels, const double* cost, const double* weight, Index rows, Index n_labels,
                  Trim, Tally);
    void (*add_pairs)(const double* a, const double* b, Index count, double* sum);
    void (*silhouette_sums)(const double* rows, Index n_rows, const SortedTable&, double* sums);
    void (*memberships)(const double* scores, Index rows, Index components, bool hard, double* membership,
                        double* cost);
    CovarianceStatus (*update_covariance)(const CovarianceSums&, const CovarianceResult&, double* room);
    Index (*covariance_room)(Index components, Index columns);  // numbers of room that update needs
    void (*whiten_all)(const double* log_variance, const double* axes, bool common, Index components, Index columns,
                       double* result, double* room);
    RunEnd (*mixture_run)(const RunTask&, const RunState&);
    void (*grow_tree)(const double* points, const double* weight, Index rows, Index columns, Index* first,
                      Index* second);
};

extern const Kernels plain_kernels;
extern const Kernels avx2_kernels;
extern const Kernels avx512_kernels;

}  // namespace ilk
