typedef int i32;
typedef float f32;
typedef f32 f32x8 __attribute__((vector_size(32)));
typedef i32 i32x8 __attribute__((vector_size(32)));
typedef unsigned int u32;
typedef u32 u32x8 __attribute__((vector_size(32)));
#ifndef WEFT_splat_f32x8
#define WEFT_splat_f32x8
static inline __attribute__((always_inline)) f32x8 splat_f32x8(f32 x) { return (f32x8){x, x, x, x, x, x, x, x}; }
#endif
typedef f32 f32x8_u __attribute__((vector_size(32), aligned(4), may_alias));
#ifndef WEFT_fma_f32x8
#define WEFT_fma_f32x8
static inline __attribute__((always_inline)) f32x8 fma_f32x8(f32x8 a, f32x8 b, f32x8 c) {
#if __has_builtin(__builtin_elementwise_fma)
  return __builtin_elementwise_fma(a, b, c);
#else
  f32x8 r; for (int k = 0; k < 8; k++) r[k] = __builtin_fmaf(a[k], b[k], c[k]); return r;
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
static void k_0_matmul_body(f32* restrict p0, const f32* restrict p1, const f32* restrict p2, const long long* vars, unsigned begin, unsigned end) {
  for (i32 r0 = (i32)begin; r0 < (i32)end; ++r0) {
    const f32x8 v1 = splat_f32x8(0x0p0f);
    f32x8 a2 = v1;
    for (i32 r3 = 0; r3 < 32; ++r3) {
      const i32 v4 = r0 * 32;
      const i32 v5 = v4 + r3;
      const f32 v6 = p1[v5];
      const f32x8 v7 = splat_f32x8(v6);
      const i32 v8 = r3 * 8;
      const f32x8 v9 = (f32x8)*(f32x8_u*)(p2 + v8);
      const f32x8 v10 = a2;
      const f32x8 v11 = fma_f32x8(v7, v9, v10);
      a2 = v11;
    }
    const f32x8 v12 = a2;
    const i32 v13 = r0 * 8;
    *(f32x8_u*)(p0 + v13) = v12;
  }
}
void k_0_matmul(const struct KernelArgs* args, unsigned begin, unsigned end) {
  k_0_matmul_body(args->buffers[0], args->buffers[1], args->buffers[2], args->vars, begin, end);
}
