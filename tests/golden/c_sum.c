typedef long long i64;
typedef float f32;
typedef int i32;
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
static void k_0_sum_body(f32* restrict p0, const f32* restrict p1, const long long* vars, unsigned begin, unsigned end) {
  const i64 s0 = (i64)vars[0];
  f32 a0 = 0x0p0f;
  for (i64 r1 = 0; r1 < s0; ++r1) {
    const f32 v2 = a0;
    const f32 v3 = p1[r1];
    const f32 v4 = v2 + v3;
    a0 = v4;
  }
  const f32 v5 = a0;
  p0[0] = v5;
}
void k_0_sum(const struct KernelArgs* args, unsigned begin, unsigned end) {
  k_0_sum_body(args->buffers[0], args->buffers[1], args->vars, begin, end);
}
