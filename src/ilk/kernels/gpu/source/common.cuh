// PTX in plain functions: no header is needed, so NVRTC compiles this anywhere.
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
#define DEVICE __device__ __forceinline__
#ifndef AMPERE                       // no bulk copies, f64 products of 8 x 8 x 4 alone; also set to try that on a later card
#define AMPERE (__CUDA_ARCH__ < 900)
#endif

DEVICE u32 smem_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void barrier_init(u64* bar, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_address(bar)), "r"(count) : "memory");
}
#if __CUDA_ARCH__ >= 900
DEVICE void barrier_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
#else
DEVICE void barrier_fence() { __threadfence_block(); }
#endif
DEVICE void barrier_expect(u64* bar, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_address(bar)), "r"(bytes) : "memory");
}
DEVICE void barrier_arrive(u64* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_address(bar)) : "memory");
}
DEVICE void barrier_wait(u64* bar, u32 parity) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1, 0x989680;\n"
                 "@!p bra WAIT;\n}" ::"r"(smem_address(bar)), "r"(parity) : "memory");
#else  // Ampere and Ada ask again and again
    asm volatile("{.reg .pred p;\nWAIT: mbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra WAIT;\n}" ::"r"(smem_address(bar)), "r"(parity) : "memory");
#endif
}
// One contiguous piece of global memory to shared memory; all sizes and addresses are multiples of 16.
DEVICE void bulk_load(void* to, const void* from, u32 bytes, u64* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     smem_address(to)), "l"(from), "r"(bytes), "r"(smem_address(bar)) : "memory");
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
DEVICE void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Operand in shared memory without swizzle: blocks of 8 x 16 bytes, `lead` bytes apart along k, `stride` along n.
DEVICE u64 operand(u32 address, u32 lead, u32 stride) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(lead >> 4) << 16 | (u64)(stride >> 4) << 32;
}
DEVICE u32 halves(float low, float high) {  // two floats rounded to f16, packed
    u32 d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}
DEVICE float low_half(u32 p) {
    float f;
    asm("{.reg .f16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l;}" : "=f"(f) : "r"(p));
    return f;
}
DEVICE float high_half(u32 p) {
    float f;
    asm("{.reg .f16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h;}" : "=f"(f) : "r"(p));
    return f;
}
DEVICE u32 funnel_left(u32 low, u32 high) {  // (high << 1) | (low >> 31)
    u32 d;
    asm("shf.l.wrap.b32 %0, %1, %2, 1;" : "=r"(d) : "r"(low), "r"(high));
    return d;
}
#if AMPERE  // in halves of 8 rows; a lane has the same cells of the operands and of the sums
DEVICE void dmma_8x4(double& c0, double& c1, double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c0), "+d"(c1) : "d"(a), "d"(b));
}
DEVICE void dmma_16x4(double& c0, double& c1, double& c2, double& c3, double a0, double a1, double b) {
    dmma_8x4(c0, c1, a0, b);
    dmma_8x4(c2, c3, a1, b);
}
DEVICE void dmma_16x8(double& c0, double& c1, double& c2, double& c3, double a0, double a1, double a2, double a3, double b0, double b1) {
    dmma_16x4(c0, c1, c2, c3, a0, a1, b0);
    dmma_16x4(c0, c1, c2, c3, a2, a3, b1);
}
#else
DEVICE void dmma_16x4(double& c0, double& c1, double& c2, double& c3, double a0, double a1, double b) {
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(c0), "+d"(c1), "+d"(c2), "+d"(c3) : "d"(a0), "d"(a1), "d"(b));
}
// A: a0 (g, q) a1 (g+8, q) a2 (g, q+4) a3 (g+8, q+4); B: b0 (q, g) b1 (q+4, g).
DEVICE void dmma_16x8(double& c0, double& c1, double& c2, double& c3, double a0, double a1, double a2, double a3, double b0, double b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(c0), "+d"(c1), "+d"(c2), "+d"(c3) : "d"(a0), "d"(a1), "d"(a2), "d"(a3), "d"(b0), "d"(b1));
}
#endif
#define FULL 0xffffffffu
DEVICE float root(float v) {  // a little above the square root
    float r;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r * 1.0001f;
}
DEVICE void copy16(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem_address(to)), "l"(from) : "memory");
}
DEVICE void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
// This thread arrives when the copies that it has begun are there.
DEVICE void barrier_follow(u64* bar) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(smem_address(bar)) : "memory");
}
// A row that a kernel leaves open goes on the list; beyond its room it is only counted.
DEVICE void note(int* list, i64 room, int* found, i64 row) {
    const int at = atomicAdd(found, 1);
    if (at < room) list[at] = (int)row;
}
