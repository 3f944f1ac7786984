// Sums of K-means are exact. A cell is u units of its column: a whole number, a multiple of 2^-LOW_BITS of the unit, and a rest, which only
// a number has that is small beside others of its column, since a float has 24 digits. The first two are added as int32 by atomics in shared
// memory, the rest of the few as int64 in global memory, in units of 2^-(LOW_BITS + 33). Whole numbers add to the same bits in any order.
// Macro: LOW_BITS.
#define MAGIC 12582912.0f            // 1.5 * 2^23: x + MAGIC has the integer nearest to x in its low bits
#define LOW_UNITS ((float)(1 << LOW_BITS))
struct Digits { float high, low, left; };  // integers with MAGIC in their bits; what the first leaves
DEVICE Digits digits_of(float u) {
    Digits d;
    d.high = u + MAGIC;
    d.left = u - (d.high - MAGIC);
    d.low = fmaf(d.left, LOW_UNITS, MAGIC);
    return d;
}
// |u| < fine: it may have a rest.
DEVICE void add_rest(const Digits& d, void* to) {
    const float rest = fmaf(d.left, LOW_UNITS, MAGIC - d.low);
    if (rest != 0.0f) atomicAdd((u64*)to, (u64)__float2ll_rn(rest * 0x1p33f));
}
