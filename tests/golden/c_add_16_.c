typedef int i32;
typedef float f32;
typedef f32 f32x16_u __attribute__((vector_size(64), aligned(4), may_alias));
typedef f32 f32x16 __attribute__((vector_size(64)));
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
static void k_0_add_16__body(f32* restrict p0, const f32* restrict p1, const f32* restrict p2, const long long* vars, unsigned begin, unsigned end) {
  for (i32 r0 = (i32)begin; r0 < (i32)end; ++r0) {
    const i32 v1 = r0 * 16;
    const f32x16 v2 = (f32x16)*(f32x16_u*)(p1 + v1);
    const f32x16 v3 = (f32x16)*(f32x16_u*)(p2 + v1);
    const f32x16 v4 = v2 + v3;
    *(f32x16_u*)(p0 + v1) = v4;
  }
}
void k_0_add_16_(const struct KernelArgs* args, unsigned begin, unsigned end) {
  k_0_add_16__body(args->buffers[0], args->buffers[1], args->buffers[2], args->vars, begin, end);
}
