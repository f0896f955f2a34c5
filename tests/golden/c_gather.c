typedef long long i64;
typedef int i32;
typedef _Bool b8;
typedef unsigned short u16;
typedef float f32;
typedef unsigned int u32;
#ifndef WEFT_as_f32_u32
#define WEFT_as_f32_u32
static inline __attribute__((always_inline)) f32 as_f32_u32(u32 x) { f32 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
#endif
#ifndef WEFT_cvt_u32_u16
#define WEFT_cvt_u32_u16
static inline __attribute__((always_inline)) u32 cvt_u32_u16(u16 x) { return (u32)x; }
#endif
#ifndef WEFT_bf16_to_f32
#define WEFT_bf16_to_f32
static inline __attribute__((always_inline)) f32 bf16_to_f32(u16 h) { return as_f32_u32(cvt_u32_u16(h) << 16); }
#endif
#ifndef WEFT_as_u32_f32
#define WEFT_as_u32_f32
static inline __attribute__((always_inline)) u32 as_u32_f32(f32 x) { u32 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
#endif
#ifndef WEFT_sel_u32
#define WEFT_sel_u32
static inline __attribute__((always_inline)) u32 sel_u32(int m, u32 a, u32 b) { return m ? a : b; }
#endif
#ifndef WEFT_splat_u32
#define WEFT_splat_u32
static inline __attribute__((always_inline)) u32 splat_u32(u32 x) { return x; }
#endif
typedef short i16;
#ifndef WEFT_cvt_u16_u32
#define WEFT_cvt_u16_u32
static inline __attribute__((always_inline)) u16 cvt_u16_u32(u32 x) { return (u16)x; }
#endif
#ifndef WEFT_to_f16_f32
#define WEFT_to_f16_f32
static inline __attribute__((always_inline)) u16 to_f16_f32(f32 x) {
#if defined(__F16C__) && defined(__clang__)
  _Float16 f = (_Float16)x; u16 h; __builtin_memcpy(&h, &f, 2); return h;
#else
  u32 b = as_u32_f32(x), u = b & 0x7fffffff;
  u32 small = as_u32_f32(as_f32_u32(u) + 0.5f) - 0x3f000000;
  u32 normal = (u - 0x38000000 + 0xfff + (u >> 13 & 1)) >> 13;
  u32 r = sel_u32(u < 0x38800000, small, normal);
  r = sel_u32(u >= 0x47800000, splat_u32(0x7c00), r);
  r = sel_u32(u > 0x7f800000, 0x7e00 | (u >> 13 & 0x3ff), r);
  return cvt_u16_u32(r | (b >> 16 & 0x8000));
#endif
}
#endif
#ifndef WEFT_KERNEL_ARGS
#define WEFT_KERNEL_ARGS
struct KernelArgs {
  unsigned version, worker;
  void *const *buffers;
  const long long *vars;
  void *scratch;
  unsigned *status;
};
#endif
static void k_0_gather_body(u16* restrict p0, const u16* restrict p1, const i64* restrict p2, const long long* vars, unsigned begin, unsigned end) {
  const i64 s0 = (i64)vars[0];
  const i64 v0 = (i64)s0;
  for (i32 r1 = (i32)begin; r1 < (i32)end; ++r1) {
    const i64 v2 = p2[r1];
    const b8 v3 = (b8)(0ll <= v2);
    const b8 v4 = (b8)(v2 < v0);
    const b8 v5 = (b8)(v3 & v4);
    const u16 v6 = v5 ? p1[v2] : 0;
    const f32 v7 = bf16_to_f32(v6);
    const f32 v8 = v7 * 0x1p1f;
    const u16 v9 = to_f16_f32(v8);
    p0[r1] = v9;
  }
}
void k_0_gather(const struct KernelArgs* args, unsigned begin, unsigned end) {
  k_0_gather_body(args->buffers[0], args->buffers[1], args->buffers[2], args->vars, begin, end);
}
