// Sums of K-means are exact. A cell is u units of its column: a whole number, a multiple of 2^-LOW_BITS of the unit, and a rest, which only
// a number has that is small beside others of its column, since a float has 24 digits. The first two are added as int32 by atomics in shared
// memory, in any order to the same bits; the few rests are listed once for a table and added by rests.cu.
// Macros: LOW_BITS, and HEADROOM: int32 sums hold 2^HEADROOM rows of a centre. Where more came between two writings, that is told.
#define MAGIC 12582912.0f            // 1.5 * 2^23: x + MAGIC has the integer nearest to x in its low bits
#define LOW_MAGIC (MAGIC / (float)(1 << LOW_BITS))  // and here the nearest multiple of 2^-LOW_BITS
struct Digits { float high, low; };  // integers beside those of MAGIC and LOW_MAGIC in their bits
DEVICE Digits digits_of(float u) {
    Digits d;
    d.high = u + MAGIC;
    d.low = u - (d.high - (MAGIC + LOW_MAGIC));
    return d;
}
DEVICE i64 joined(int high, int low) { return ((i64)high << LOW_BITS) + low; }
