// The C interface: captured functions, files, DLPack.
#include <cstdio>

#include "tests/c/c_test.h"

namespace weft::c {
namespace {

using Floats = std::vector<float>;

TEST_F(CTest, ProgramsAreCapturedAtTheSecondCall) {
  int calls = 0;
  const Tensor weight = context.of<float>({1, 2}, {2});
  Program program(context, [&](const std::vector<Tensor>& in) {
    ++calls;
    return std::vector<Tensor>{in[0] * weight, apply("sum", in[0])};
  });
  for (int i = 0; i < 4; ++i) {
    const auto out = program({context.full({2}, 1.0 * i)});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(floats(out[0]), (Floats{1.0f * i, 2.0f * i}));
    EXPECT_EQ(out[1].item(), 2.0 * i);
  }
  EXPECT_EQ(calls, 2);
  EXPECT_GT(program.kernels(), 0u);
  EXPECT_THROW(program({context.ones({3})}), Error);  // another shape
}

TEST_F(CTest, ProgramsKeepWhatTheyComputeOfConstants) {
  const Tensor weight = context.of<float>({1, 2}, {2});
  Program program(context, [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0] + apply("contiguous", weight * weight)};
  });
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(floats(program({context.full({2}, 1.0 * i)})[0]), (Floats{1.0f + i, 4.0f + i}));
  EXPECT_EQ(program.kept_bytes(), 8);
  EXPECT_EQ(program.planned_bytes(), 32) << "an argument, a constant, what is kept of it, a result";
}

TEST_F(CTest, ProgramsReadAndWriteWhatTheyUse) {
  Tensor state = context.of<float>({0}, {1});
  Program step(context, [&](const std::vector<Tensor>& in) {
    state.assign(state + in[0]);
    return std::vector<Tensor>{state * 1};
  });
  float sum = 0;
  for (int i = 0; i < 5; ++i) {
    sum += static_cast<float>(i);
    EXPECT_EQ(floats(step({context.full({1}, 1.0 * i)})[0]), Floats{sum});
  }
  EXPECT_EQ(floats(state), Floats{10});
}

TEST_F(CTest, GradientsOfABatchAddUpInParts) {
  const Tensor x = context.of<float>({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  Tensor weight = context.of<float>({1, 2}, {2});
  weight.requires_grad();
  const auto loss = [&](const std::vector<Tensor>& in) { return apply("sum", in[0] * weight); };
  EXPECT_EQ(accumulate_gradients(loss, {x}, 2, true).item(), 16 + 2 * 20);
  weft_tensor gradient = nullptr;
  ASSERT_EQ(weft_tensor_grad(weight.get(), &gradient), WEFT_OK);
  EXPECT_EQ(floats(Tensor(gradient)), (Floats{16, 20}));
  EXPECT_EQ(accumulate_gradients(loss, {x}, 4).item(), 14) << "the mean of four";
  EXPECT_THROW(accumulate_gradients(loss, {x}, 3), Error);
  EXPECT_REFUSED(weft_accumulate_gradients(nullptr, nullptr, nullptr, 0, 2, false, &gradient),
                 WEFT_ERROR_ARGUMENT, "loss");
  const auto thrower = [](const std::vector<Tensor>&) -> Tensor { throw std::string("mine"); };
  EXPECT_THROW(accumulate_gradients(thrower, {x}, 2), std::string);
}

TEST_F(CTest, WhatAFunctionThrowsOrReturnsComesOut) {
  Program thrower(context, [](const std::vector<Tensor>&) -> std::vector<Tensor> {
    throw std::string("mine");
  });
  EXPECT_THROW(thrower({context.ones({1})}), std::string);
  Program failing(context, [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{apply("matmul", in[0], 3)};
  });
  EXPECT_THROW(failing({context.ones({1})}), Error);

  weft_program_source source = WEFT_STRUCT(weft_program_source);
  source.function = [](void*, const weft_tensor*, size_t, weft_tensor*, size_t, size_t*) {
    return weft_status{77};
  };
  weft_program p = nullptr;
  ASSERT_EQ(weft_program_create(context.get(), &source, &p), WEFT_OK);
  EXPECT_REFUSED(weft_program_call(p, nullptr, 0, nullptr, 0, nullptr), 77, "status 77");
  weft_program_release(p);
  EXPECT_REFUSED(weft_program_reset(p), WEFT_ERROR_ARGUMENT, "released");
}

struct Nested {
  weft_program program = nullptr;
  weft_status inner = WEFT_OK;
};

TEST_F(CTest, AProgramInsideOfItselfIsRefused) {
  Nested nested;
  weft_program_source source = WEFT_STRUCT(weft_program_source);
  source.user = &nested;
  source.function = [](void* user, const weft_tensor*, size_t, weft_tensor*, size_t, size_t*) {
    auto& n = *static_cast<Nested*>(user);
    n.inner = weft_program_call(n.program, nullptr, 0, nullptr, 0, nullptr);
    return weft_status{WEFT_OK};
  };
  ASSERT_EQ(weft_program_create(context.get(), &source, &nested.program), WEFT_OK);
  EXPECT_EQ(weft_program_call(nested.program, nullptr, 0, nullptr, 0, nullptr), WEFT_OK);
  EXPECT_EQ(nested.inner, WEFT_ERROR_VALUE);
  weft_program_release(nested.program);
}

TEST_F(CTest, SafetensorsThereAndBack) {
  const std::string path = ::testing::TempDir() + "c_interface.safetensors";
  save(path, {{"b", context.arange(3)}, {"a.weight", context.of<float>({1, 2}, {1, 2})}});
  const auto loaded = context.load(path);
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(floats(loaded.at("a.weight")), (Floats{1, 2}));
  EXPECT_EQ(loaded.at("b").to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2}));
  const auto stop = [](void*, const char*, weft_tensor x) {
    weft_tensor_release(x);
    return weft_status{99};
  };
  EXPECT_REFUSED(weft_load(context.get(), path.c_str(), stop, nullptr), 99, "99");
  std::remove(path.c_str());
  EXPECT_REFUSED(weft_load(context.get(), path.c_str(), stop, nullptr), WEFT_ERROR_RUNTIME, path);
  EXPECT_STREQ(last_error().code, "file.missing");
  const weft_tensor x[] = {loaded.at("b").get(), loaded.at("b").get()};
  const char* twice[] = {"n", "n"};
  EXPECT_EQ(weft_save(path.c_str(), twice, x, 2), WEFT_ERROR_VALUE);
}

// dlpack.h's, as its ABI lays it out: https://dmlc.github.io/dlpack/latest/c_api.html
struct Managed {
  uint32_t major, minor;
  void* context;
  void (*deleter)(Managed*);
  uint64_t flags;
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

Managed* lend(const Tensor& x, bool copy) {
  DLManagedTensorVersioned* out = nullptr;
  EXPECT_EQ(weft_tensor_to_dlpack(x.get(), copy, &out), WEFT_OK);
  return reinterpret_cast<Managed*>(out);
}

TEST_F(CTest, DlpackOut) {
  Tensor x = context.of<float>({1, 2, 3, 4}, {2, 2});
  Managed* m = lend(x, false);
  EXPECT_EQ(m->flags, 1u);  // read-only
  EXPECT_EQ(m->ndim, 2);
  EXPECT_EQ(m->shape[1], 2);
  EXPECT_EQ(m->strides[0], 2);
  EXPECT_EQ(m->code, 2);  // kDLFloat
  EXPECT_EQ(m->bits, 32);
  x.assign(x * 10);
  x.realize();
  EXPECT_EQ(static_cast<float*>(m->data)[3], 4);  // keeps its contents
  x = Tensor();
  context = Context();
  EXPECT_EQ(static_cast<float*>(m->data)[3], 4);  // and its context
  m->deleter(m);
  Managed* own = lend(context.ones({1}), true);
  EXPECT_EQ(own->flags, 2u);  // a copy
  own->deleter(own);
}

TEST_F(CTest, DlpackIn) {
  alignas(64) float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 2}, strides[] = {3, 1};
  int freed = 0;
  const auto deleter = [](Managed* m) { ++*static_cast<int*>(m->context); };
  Managed m{1, 0, &freed, deleter, 0, data, 1, 0, 2, 2, 32, 1, shape, strides, 4};
  const auto take = [&](bool copy) {
    weft_tensor x = nullptr;
    const weft_status s = weft_tensor_from_dlpack(
        context.get(), reinterpret_cast<DLManagedTensorVersioned*>(&m), copy, &x);
    return std::make_pair(s, Tensor(x));
  };
  EXPECT_EQ(floats(take(false).second), (Floats{2, 3, 5, 6}));  // strided: a copy, given back
  EXPECT_EQ(freed, 1);
  m.strides = nullptr;
  m.byte_offset = 0;
  {
    const Tensor x = take(false).second;
    EXPECT_EQ(floats(x), (Floats{1, 2, 3, 4}));
    EXPECT_EQ(freed, 1);
  }
  context = Context({"WEFT_DEV=CPU"});
  EXPECT_EQ(freed, 2);

  const auto refused = [&](weft_status status, const char* words) {
    EXPECT_REFUSED(take(false).first, status, words);
    EXPECT_EQ(freed, 2);  // stays the caller's
  };
  m.ndim = -1, refused(WEFT_ERROR_VALUE, "-1 axes");
  m.ndim = 65, refused(WEFT_ERROR_VALUE, "65 axes");
  m.ndim = 2, m.shape = nullptr, refused(WEFT_ERROR_VALUE, "without a shape");
  m.shape = shape, shape[0] = -2, refused(WEFT_ERROR_VALUE, "negative");
  shape[0] = int64_t{1} << 62, refused(WEFT_ERROR_VALUE, "more bytes");
  shape[0] = 2, m.data = nullptr, refused(WEFT_ERROR_VALUE, "without memory");
  m.data = data, m.device_type = 2, refused(WEFT_ERROR_VALUE, "device type 2");
  m.device_type = 1, m.lanes = 4, refused(WEFT_ERROR_TYPE, "lanes");
  m.lanes = 1, m.major = 2, refused(WEFT_ERROR_VALUE, "version");
}

}  // namespace
}  // namespace weft::c
