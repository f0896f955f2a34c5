// weft.h: the C interface of weft (C11, and C++): tensors, every operation, gradients, captured
// functions, files, ONNX models, tokenizers; language models are in llm.h.
//
// Every function that can fail returns a weft_status; weft_last_error() says more. Nothing is
// thrown or aborted, whatever is passed, dangling pointers apart. Handles are numbers in the shape
// of pointers: one that was released, or is of another kind, is recognised (WEFT_ERROR_ARGUMENT).
// Results are written only where WEFT_OK is returned, if nothing else is said.
//
// Structs passed by pointer begin with their size: initialise them with WEFT_STRUCT(type). A
// library that is newer than its caller leaves fields that the caller does not know at their
// defaults; one that is older refuses fields it does not know, unless they are 0. weft_value never
// changes its layout.
//
// Threads. Any function may be called by any thread. Contexts, and tensors as long as nobody writes
// to them, may be used by several threads at once. weft_realize, weft_tensor_copy_out, _item,
// _text, weft_tensor_to_dlpack (which realize), weft_tensor_assign, _copy_in, weft_backward,
// weft_program_call, weft_model_call, weft_save, random functions and those of a weft_llm write:
// calls of those on one context need the caller's lock. Options are set before a context is shared.
// A handle may be released by any thread, at any time.
#ifndef WEFT_C_WEFT_H
#define WEFT_C_WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#ifdef __cplusplus
extern "C" {
#define WEFT_STRUCT(type)                      \
  ([] {                                        \
    type made = {};                            \
    made.struct_size = (uint32_t)sizeof(type); \
    return made;                               \
  }())
#else
#define WEFT_STRUCT(type) ((type){.struct_size = sizeof(type)})
#endif

// Grows when something is added to this header; the library's file name changes where anything else
// happens to it.
#define WEFT_ABI_VERSION 3
WEFT_API uint32_t weft_abi_version(void);  // of the library that was loaded
WEFT_API const char* weft_version(void);   // "0.1.0"

// ---- status

typedef int32_t weft_status;
enum {
  WEFT_OK = 0,
  WEFT_ERROR_VALUE = 1,     // a bad value or shape
  WEFT_ERROR_TYPE = 2,      // a bad dtype, or a value of the wrong kind
  WEFT_ERROR_INDEX = 3,     // out of range
  WEFT_ERROR_RUNTIME = 4,   // the world outside: files, compilers, data
  WEFT_ERROR_MEMORY = 5,    // an allocation, or the cap of WEFT_MEMORY_CAP
  WEFT_ERROR_DEVICE = 6,    // a driver
  WEFT_ERROR_INTERNAL = 7,  // a bug of weft's
  WEFT_ERROR_ARGUMENT = 8,  // NULL, a handle that is none, a struct_size that cannot be
  WEFT_ERROR_SPACE = 9      // not enough room for the results; the count that is needed was written
};

// What the last call of this thread that failed had to say. Texts live until the next one fails.
typedef struct weft_error {
  uint32_t struct_size;
  weft_status status;   // WEFT_OK where none failed yet
  const char* code;     // stable: "matmul", "safetensors.header"
  const char* tag;      // the code up to its first dot
  const char* message;  // "inner dimensions differ: got ..."
  const char* text;     // "[matmul] inner dimensions differ: got ... (main.c:12)"
} weft_error;
WEFT_API weft_status weft_last_error(weft_error* out);

// From here on this thread's errors and kernels belong to this line; `file` is a literal, or NULL.
WEFT_API void weft_call_site(const char* file, int32_t line);

// ---- context: options, devices, caches, the random state

typedef struct weft_context_handle* weft_context;
typedef struct weft_tensor_handle* weft_tensor;
typedef struct weft_program_handle* weft_program;
typedef struct weft_model_handle* weft_model;
typedef struct weft_tokenizer_handle* weft_tokenizer;
typedef struct weft_event_file_handle* weft_event_file;
typedef struct weft_llm_handle* weft_llm;            // llm.h
typedef struct weft_training_handle* weft_training;  // llm_train.h

// Options from the environment, then from `settings` ("WEFT_THREADS=2", ..., NULL), which may be
// NULL. The options: docs/options.md. A context lives until its last tensor and program are
// released too.
WEFT_API weft_status weft_context_create(const char* const* settings, weft_context* out);
WEFT_API void weft_context_release(weft_context context);  // NULL is allowed, as for all of these
// By name, with or without "WEFT_". Text is written with its final 0, where there is room; *length
// is what it takes without. NULL asks for the length alone.
WEFT_API weft_status weft_context_set(weft_context context, const char* name, const char* value);
WEFT_API weft_status weft_context_get(weft_context context, const char* name, char* text,
                                      size_t capacity, size_t* length);
// Starts the sequence of random numbers anew.
WEFT_API weft_status weft_seed(weft_context context, uint64_t seed);
// Records to `path` what is compiled and run from now on, for `weft viz`; to a new file of the
// state directory where it is NULL. An error where the context records already.
WEFT_API weft_status weft_start_recording(weft_context context, const char* path);
WEFT_API weft_status weft_stop_recording(weft_context context);  // nothing where none was begun
// Whether dropout and batch norm train, for this thread.
WEFT_API void weft_set_training(bool on);
WEFT_API bool weft_is_training(void);

typedef struct weft_device_info {
  uint32_t struct_size;
  uint32_t available;  // 1 or 0
  const char* name;    // "CPU:X86"; what the option WEFT_DEV takes
  const char* detail;  // what it is, or what is missing
} weft_device_info;    // texts live as long as the context
WEFT_API weft_status weft_device_count(weft_context context, size_t* count);
WEFT_API weft_status weft_describe_device(weft_context context, size_t index,
                                          weft_device_info* out);

// ---- element types; the numbers never change

typedef int32_t weft_dtype;
enum {
  WEFT_BOOL = 1,
  WEFT_I8 = 2,
  WEFT_I16 = 3,
  WEFT_I32 = 4,
  WEFT_I64 = 5,
  WEFT_U8 = 6,
  WEFT_U16 = 7,
  WEFT_U32 = 8,
  WEFT_U64 = 9,
  WEFT_F16 = 10,
  WEFT_BF16 = 11,
  WEFT_F32 = 12,
  WEFT_F64 = 13,
  WEFT_F8E4M3 = 15,
  WEFT_F8E5M2 = 16,
  WEFT_F8E4M3FNUZ = 17,
  WEFT_F8E5M2FNUZ = 18
};
typedef struct weft_dtype_info {
  uint32_t struct_size;
  uint32_t bits;
  const char* name;  // "f32"
} weft_dtype_info;
WEFT_API weft_status weft_describe_dtype(weft_dtype dtype, weft_dtype_info* out);

// ---- values: what operations take

typedef uint32_t weft_kind;
enum {
  WEFT_NONE = 0,  // the parameter's default
  WEFT_BOOLEAN = 1,
  WEFT_INT = 2,
  WEFT_FLOAT = 3,
  WEFT_TEXT = 4,
  WEFT_TENSOR = 5,
  WEFT_DTYPE = 6,
  WEFT_INTS = 7,
  WEFT_FLOATS = 8,
  WEFT_TENSORS = 9
};
typedef struct weft_value {
  weft_kind kind;
  uint32_t reserved;  // 0
  const char* name;   // the parameter's; NULL: the next one in order
  union {
    bool boolean;
    int64_t integer;
    double number;
    const char* text;
    weft_tensor tensor;
    weft_dtype dtype;
    const int64_t* ints;
    const double* numbers;
    const weft_tensor* tensors;
  } as;
  uint64_t count;  // of a list
} weft_value;

#define WEFT_VALUE_(function, parameter, kind_, field) \
  static inline weft_value function(parameter x) {     \
    weft_value v = {kind_, 0, NULL, {false}, 0};       \
    v.as.field = x;                                    \
    return v;                                          \
  }
#define WEFT_LIST_(function, parameter, kind_, field)        \
  static inline weft_value function(parameter x, size_t n) { \
    weft_value v = {kind_, 0, NULL, {false}, 0};             \
    v.as.field = x;                                          \
    v.count = n;                                             \
    return v;                                                \
  }
WEFT_VALUE_(weft_bool, bool, WEFT_BOOLEAN, boolean)
WEFT_VALUE_(weft_int, int64_t, WEFT_INT, integer)
WEFT_VALUE_(weft_float, double, WEFT_FLOAT, number)
WEFT_VALUE_(weft_text, const char*, WEFT_TEXT, text)
WEFT_VALUE_(weft_arg, weft_tensor, WEFT_TENSOR, tensor)
WEFT_VALUE_(weft_of_dtype, weft_dtype, WEFT_DTYPE, dtype)
WEFT_LIST_(weft_ints, const int64_t*, WEFT_INTS, ints)
WEFT_LIST_(weft_floats, const double*, WEFT_FLOATS, numbers)
WEFT_LIST_(weft_args, const weft_tensor*, WEFT_TENSORS, tensors)
#undef WEFT_VALUE_
#undef WEFT_LIST_
// weft_named("stride", weft_int(2)): for the parameter of this name.
static inline weft_value weft_named(const char* name, weft_value v) {
  v.name = name;
  return v;
}

// ---- operations

// Applies the operation `name` to values: those without a name in the order of its parameters, the
// others by name; what is not given has its default. Writes the *count tensors it gives to `outs`;
// where they are more than `capacity`, none, and WEFT_ERROR_SPACE. Lazy: nothing runs before
// weft_realize. Creation and random functions are operations too: "zeros", "arange", "rand".
// `context` may be NULL where a value is a tensor.
WEFT_API weft_status weft_apply(weft_context context, const char* name, const weft_value* values,
                                size_t value_count, weft_tensor* outs, size_t capacity,
                                size_t* count);
// The operations there are, in alphabetical order.
typedef struct weft_op_info {
  uint32_t struct_size;
  uint32_t parameters;    // how many
  const char* name;       // "softmax"
  const char* signature;  // "softmax(x: tensor, axis: int = -1) -> tensor"
  const char* doc;        // a line, or ""; docs/ops.md says where each is described
} weft_op_info;
WEFT_API size_t weft_op_count(void);
WEFT_API weft_status weft_describe_op(size_t index, weft_op_info* out);
WEFT_API weft_status weft_find_op(const char* name, weft_op_info* out);

// ---- tensors

// Elements in host memory, row-major. Copied, or with WEFT_BORROW read where they are, if they are
// aligned: weft never writes there, and calls deleter(deleter_context), unless it is NULL, when the
// last reader is gone, on any thread. Where creation fails it is not called.
enum { WEFT_BORROW = 1 };
typedef struct weft_array {
  uint32_t struct_size;
  weft_dtype dtype;
  uint32_t rank;
  uint32_t flags;  // 0 or WEFT_BORROW
  const int64_t* shape;
  const void* data;
  uint64_t bytes;  // exactly what the shape takes
  void (*deleter)(void* deleter_context);
  void* deleter_context;
} weft_array;
WEFT_API weft_status weft_tensor_create(weft_context context, const weft_array* from,
                                        weft_tensor* out);
// Another handle of the same tensor: what is written to one is seen by the other.
WEFT_API weft_status weft_tensor_share(weft_tensor x, weft_tensor* out);
WEFT_API void weft_tensor_release(weft_tensor x);

WEFT_API weft_status weft_tensor_dtype(weft_tensor x, weft_dtype* out);
WEFT_API weft_status weft_tensor_rank(weft_tensor x, size_t* out);
// `capacity` numbers of room; WEFT_ERROR_SPACE where that is below the rank.
WEFT_API weft_status weft_tensor_shape(weft_tensor x, int64_t* sizes, size_t capacity,
                                       size_t* rank);
// Elements from one position to the next in what copy_out and DLPack give: row-major.
WEFT_API weft_status weft_tensor_strides(weft_tensor x, int64_t* strides, size_t capacity,
                                         size_t* rank);
WEFT_API weft_status weft_tensor_device(weft_tensor x, char* text, size_t capacity, size_t* length);
// "f32 (2, 2) [[1, 2], [3, 4]]"
WEFT_API weft_status weft_tensor_text(weft_tensor x, char* text, size_t capacity, size_t* length);

// Runs what these need, together.
WEFT_API weft_status weft_realize(const weft_tensor* tensors, size_t count);
// All elements, row-major, in the tensor's dtype; `bytes` is exactly what they take.
WEFT_API weft_status weft_tensor_copy_out(weft_tensor x, void* to, uint64_t bytes);
WEFT_API weft_status weft_tensor_copy_in(weft_tensor x, const void* from, uint64_t bytes);
// The one element: WEFT_BOOLEAN, WEFT_INT (u64 beyond INT64_MAX: WEFT_FLOAT) or WEFT_FLOAT.
WEFT_API weft_status weft_tensor_item(weft_tensor x, weft_value* out);
// Replaces the elements of x by value's, broadcast and cast; all views of them see it.
WEFT_API weft_status weft_tensor_assign(weft_tensor x, weft_tensor value);

// ---- gradients

// A leaf that weft_backward() fills the gradient of.
WEFT_API weft_status weft_tensor_set_requires_grad(weft_tensor x, bool on);
WEFT_API weft_status weft_tensor_requires_grad(weft_tensor x, bool* out);
// *out is NULL before the first weft_backward().
WEFT_API weft_status weft_tensor_grad(weft_tensor x, weft_tensor* out);
WEFT_API weft_status weft_tensor_zero_grad(weft_tensor x);
// `gradient` is NULL for a loss of one element.
WEFT_API weft_status weft_backward(weft_tensor loss, weft_tensor gradient);
// d y / d target for each of `count` targets, themselves differentiable; upstream may be NULL.
WEFT_API weft_status weft_gradient(weft_tensor y, weft_tensor upstream, const weft_tensor* targets,
                                   size_t count, weft_tensor* outs);

// ---- functions of the program's own

// Called with handles that live for the call; writes at most `capacity` handles, which then belong
// to the library, and how many. What it returns, if not WEFT_OK, its caller returns.
typedef weft_status (*weft_function)(void* user, const weft_tensor* arguments, size_t count,
                                     weft_tensor* outs, size_t capacity, size_t* out_count);

// weft_backward() of a loss in `parts` micro-batches, one after the other: equal within rounding,
// with the memory of one, compiled once. Each tensor of the batch is cut along its first axis into
// `parts` equal pieces; `loss` gives one tensor of one number for a piece of each. It is traced:
// its arguments have no values, and it is called twice where it assigns. `out`: the mean of the
// pieces' losses, or their sum. What the loss assigns and draws is as in a loop over the pieces.
WEFT_API weft_status weft_accumulate_gradients(weft_function loss, void* user,
                                               const weft_tensor* batch, size_t count,
                                               int64_t parts, bool sum, weft_tensor* out);

// ---- captured functions

typedef struct weft_program_source {
  uint32_t struct_size;
  uint32_t reserved;  // 0
  const char* name;   // for messages; NULL: "program"
  weft_function function;
  void* user;
} weft_program_source;
// The first call runs the function, the second runs and records it, later ones launch the recorded
// kernels on new arguments of the same shapes. Tensors it uses otherwise are read and written as
// they are then; whatever else it does happens in two calls only. Results are realized.
WEFT_API weft_status weft_program_create(weft_context context, const weft_program_source* source,
                                         weft_program* out);
WEFT_API weft_status weft_program_call(weft_program program, const weft_tensor* arguments,
                                       size_t count, weft_tensor* outs, size_t capacity,
                                       size_t* out_count);
WEFT_API weft_status weft_program_kernels(weft_program program,
                                          size_t* out);  // 0: not captured yet
// Memory of what it computed once from tensors that no call changes; WEFT_KEEP_CONSTANTS=0: none.
WEFT_API weft_status weft_program_kept_bytes(weft_program program, int64_t* out);
// Memory that a call needs: what it reads and keeps, outputs, intermediates; 0: not captured yet.
WEFT_API weft_status weft_program_planned_bytes(weft_program program, int64_t* out);
WEFT_API weft_status weft_program_reset(weft_program program);
WEFT_API void weft_program_release(weft_program program);

// ---- files

// One safetensors file, replaced atomically.
WEFT_API weft_status weft_save(const char* path, const char* const* names,
                               const weft_tensor* tensors, size_t count);
// A safetensors file, an index of several or a directory with either, a file of PyTorch's, an .npz
// or an .npy (whose name is ""): by what it is, not by what it is called. Nothing is copied before
// it is used. Calls found() for every tensor, sorted by name; the handle belongs to it. Not WEFT_OK
// ends the loading.
WEFT_API weft_status weft_load(weft_context context, const char* path,
                               weft_status (*found)(void* user, const char* name, weft_tensor x),
                               void* user);

// ---- curves of a training

// A new file of events in `folder`, made where it is missing, for `tensorboard --logdir FOLDER`.
// May be used by several threads at once. Releasing it writes the rest.
WEFT_API weft_status weft_event_file_create(const char* folder, weft_event_file* out);
// A point of the curve `tag`, in single precision, at the time of now.
WEFT_API weft_status weft_event_file_scalar(weft_event_file file, const char* tag, double value,
                                            int64_t step);
// What was not written yet; done every two seconds anyway.
WEFT_API weft_status weft_event_file_flush(weft_event_file file);
// Of the file, as weft_context_get().
WEFT_API weft_status weft_event_file_path(weft_event_file file, char* path, size_t capacity,
                                          size_t* length);
WEFT_API void weft_event_file_release(weft_event_file file);

// ---- ONNX models

// What lacks an operator, is damaged or is none is an error here. The first call for inputs of
// given types and shapes captures what it launches, later ones replay that. One call at a time.
WEFT_API weft_status weft_model_open(weft_context context, const char* path, weft_model* out);
// How many inputs have to be given, and outputs there are; their names, as weft_context_get().
WEFT_API weft_status weft_model_counts(weft_model model, size_t* inputs, size_t* outputs);
WEFT_API weft_status weft_model_input(weft_model model, size_t index, char* name, size_t capacity,
                                      size_t* length);
WEFT_API weft_status weft_model_output(weft_model model, size_t index, char* name, size_t capacity,
                                       size_t* length);
// Inputs by name, in any order; outputs in the order of the model's, realized. An output that is
// no tensor (strings, a sequence, a map) is WEFT_ERROR_TYPE.
WEFT_API weft_status weft_model_call(weft_model model, const char* const* names,
                                     const weft_tensor* inputs, size_t count, weft_tensor* outs,
                                     size_t capacity, size_t* out_count);
// Of the last call: launches of its replay; 0 where it ran node by node.
WEFT_API weft_status weft_model_kernels(weft_model model, size_t* out);
WEFT_API void weft_model_release(weft_model model);
// What `function`, called once with placeholders for tensors like `inputs`, computes, as an ONNX
// file; `results` is the most that it gives. Inputs and outputs are called input_0, output_0, ...
WEFT_API weft_status weft_export_onnx(const char* path, weft_function function, void* user,
                                      const weft_tensor* inputs, size_t count, size_t results);

// ---- tokenizers

// Of a tokenizer.json, a folder with one, or a GGUF file. May be used by several threads at once.
WEFT_API weft_status weft_tokenizer_open(const char* path, weft_tokenizer* out);
// With the special tokens that the tokenizer adds, or none. *count: how many there are, also where
// there is no room for them; NULL ids ask for it alone.
WEFT_API weft_status weft_tokenizer_encode(weft_tokenizer tokenizer, const char* text,
                                           bool special_tokens, int32_t* ids, size_t capacity,
                                           size_t* count);
// Special tokens are left out. As weft_context_get().
WEFT_API weft_status weft_tokenizer_decode(weft_tokenizer tokenizer, const int32_t* ids,
                                           size_t count, char* text, size_t capacity,
                                           size_t* length);
// A chat (JSON: [{"role": "user", "content": "Hi"}]) as the text that its model was trained on, by
// the tokenizer's template, or ChatML; `tools` is JSON, too, as OpenAI's API has them, or NULL. Its
// tokens: weft_tokenizer_encode() without special tokens around it. As weft_context_get().
WEFT_API weft_status weft_tokenizer_chat(weft_tokenizer tokenizer, const char* messages,
                                         const char* tools, char* text, size_t capacity,
                                         size_t* length);
WEFT_API void weft_tokenizer_release(weft_tokenizer tokenizer);
// Learns a byte-level tokenizer of at most vocab_size tokens and writes it as a tokenizer.json.
// special_tokens ends with NULL, or is NULL; they get the lowest ids.
WEFT_API weft_status weft_tokenizer_train(const char* path, const char* const* texts, size_t count,
                                          size_t vocab_size, const char* const* special_tokens);

// ---- other libraries

// DLPack 1.x (dlpack.h): the result is read-only memory of the tensor, or a copy; the caller calls
// its deleter.
struct DLManagedTensorVersioned;
WEFT_API weft_status weft_tensor_to_dlpack(weft_tensor x, bool copy,
                                           struct DLManagedTensorVersioned** out);
// Takes `from` over where WEFT_OK is returned, and calls its deleter when the last reader is gone.
WEFT_API weft_status weft_tensor_from_dlpack(weft_context context,
                                             struct DLManagedTensorVersioned* from, bool copy,
                                             weft_tensor* out);

#ifdef __cplusplus
}
#endif

#endif
