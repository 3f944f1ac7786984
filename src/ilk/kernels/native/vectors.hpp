// Vectors of the instruction set this file is compiled for, and the one vector that is the same in all of
// them: eight doubles. Sums that reach the user run over eight doubles in a fixed order and without fused
// multiply-adds, so every instruction set returns the same bits.
//
// Only what the compilers' vector extensions lack is written with intrinsics.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "interface.hpp"

#define ILK_INLINE inline __attribute__((always_inline))
#define ILK_LAMBDA __attribute__((always_inline))

namespace ilk {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
constexpr int vector_registers = 32;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
constexpr int vector_registers = 16;
#else
constexpr int vector_bytes = 16;
constexpr int vector_registers = 16;
#endif

template <class Number>
struct VectorOf;

template <>
struct VectorOf<double> {
    typedef double type __attribute__((vector_size(vector_bytes)));
    typedef std::int64_t index __attribute__((vector_size(vector_bytes)));
};

template <>
struct VectorOf<float> {
    typedef float type __attribute__((vector_size(vector_bytes)));
    typedef std::int32_t index __attribute__((vector_size(vector_bytes)));
};

template <class Number>
using Vector = typename VectorOf<Number>::type;

template <class Number>
using IndexVector = typename VectorOf<Number>::index;

template <class Number>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(Number));

typedef double Eight __attribute__((vector_size(64)));
typedef float EightSingles __attribute__((vector_size(32)));
constexpr Index eight = 8;

template <class V, class Number>
ILK_INLINE V load(const Number* from) {
    V value;
    std::memcpy(&value, from, sizeof(V));
    return value;
}

template <class V, class Number>
ILK_INLINE void store(Number* to, V value) {
    std::memcpy(to, &value, sizeof(V));
}

// Minus zero, not plus: value - 0 is value to the last bit, so the compiler leaves a plain broadcast.
template <class V, class Number>
ILK_INLINE V everywhere(Number value) {
    return value - V{};
}

ILK_INLINE Eight load_eight(const double* from) { return load<Eight>(from); }
ILK_INLINE Eight load_eight(const float* from) {
    return __builtin_convertvector(load<EightSingles>(from), Eight);
}

// One vector of Score from as many consecutive Numbers.
template <class Score, class Number>
ILK_INLINE Vector<Score> load_as(const Number* from) {
    typedef Number Numbers __attribute__((vector_size(lanes<Score> * sizeof(Number))));
    return __builtin_convertvector(load<Numbers>(from), Vector<Score>);
}

// Few numbers side by side: the centres of one group, or the columns of a narrow row.
template <class Number, int count>
struct FewOf {
    typedef Number type __attribute__((vector_size(count * sizeof(Number))));
};
template <class Number, int count>
using Few = typename FewOf<Number, count>::type;

template <class V>
using ElementOf = std::remove_cvref_t<decltype(std::declval<V&>()[0])>;

template <class V, class Number, int bytes>
constexpr bool is_vector = std::is_same_v<V, Few<Number, bytes / static_cast<int>(sizeof(Number))>>;

// a * b + c, rounded once where the processor can: its last bit differs between instruction sets.
template <class V>
ILK_INLINE V multiply_add(V a, V b, V c) {
#if defined(__AVX512F__)
    if constexpr (is_vector<V, float, 64>) return _mm512_fmadd_ps(a, b, c);
    if constexpr (is_vector<V, double, 64>) return _mm512_fmadd_pd(a, b, c);
#endif
#if defined(__AVX2__)
    if constexpr (is_vector<V, float, 32>) return _mm256_fmadd_ps(a, b, c);
    if constexpr (is_vector<V, float, 16>) return _mm_fmadd_ps(a, b, c);
    if constexpr (is_vector<V, double, 32>) return _mm256_fmadd_pd(a, b, c);
#endif
    return a * b + c;
}

// The lanes in which a > b, as bits.
template <class V>
ILK_INLINE std::uint32_t lanes_where_greater(V a, V b) {
#if defined(__AVX512F__)
    if constexpr (is_vector<V, float, 64>) return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
    if constexpr (is_vector<V, double, 64>) return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ);
    if constexpr (is_vector<V, float, 32>) return _mm256_cmp_ps_mask(a, b, _CMP_GT_OQ);
#elif defined(__AVX2__)
    const auto bits = [](int mask) { return static_cast<std::uint32_t>(mask); };
    if constexpr (is_vector<V, float, 32>) return bits(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
    if constexpr (is_vector<V, float, 16>) return bits(_mm_movemask_ps(_mm_cmpgt_ps(a, b)));
    if constexpr (is_vector<V, double, 32>) return bits(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
#endif
    std::uint32_t where = 0;
    for (std::size_t lane = 0; lane < sizeof(V) / sizeof(ElementOf<V>); ++lane)
        where |= static_cast<std::uint32_t>(a[lane] > b[lane]) << lane;
    return where;
}

// Write the lanes of `values` above `least` and their places, counted from `first`, next to each other; how many. What
// is written beyond them, up to a whole vector, has no meaning.
ILK_INLINE Index keep_lanes(Vector<double> values, Vector<double> least, Index first, Index* places, double* kept) {
    const std::uint32_t where = lanes_where_greater(values, least);
#if defined(__AVX512F__)
    const __mmask8 mask = static_cast<__mmask8>(where);
    const __m512i numbers = _mm512_add_epi64(_mm512_set1_epi64(first), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    _mm512_storeu_si512(places, _mm512_maskz_compress_epi64(mask, numbers));
    _mm512_storeu_pd(kept, _mm512_maskz_compress_pd(mask, values));
    return __builtin_popcount(where);
#else
    Index count = 0;
    for (int lane = 0; lane < lanes<double>; ++lane) {
        places[count] = first + lane;
        kept[count] = values[lane];
        count += where >> lane & 1;
    }
    return count;
#endif
}

// The smaller and the larger; the second argument where one of them is not a number.
template <class V>
ILK_INLINE V smaller(V a, V b) {
    return a < b ? a : b;
}
template <class V>
ILK_INLINE V larger(V a, V b) {
    return a > b ? a : b;
}
#if defined(__AVX512F__)
template <>
ILK_INLINE Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm512_min_pd(a, b); }
template <>
ILK_INLINE Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm512_min_ps(a, b); }
template <>
ILK_INLINE Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm512_max_pd(a, b); }
template <>
ILK_INLINE Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm512_max_ps(a, b); }
#elif defined(__AVX2__)
template <>
ILK_INLINE Vector<double> smaller(Vector<double> a, Vector<double> b) { return _mm256_min_pd(a, b); }
template <>
ILK_INLINE Vector<float> smaller(Vector<float> a, Vector<float> b) { return _mm256_min_ps(a, b); }
template <>
ILK_INLINE Vector<double> larger(Vector<double> a, Vector<double> b) { return _mm256_max_pd(a, b); }
template <>
ILK_INLINE Vector<float> larger(Vector<float> a, Vector<float> b) { return _mm256_max_ps(a, b); }
#endif

ILK_INLINE Vector<double> square_root(Vector<double> value) {
#if defined(__AVX512F__)
    return _mm512_sqrt_pd(value);
#elif defined(__AVX2__)
    return _mm256_sqrt_pd(value);
#else
    for (int lane = 0; lane < lanes<double>; ++lane) value[lane] = __builtin_sqrt(value[lane]);
    return value;
#endif
}

constexpr Index rounded_up(Index count, Index multiple) { return (count + multiple - 1) / multiple * multiple; }

// Zeroed scratch memory on a cache line; std::vector is avoided because its code would be shared between
// instruction sets (see interface.hpp).
template <class Number>
class Scratch {
public:
    explicit Scratch(Index count)
        : numbers_(static_cast<Number*>(std::aligned_alloc(64, bytes_for(count)))) {
        if (numbers_ == nullptr) throw std::bad_alloc();
        std::memset(numbers_, 0, bytes_for(count));
    }
    ~Scratch() { std::free(numbers_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    operator Number*() { return numbers_; }
    operator const Number*() const { return numbers_; }

private:
    static std::size_t bytes_for(Index count) {
        return static_cast<std::size_t>(rounded_up(count * static_cast<Index>(sizeof(Number)) + 1, 64));
    }
    Number* numbers_;
};

// Memory to be read soon, asked for a little at a time while something else is computed.
struct Ahead {
    const char *next, *end;
    ILK_INLINE void ask() {
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + 64, 0, 2);
        next = next + 128 < end ? next + 128 : end;
    }
};

// Something made when first asked for.
template <class Thing>
class Later {
public:
    Later() = default;
    ~Later() { delete thing_; }
    Later(const Later&) = delete;
    Later& operator=(const Later&) = delete;

    template <class... Arguments>
    ILK_INLINE Thing& get(Arguments... arguments) {
        if (__builtin_expect(thing_ == nullptr, 0)) thing_ = new Thing(arguments...);
        return *thing_;
    }

private:
    Thing* thing_ = nullptr;
};

}  // namespace
}  // namespace ilk
