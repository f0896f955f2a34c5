typedef int i32;
typedef _Bool b8;
typedef unsigned short u16;
typedef float f32;
typedef unsigned int u32;
#ifndef WEFT_cvt_u32_u16
#define WEFT_cvt_u32_u16
static inline __attribute__((always_inline)) u32 cvt_u32_u16(u16 x) { return (u32)x; }
#endif
#ifndef WEFT_as_u32_f32
#define WEFT_as_u32_f32
static inline __attribute__((always_inline)) u32 as_u32_f32(f32 x) { u32 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
#endif
#ifndef WEFT_as_f32_u32
#define WEFT_as_f32_u32
static inline __attribute__((always_inline)) f32 as_f32_u32(u32 x) { f32 r; __builtin_memcpy(&r, &x, sizeof r); return r; }
#endif
#ifndef WEFT_sel_u32
#define WEFT_sel_u32
static inline __attribute__((always_inline)) u32 sel_u32(int m, u32 a, u32 b) { return m ? a : b; }
#endif
#ifndef WEFT_f16_to_f32
#define WEFT_f16_to_f32
static inline __attribute__((always_inline)) f32 f16_to_f32(u16 h) {
#if defined(__F16C__) && defined(__clang__)
  _Float16 f; __builtin_memcpy(&f, &h, 2); return f;
#else
  u32 u = cvt_u32_u16(h), m = (u & 0x7fff) << 13;
  u32 normal = m + 0x38000000;
  u32 special = m + 0x70000000;
  u32 small = as_u32_f32(as_f32_u32(m + 0x38800000) - 0x1p-14f);
  m = sel_u32(m < 0x00800000, small, sel_u32(m >= 0x0f800000, special, normal));
  return as_f32_u32(m | (u & 0x8000) << 16);
#endif
}
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
static void k_0_scatter_body(u16* restrict p0, i32* restrict p1, const i32* restrict p2, const u16* restrict p3, const long long* vars, unsigned begin, unsigned end) {
  i32 v1 = 0;
  for (i32 r0 = 0; r0 < 200; ++r0) {
    v1 = p2[r0];
    const b8 v2 = (b8)(0 <= v1);
    if (v2) {
      const u16 v3 = p3[r0];
      const b8 v4 = (b8)(v1 < 50);
      const u16 v5 = v4 ? p0[v1] : 0;
      const f32 v6 = f16_to_f32(v5);
      const f32 v7 = f16_to_f32(v3);
      const f32 v8 = v6 + v7;
      const u16 v9 = to_f16_f32(v8);
      if (v4) {
        p0[v1] = v9;
      }
    }
  }
  p1[0] = v1;
}
void k_0_scatter(const struct KernelArgs* args, unsigned begin, unsigned end) {
  k_0_scatter_body(args->buffers[0], args->buffers[1], args->buffers[2], args->buffers[3], args->vars, begin, end);
}
