typedef float f32;
typedef f32 f32x4 __attribute__((vector_size(16)));
typedef int i32;
typedef i32 i32x4 __attribute__((vector_size(16)));
typedef unsigned int u32;
typedef u32 u32x4 __attribute__((vector_size(16)));
#ifndef WEFT_splat_f32x4
#define WEFT_splat_f32x4
static inline __attribute__((always_inline)) f32x4 splat_f32x4(f32 x) { return (f32x4){x, x, x, x}; }
#endif
#ifndef WEFT_splat_i32x4
#define WEFT_splat_i32x4
static inline __attribute__((always_inline)) i32x4 splat_i32x4(i32 x) { return (i32x4){x, x, x, x}; }
#endif
typedef f32 f32x4_u __attribute__((vector_size(16), aligned(4), may_alias));
typedef _Bool b8;
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
static void k_0_argmax_body(f32* restrict p0, i32* restrict p1, const f32* restrict p2, const long long* vars, unsigned begin, unsigned end) {
  const f32x4 v0 = splat_f32x4((-__builtin_inff()));
  const i32x4 v1 = splat_i32x4(0);
  f32x4 a2 = v0;
  i32x4 a3 = v1;
  const i32x4 v4 = (i32x4){0, 1, 2, 3};
  for (i32 r5 = 0; r5 < 16; ++r5) {
    const i32 v6 = r5 * 4;
    const f32x4 v7 = (f32x4)*(f32x4_u*)(p2 + v6);
    const i32x4 v8 = splat_i32x4(v6);
    const i32x4 v9 = (i32x4)((u32x4)v8 + (u32x4)v4);
    const f32x4 v10 = a2;
    const i32x4 v11 = a3;
    const i32x4 v12 = (i32x4)(v10 < v7);
    const f32x4 v13 = (f32x4)(((i32x4)v7 & v12) | ((i32x4)v10 & ~v12));
    a2 = v13;
    const i32x4 v14 = (i32x4)(((i32x4)v9 & v12) | ((i32x4)v11 & ~v12));
    a3 = v14;
  }
  const f32x4 v15 = a2;
  const i32x4 v16 = a3;
  const f32 v17 = v15[0];
  const i32 v18 = v16[0];
  const f32 v19 = v15[1];
  const i32 v20 = v16[1];
  const b8 v21 = (b8)(v19 == v17);
  const b8 v22 = (b8)(v20 < v18);
  const b8 v23 = (b8)(v21 & v22);
  const b8 v24 = (b8)(v17 < v19);
  const b8 v25 = (b8)(v24 | v23);
  const f32 v26 = v25 ? v19 : v17;
  const i32 v27 = v25 ? v20 : v18;
  const f32 v28 = v15[2];
  const i32 v29 = v16[2];
  const b8 v30 = (b8)(v28 == v26);
  const b8 v31 = (b8)(v29 < v27);
  const b8 v32 = (b8)(v30 & v31);
  const b8 v33 = (b8)(v26 < v28);
  const b8 v34 = (b8)(v33 | v32);
  const f32 v35 = v34 ? v28 : v26;
  const i32 v36 = v34 ? v29 : v27;
  const f32 v37 = v15[3];
  const i32 v38 = v16[3];
  const b8 v39 = (b8)(v37 == v35);
  const b8 v40 = (b8)(v38 < v36);
  const b8 v41 = (b8)(v39 & v40);
  const b8 v42 = (b8)(v35 < v37);
  const b8 v43 = (b8)(v42 | v41);
  const f32 v44 = v43 ? v37 : v35;
  const i32 v45 = v43 ? v38 : v36;
  p0[0] = v44;
  p1[0] = v45;
}
void k_0_argmax(const struct KernelArgs* args, unsigned begin, unsigned end) {
  k_0_argmax_body(args->buffers[0], args->buffers[1], args->buffers[2], args->vars, begin, end);
}
