// The least of the scores of a row, which come a chunk of NC centres at a time: a thread has VALUES of each chunk, four threads a row.
// Macro: NC.
#define VALUES (NC / 4)
struct Search {
    float best, along, fixed, cap;
    int where;
    bool near;  // whether another score is within the margin
};
// How far above the least score another centre may be and yet be nearer. With f16 centres c' = c + e and norms corrected by
// 2 c.e, a score is off by 2 (x - c).e and by 2 d.c for the rounding d of x; a centre nearer than the one found, at distance
// r, then has a score at most 4 r (|d| + |e|) higher. length: |x|, away: |d|, cmax: largest |c|, cdelta: largest |e|, rounding:
// bound on that of two scores, relative to their sizes.
DEVICE Search search_begun(float length, float away, float cmax, float cdelta, float rounding) {
    Search s;
    s.best = 1e38f; s.where = 0; s.near = false;
    s.along = 4.04f * (away + cdelta);
    s.fixed = rounding * fmaf(2.0f, length, cmax) * cmax + s.along * 2 * (away + cdelta);
    s.cap = (length + away) * (length + away) * 1.0001f;  // |x|^2 of the row as it is rounded
    return s;
}
DEVICE float margin_of(const Search& s, float score) { return fmaf(s.along, root(fmaxf(score + s.cap, 0.0f)), s.fixed); }
// Row h of 0, 1 of the sums of products.
DEVICE void search_chunk(Search& s, const float (&acc)[NC / 2], int h, int chunk) {
    float least = fminf(acc[2 * h], acc[2 * h + 1]), other = fminf(acc[4 + 2 * h], acc[5 + 2 * h]);
#pragma unroll
    for (int j = 2; j < NC / 8; j += 2) {
        least = fminf(least, fminf(acc[4 * j + 2 * h], acc[4 * j + 2 * h + 1]));
        other = fminf(other, fminf(acc[4 * j + 4 + 2 * h], acc[4 * j + 5 + 2 * h]));
    }
    least = fminf(least, other);
    const float low = fminf(s.best, least), limit = low + margin_of(s, low);
    u32 above = 0, above2 = 0;  // a bit a column, the first the highest: set where the score is above the limit
#pragma unroll
    for (int i = 0; i < VALUES / 2; ++i) {
        above = funnel_left(__float_as_uint(limit - acc[i / 2 * 4 + 2 * h + i % 2]), above);
        above2 = funnel_left(__float_as_uint(limit - acc[NC / 4 + i / 2 * 4 + 2 * h + i % 2]), above2);
    }
    const u32 within = ~(above << (VALUES / 2) | above2) & (VALUES == 32 ? FULL : (1u << VALUES) - 1);
    const bool lower = least < s.best;
    s.near = lower ? (within & (within - 1)) || s.best <= limit : s.near || within;
    if (lower) { s.where = chunk * 32 + __clz(within << (32 - VALUES)); s.best = least; }
}
// The label of a row from its four threads, and whether another centre may be as near.
DEVICE int search_ended(const Search& s, int q, bool& unsure) {
    float least = s.best;
    least = fminf(least, __shfl_xor_sync(FULL, least, 1));
    least = fminf(least, __shfl_xor_sync(FULL, least, 2));
    const int own = s.best == least ? s.where / 32 * NC + (s.where % 32 / 2) * 8 + 2 * q + s.where % 2 : 0x7fffffff;
    int label = min(own, __shfl_xor_sync(FULL, own, 1));
    label = min(label, __shfl_xor_sync(FULL, label, 2));
    unsure = s.best <= least + margin_of(s, least) && (own != label || s.near);
    return label;
}
// Rows that some thread of theirs is not sure of go on a list, in any order; beyond `room` they are only counted.
DEVICE void list_rows(bool unsure, int lane, i64 row, int* list, i64 room, int* found) {
    const u32 all_unsure = __ballot_sync(FULL, unsure);
    const bool mine = (lane & 3) == 0 && (all_unsure >> (lane & ~3) & 15);
    const u32 all = __ballot_sync(FULL, mine);
    if (!all) return;
    int at = 0;
    if (lane == 0) at = atomicAdd(found, __popc(all));
    at = __shfl_sync(FULL, at, 0) + __popc(all & ((1u << lane) - 1));
    if (mine & (at < room)) list[at] = (int)row;
}
