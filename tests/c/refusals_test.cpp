// The C interface: what no header allows, structs of other versions, and what the library exports.
#include <dlfcn.h>

#include <cstring>
#include <sstream>
#include <thread>

#include "tests/c/c_test.h"
#include "tests/docs/functions.h"
#include "weft/dtype/dtype.h"

namespace weft::c {
namespace {

TEST_F(CTest, NullsAreRefused) {
  const Tensor x = context.ones({2});
  weft_tensor out = nullptr;
  size_t n = 0;
  weft_value v = weft_arg(x.get());
  EXPECT_REFUSED(weft_context_create(nullptr, nullptr), WEFT_ERROR_ARGUMENT, "out is NULL");
  EXPECT_REFUSED(weft_apply(nullptr, "zeros", nullptr, 0, &out, 1, &n), WEFT_ERROR_VALUE,
                 "missing");
  EXPECT_REFUSED(weft_apply(context.get(), nullptr, &v, 1, &out, 1, &n), WEFT_ERROR_ARGUMENT,
                 "name is NULL");
  EXPECT_REFUSED(weft_apply(context.get(), "exp", nullptr, 1, &out, 1, &n), WEFT_ERROR_ARGUMENT,
                 "values is NULL");
  EXPECT_REFUSED(weft_apply(context.get(), "exp", &v, 1, nullptr, 1, &n), WEFT_ERROR_ARGUMENT,
                 "outs is NULL");
  v = weft_text(nullptr);
  EXPECT_REFUSED(weft_apply(context.get(), "exp", &v, 1, &out, 1, &n), WEFT_ERROR_ARGUMENT,
                 "x is NULL");
  const int64_t two = 2;
  v = weft_ints(&two, 1);
  EXPECT_REFUSED(weft_apply(nullptr, "zeros", &v, 1, &out, 1, &n), WEFT_ERROR_ARGUMENT,
                 "no value is a tensor");
  v = weft_ints(nullptr, 2);
  EXPECT_REFUSED(weft_apply(context.get(), "zeros", &v, 1, &out, 1, &n), WEFT_ERROR_ARGUMENT,
                 "NULL");
  EXPECT_REFUSED(weft_tensor_dtype(nullptr, nullptr), WEFT_ERROR_ARGUMENT, "tensor is NULL");
  EXPECT_REFUSED(weft_tensor_dtype(x.get(), nullptr), WEFT_ERROR_ARGUMENT, "out is NULL");
  EXPECT_REFUSED(weft_tensor_copy_out(x.get(), nullptr, 8), WEFT_ERROR_ARGUMENT, "data is NULL");
  EXPECT_REFUSED(weft_realize(nullptr, 3), WEFT_ERROR_ARGUMENT, "tensors is NULL");
  EXPECT_REFUSED(weft_save(nullptr, nullptr, nullptr, 0), WEFT_ERROR_ARGUMENT, "path is NULL");
  EXPECT_REFUSED(weft_context_get(context.get(), "DEV", nullptr, 0, nullptr), WEFT_ERROR_ARGUMENT,
                 "length is NULL");
  EXPECT_EQ(weft_last_error(nullptr), WEFT_ERROR_ARGUMENT);
  EXPECT_EQ(weft_realize(nullptr, 0), WEFT_OK);
  weft_tensor_release(nullptr);
  weft_context_release(nullptr);
  weft_program_release(nullptr);
}

TEST_F(CTest, DeadAndForeignHandlesAreRefused) {
  Tensor x = context.ones({2});
  const weft_tensor dead = x.get();
  x = Tensor();
  weft_dtype d = 0;
  EXPECT_REFUSED(weft_tensor_dtype(dead, &d), WEFT_ERROR_ARGUMENT, "released");
  weft_tensor_release(dead);                        // twice does no harm
  for (int i = 0; i < 100; ++i) context.ones({2});  // its place is used again
  EXPECT_REFUSED(weft_tensor_dtype(dead, &d), WEFT_ERROR_ARGUMENT, "released");
  EXPECT_REFUSED(weft_tensor_dtype(reinterpret_cast<weft_tensor>(context.get()), &d),
                 WEFT_ERROR_ARGUMENT, "no tensor");
  size_t n = 0;
  const Tensor y = context.ones({2});
  EXPECT_REFUSED(weft_device_count(reinterpret_cast<weft_context>(y.get()), &n),
                 WEFT_ERROR_ARGUMENT, "no context");
  weft_context_release(reinterpret_cast<weft_context>(y.get()));  // not that either
  EXPECT_EQ(weft_tensor_dtype(y.get(), &d), WEFT_OK);
  EXPECT_REFUSED(weft_tensor_dtype(reinterpret_cast<weft_tensor>(&d), &d), WEFT_ERROR_ARGUMENT,
                 "no tensor");
  EXPECT_REFUSED(weft_tensor_dtype(reinterpret_cast<weft_tensor>(UINT64_MAX), &d),
                 WEFT_ERROR_ARGUMENT, "no tensor");
}

TEST_F(CTest, ArgumentsAreToldFromEachOther) {
  const Tensor x = context.ones({2, 2});
  const auto refused = [&](const char* name, const std::vector<Value>& values, const char* words) {
    try {
      results(nullptr, name, values);
      ADD_FAILURE() << name << " was not refused";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
  };
  refused("matmul", {x}, "other is missing: matmul(x: tensor, other: tensor) -> tensor");
  refused("matmul", {x, x, x}, "3 values for 2 parameters");
  refused("matmul", {x, 3}, "other takes a value of type tensor: got an int");
  refused("sum", {x, 0.5}, "axes takes a value of type ints: got a float");
  refused("sum", {x, named("axis", 0)}, "did you mean axes?");
  refused("sum", {x, named("x", x)}, "x is given twice");
  refused("softmax", {x, "last"}, "got a text");
  refused("softmax", {x, 2}, "axis 2 is out of range");
  refused("mse_loss", {x, x, "average"}, "reduction is one of none|mean|sum: got \"average\"");
  refused("cast", {x, "float31"}, "no dtype is called \"float31\"");
  refused("cast", {x, 14}, "no dtype has the number 14");
  refused("pad", {x, std::vector<int64_t>{1}}, "no pair for every axis");
  refused("softmaxx", {x}, "did you mean softmax?");
  refused("any", {x, 0, 2}, "keepdim takes a value of type bool");

  weft_value v = weft_arg(x.get());
  v.kind = 10;
  weft_tensor out = nullptr;
  EXPECT_REFUSED(weft_apply(nullptr, "exp", &v, 1, &out, 1, nullptr), WEFT_ERROR_TYPE, "kind 10");
  v = weft_arg(x.get());
  v.reserved = 1;
  EXPECT_REFUSED(weft_apply(nullptr, "exp", &v, 1, &out, 1, nullptr), WEFT_ERROR_ARGUMENT,
                 "reserved");
  const int64_t one = 1;
  v = weft_ints(&one, SIZE_MAX);
  EXPECT_REFUSED(weft_apply(context.get(), "zeros", &v, 1, &out, 1, nullptr), WEFT_ERROR_VALUE,
                 "a list of");
}

TEST_F(CTest, ErrorsSayCodeTagAndLine) {
  weft_call_site("/home/me/net.c", 12);
  const Tensor x = context.ones({4, 3});
  EXPECT_THROW(apply("matmul", x, context.ones({5, 2})), Error);
  weft_call_site(nullptr, 0);
  weft_error e = last_error();
  EXPECT_EQ(e.status, WEFT_ERROR_VALUE);
  EXPECT_STREQ(e.code, "matmul");
  EXPECT_STREQ(e.tag, "matmul");
  EXPECT_EQ(std::string(e.message).find("[matmul]"), std::string::npos);
  EXPECT_NE(std::string(e.text).find("[matmul] inner"), std::string::npos);
  EXPECT_NE(std::string(e.text).find("(net.c:12)"), std::string::npos) << e.text;
  std::thread([] { EXPECT_EQ(last_error().status, WEFT_OK); }).join();
  EXPECT_THROW(apply("matmul", x, x), Error);
  EXPECT_EQ(std::string(last_error().text).find("weft.h"), std::string::npos) << last_error().text;
}

TEST_F(CTest, StructsOfOtherVersions) {
  struct Newer {
    weft_op_info known;
    uint64_t more;
  } newer = {WEFT_STRUCT(weft_op_info), 5};
  newer.known.struct_size = sizeof(newer);
  ASSERT_EQ(weft_find_op("softmax", &newer.known), WEFT_OK);
  EXPECT_EQ(newer.more, 0u);  // what this library does not know is at its default
  EXPECT_EQ(newer.known.struct_size, sizeof(newer));

  weft_error older = WEFT_STRUCT(weft_error);  // a header without `text`
  older.struct_size = offsetof(weft_error, text);
  older.text = "untouched";
  ASSERT_EQ(weft_last_error(&older), WEFT_OK);
  EXPECT_STREQ(older.text, "untouched");

  const float data[] = {1};
  struct NewerArray {
    weft_array known;
    uint64_t more;
  } a = {WEFT_STRUCT(weft_array), 0};
  a.known.dtype = WEFT_F32;
  a.known.data = data;
  a.known.bytes = 4;
  a.known.struct_size = sizeof(a);
  weft_tensor x = nullptr;
  ASSERT_EQ(weft_tensor_create(context.get(), &a.known, &x), WEFT_OK);
  weft_tensor_release(x);
  a.more = 1;
  EXPECT_REFUSED(weft_tensor_create(context.get(), &a.known, &x), WEFT_ERROR_ARGUMENT,
                 "newer version");
  a.known.struct_size = offsetof(weft_array, deleter);  // a header without deleters
  a.known.deleter = [](void*) { ADD_FAILURE(); };
  ASSERT_EQ(weft_tensor_create(context.get(), &a.known, &x), WEFT_OK);
  weft_tensor_release(x);
  for (const uint32_t size : {0u, 3u, 1u << 20}) {
    a.known.struct_size = size;
    EXPECT_REFUSED(weft_tensor_create(context.get(), &a.known, &x), WEFT_ERROR_ARGUMENT,
                   "WEFT_STRUCT");
  }
}

TEST_F(CTest, ArraysThatCannotBe) {
  weft_array a = WEFT_STRUCT(weft_array);
  const int64_t shape[] = {INT64_MAX, INT64_MAX};
  weft_tensor x = nullptr;
  const auto refused = [&](weft_status status, const char* words) {
    EXPECT_REFUSED(weft_tensor_create(context.get(), &a, &x), status, words);
  };
  refused(WEFT_ERROR_TYPE, "number 0");
  a.dtype = -1, refused(WEFT_ERROR_TYPE, "number -1");
  a.dtype = 14, refused(WEFT_ERROR_TYPE, "number 14");  // index: no tensor holds it
  a.dtype = WEFT_F32, a.rank = 2, refused(WEFT_ERROR_ARGUMENT, "shape is NULL");
  a.shape = shape, refused(WEFT_ERROR_VALUE, "more than there can be");
  a.rank = 1000, refused(WEFT_ERROR_VALUE, "1000 axes");
  a.rank = 0, a.bytes = 4, refused(WEFT_ERROR_ARGUMENT, "data is NULL");
  a.flags = 2, a.data = &a, refused(WEFT_ERROR_ARGUMENT, "no flag 2");
  a.flags = 0, a.deleter = [](void*) {};
  refused(WEFT_ERROR_ARGUMENT, "set WEFT_BORROW");
}

TEST(CLibrary, VersionsAndDtypes) {
  EXPECT_EQ(weft_abi_version(), static_cast<uint32_t>(WEFT_ABI_VERSION));
  EXPECT_STREQ(weft_version(), "0.1.0");
  for (const DTypeRow& row : kDTypes) {
    weft_dtype_info info = WEFT_STRUCT(weft_dtype_info);
    const auto id = static_cast<weft_dtype>(row.dtype);
    if (!is_data(row.dtype)) {
      EXPECT_EQ(weft_describe_dtype(id, &info), WEFT_ERROR_TYPE);
      continue;
    }
    ASSERT_EQ(weft_describe_dtype(id, &info), WEFT_OK);
    EXPECT_EQ(info.name, row.name);
    EXPECT_EQ(info.bits, static_cast<uint32_t>(row.bits));
  }
}

// ---- the table of operations

/// Not operations of C's: functions of its own, C++ spellings, what takes functions, and what only
/// C++ has.
bool is_no_operation(const std::string& name) {
  for (const char* other : {"from",
                            "of",
                            "from_bytes",
                            "manual_seed",
                            "operator[]",
                            "size",
                            "numel",
                            "ndim",
                            "shape",
                            "dims",
                            "dim",
                            "assign",
                            "requires_grad_",
                            "grad",
                            "zero_grad",
                            "backward",
                            "gradient",
                            "realize",
                            "to_vector",
                            "item",
                            "copy_from",
                            "copy_to",
                            "pads_from_last",
                            "pad_to",
                            "shrink_to",
                            "fold",
                            "vmap",
                            "vjp",
                            "jvp",
                            "value_and_grad",
                            "jacobian",
                            "hessian",
                            "scan",
                            "while_loop",
                            "checkpoint",
                            "accumulate_gradients",
                            "with_gradient",
                            "traced",
                            "custom_kernel"})
    if (name == other) return true;
  return name.find('=') != std::string::npos || name.find("operator") != std::string::npos;
}

TEST(CLibrary, EveryFunctionOfTheDocsIsAnOperation) {
  weft_op_info info = WEFT_STRUCT(weft_op_info);
  for (const FunctionFamily& family : kFunctionFamilies)
    for (const FunctionRow& row : family.rows) {
      std::istringstream names(row.header && !is_of_python(row) ? row.names : "");
      for (std::string name; names >> name;)
        if (!is_no_operation(name)) {
          EXPECT_EQ(weft_find_op(name == "pad_modes" ? "pad_mode" : name.c_str(), &info), WEFT_OK)
              << name << " of tests/docs/functions.h has no row in weft/c/functions_*.cpp";
        }
    }
#define WEFT_DERIVED(name, ...) EXPECT_EQ(weft_find_op(#name, &info), WEFT_OK);
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
}

TEST(CLibrary, OperationsAreSortedAndSayWhatTheyTake) {
  std::string before;
  for (size_t i = 0; i < weft_op_count(); ++i) {
    weft_op_info info = WEFT_STRUCT(weft_op_info);
    ASSERT_EQ(weft_describe_op(i, &info), WEFT_OK);
    EXPECT_LT(before, info.name);  // none twice
    before = info.name;
    EXPECT_EQ(std::string(info.signature).find(before + "("), 0u);
    EXPECT_NE(info.doc, nullptr);
  }
  weft_op_info info = WEFT_STRUCT(weft_op_info);
  ASSERT_EQ(weft_find_op("softmax", &info), WEFT_OK);
  EXPECT_STREQ(info.signature, "softmax(x: tensor, axis: int = -1) -> tensor");
  ASSERT_EQ(weft_find_op("div", &info), WEFT_OK);
  EXPECT_STREQ(
      info.signature,
      "div(x: tensor, other: tensor or number, rounding: none|trunc|floor = none) -> tensor");
  EXPECT_EQ(weft_describe_op(weft_op_count(), &info), WEFT_ERROR_INDEX);
}

// ---- what the loader sees

TEST(CLibrary, ExportsWeftAndNothingElse) {
  Dl_info found{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&weft_version), &found), 0);
  const std::string command = std::string("nm -D --defined-only --format=posix ") + found.dli_fname;
  FILE* nm = popen(command.c_str(), "r");
  ASSERT_NE(nm, nullptr);
  char line[1000];
  int exported = 0;
  while (std::fgets(line, sizeof(line), nm)) {
    const bool ours = std::strncmp(line, "weft_", 5) == 0;
    EXPECT_TRUE(ours || std::strncmp(line, "WEFT_0", 6) == 0) << line;
    exported += ours;
  }
  if (pclose(nm) != 0) GTEST_SKIP() << "no nm here";
  EXPECT_GT(exported, 40);
}

}  // namespace
}  // namespace weft::c
