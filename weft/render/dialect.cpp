#include "weft/render/dialect.h"

namespace weft {

namespace {

// Unions are allowed to reinterpret in OpenCL C, which is C99 (OpenCL C 1.2, 6.2.4.1).
constexpr CFamily kOpenclFamilies[] = {
    {"as", "$T $F($S x) { union { $S s; $T t; } u; u.s = x; return u.t; }", ""},
    {"sqrt", "$T $F($T x) { return sqrt(x); }", ""},
    {"fma", "$T $F($T a, $T b, $T c) { return fma(a, b, c); }", ""},
    {"trunc", "$T $F($T x) { return trunc(x); }", ""},
};

// CUDA and HIP: C++, with the names of <math.h> and memcpy known to the compiler.
constexpr CFamily kCudaFamilies[] = {
    {"as", "$T $F($S x) { $T r; memcpy(&r, &x, sizeof r); return r; }", ""},
    {"sqrt", "$T $F($T x) { return sqrt$f(x); }", ""},
    {"fma", "$T $F($T a, $T b, $T c) { return fma$f(a, b, c); }", ""},
    {"trunc", "$T $F($T x) { return trunc$f(x); }", ""},
    {"shuffle", "$T $F($T x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }", ""},
};

constexpr CFamily kMetalFamilies[] = {
    {"as", "$T $F($S x) { return as_type<$T>(x); }", ""},
    {"sqrt", "$T $F($T x) { return precise::sqrt(x); }", ""},
    {"fma", "$T $F($T a, $T b, $T c) { return fma(a, b, c); }", ""},
    {"trunc", "$T $F($T x) { return trunc(x); }", ""},
    {"shuffle", "$T $F($T x, int mask) { return simd_shuffle_xor(x, (ushort)mask); }", ""},
};

constexpr CFamily kHipFamilies[] = {
    kCudaFamilies[0],
    kCudaFamilies[1],
    kCudaFamilies[2],
    kCudaFamilies[3],
    {"shuffle", "$T $F($T x, int mask) { return __shfl_xor(x, mask); }", ""},
};

constexpr std::string_view kCudaItem = "blockIdx.x * blockDim.x + threadIdx.x";

/// CUDA and what is compiled like it, after these first lines.
constexpr CDialect cuda_like(std::string_view name, std::string_view header,
                             std::span<const CFamily> families) {
  return {.name = name,
          .header = header,
          .inline_prefix = "static __device__ __forceinline__ ",
          .body_prefix = "static __device__ __forceinline__ ",
          .entry_prefix = "extern \"C\" __global__ void ",
          .memory = "",
          .restrict_word = " __restrict__",
          .long_word = "long long",
          .long_suffix = "ll",
          .bool_word = "bool",
          .infinity = "",
          .repeats_typedefs = true,
          .vectors = false,
          .families = families,
          .param = "$T* p$N",
          .argument = "p$N",
          .variable = "long long var$N",
          .count = "unsigned $N",
          .item_param = "",
          .item = kCudaItem,
          .group_id = "blockIdx.$X",
          .item_id = "threadIdx.$X",
          .local_memory = "__shared__ ",
          .barrier = "__syncthreads();",
          .group_size = "__launch_bounds__($N) "};
}

// No compiler may contract a * b + c: which products are fused is decided before, in the program.
// Where a pragma cannot say it (nvcc, NVRTC), the device has to: --fmad=false.
constexpr CDialect kDialects[] = {
    {.name = "c",
     .header = "",
     .inline_prefix = "static inline __attribute__((always_inline)) ",
     .body_prefix = "static ",
     .entry_prefix = "void ",
     .memory = "",
     .restrict_word = " restrict",
     .long_word = "long long",
     .long_suffix = "ll",
     .bool_word = "_Bool",
     .infinity = "__builtin_inf",
     .repeats_typedefs = true,
     .vectors = true},
    // A buffer is its memory object and an offset in bytes, because objects that begin inside of
    // another have to be aligned as the device says (CL_DEVICE_MEM_BASE_ADDR_ALIGN), slices not.
    {.name = "opencl",
     .header = "#pragma OPENCL FP_CONTRACT OFF\n"
               "#ifdef cl_khr_fp64\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif\n",
     .inline_prefix = "static inline ",
     .body_prefix = "static inline ",
     .entry_prefix = "__kernel void ",
     .memory = "__global ",
     .restrict_word = " restrict",
     .long_word = "long",
     .long_suffix = "l",
     .bool_word = "bool",
     .infinity = "",
     .repeats_typedefs = false,
     .vectors = false,
     .families = kOpenclFamilies,
     .param = "__global $T* p$N, ulong at$N",
     .argument = "(__global $T*)((__global char*)p$N + at$N)",
     .variable = "long var$N",
     .count = "uint $N",
     .item_param = "",
     .item = "get_global_id(0)",
     .group_id = "get_group_id($A)",
     .item_id = "get_local_id($A)",
     .local_memory = "__local ",
     .local_pointer = "__local ",
     .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
     .group_size = "__attribute__((reqd_work_group_size($X, $Y, $Z))) "},
    cuda_like("cuda", "", kCudaFamilies),
    cuda_like("hip",
              "#ifndef __HIPCC_RTC__\n#include <hip/hip_runtime.h>\n#endif\n"
              "#pragma clang fp contract(off)\n",
              kHipFamilies),
    {.name = "metal",
     .header = "#include <metal_stdlib>\nusing namespace metal;\n#pragma clang fp contract(off)\n",
     .inline_prefix = "static inline ",
     .body_prefix = "static inline ",
     .entry_prefix = "kernel void ",
     .memory = "device ",
     .restrict_word = "",
     .long_word = "long",
     .long_suffix = "l",
     .bool_word = "bool",
     .infinity = "",
     .repeats_typedefs = true,
     .vectors = false,
     .families = kMetalFamilies,
     .param = "device $T* p$N [[buffer($B)]]",
     .argument = "p$N",
     .variable = "constant long& var$N [[buffer($B)]]",
     .count = "constant uint& $N [[buffer($B)]]",
     .item_param = ", uint item [[thread_position_in_grid]]",
     .item = "item",
     .group_param = ", uint3 group [[threadgroup_position_in_grid]]"
                    ", uint3 member [[thread_position_in_threadgroup]]",
     .group_id = "group.$X",
     .item_id = "member.$X",
     .local_memory = "threadgroup ",
     .local_pointer = "threadgroup ",
     .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"},
};

}  // namespace

const CDialect* find_dialect(std::string_view name) {
  for (const CDialect& row : kDialects)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace weft
