// Functions of the program's own: callbacks behind jit(), accumulate_gradients(), export_onnx().
#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/onnx/export.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/transforms.h"

namespace weft::c {

namespace {

/// Handles that live for a block.
class Lease {
 public:
  Lease(const std::shared_ptr<ContextObject>& owner, const Tensors& tensors)
      : handles_(tensors.size()) {
    tensor_handles(owner, tensors, handles_.data());
  }
  explicit Lease(std::vector<weft_tensor> handles) : handles_(std::move(handles)) {}
  ~Lease() {
    for (weft_tensor handle : handles_) release_handle(handle);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const weft_tensor* data() const { return handles_.data(); }
  size_t size() const { return handles_.size(); }

 private:
  std::vector<weft_tensor> handles_;
};

/// The caller's function as one of C++. Results are as many as the call has room for, at most.
struct Callback {
  std::shared_ptr<ContextObject> owner;
  weft_function function;
  void* user;
  const size_t* capacity;

  Tensors operator()(const Tensors& arguments) const;
};

}  // namespace

struct ProgramObject : std::enable_shared_from_this<ProgramObject> {
  ProgramObject(std::shared_ptr<ContextObject> of, const weft_program_source& source)
      : owner(std::move(of)),
        run(Callback{owner, source.function, source.user, &capacity},
            source.name ? source.name : "program", thread_call_site()) {}

  std::shared_ptr<ContextObject> owner;
  size_t capacity = 0;  // of the call in progress
  bool running = false;
  Jit<Callback> run;
};

namespace {

Tensors Callback::operator()(const Tensors& arguments) const {
  const Lease given(owner, arguments);
  std::vector<weft_tensor> outs(*capacity, nullptr);
  size_t count = 0;
  const uint64_t before = errors_recorded();
  const weft_status status =
      function(user, given.data(), given.size(), outs.data(), outs.size(), &count);
  const size_t room = outs.size();
  outs.resize(std::min(count, room));
  const Lease results(std::move(outs));
  if (status != WEFT_OK) throw CallbackFailed{status, errors_recorded() != before};
  if (count > room) refuse_space("the function", count, room);
  std::shared_ptr<ContextObject> same = owner;
  return tensors_of(results.data(), results.size(), same);
}

/// One call at a time: what is captured is one state.
class Running {
 public:
  explicit Running(ProgramObject& p, size_t capacity) : program_(p) {
    if (p.running) fail("program.nested", "a program is called inside of itself");
    p.running = true;
    p.capacity = capacity;
  }
  ~Running() { program_.running = false; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  ProgramObject& program_;
};

}  // namespace

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_accumulate_gradients(weft_function loss, void* user, const weft_tensor* batch,
                                      size_t count, int64_t parts, bool sum, weft_tensor* out) {
  return guarded([&] {
    require_pointer("loss", reinterpret_cast<const void*>(loss));
    require_pointer("out", out);
    std::shared_ptr<ContextObject> owner;
    const Tensors given = tensors_of(batch, count, owner);
    if (!owner) fail("accumulate_gradients", "needs at least one tensor to cut");
    const ContextScope scope(owner->context);
    const size_t capacity = 1;
    const Callback call{owner, loss, user, &capacity};
    const auto one = [&call](const Tensors& pieces) {
      const Tensors results = call(pieces);
      if (results.size() != 1) fail("accumulate_gradients", "the loss gives no tensor: give one");
      return results[0];
    };
    const Reduction reduction = sum ? Reduction::Sum : Reduction::Mean;
    *out = tensor_handle(owner, accumulate_gradients(one, given, parts, reduction, CallSite()));
  });
}

weft_status weft_program_create(weft_context context, const weft_program_source* source,
                                weft_program* out) {
  return guarded([&] {
    const auto owner = object_of(context);
    const auto s = read_struct("weft_program_source", source, sizeof(weft_program_source));
    require_pointer("function", reinterpret_cast<const void*>(s.function));
    require_pointer("out", out);
    const ContextScope scope(owner->context);
    *out = make_handle<weft_program>(std::make_shared<ProgramObject>(owner, s));
  });
}

weft_status weft_program_call(weft_program program, const weft_tensor* arguments, size_t count,
                              weft_tensor* outs, size_t capacity, size_t* out_count) {
  return guarded([&] {
    const auto p = object_of(program);
    auto owner = p->owner;
    const ContextScope scope(owner->context);
    const Tensors given = tensors_of(arguments, count, owner);
    const Running running(*p, capacity);
    require_pointer("outs", outs, capacity);
    Tensors results = p->run(given);
    if (out_count) *out_count = results.size();
    if (results.size() > capacity) refuse_space("program", results.size(), capacity);
    tensor_handles(owner, std::move(results), outs);
  });
}

weft_status weft_program_kernels(weft_program program, size_t* out) {
  return guarded([&] {
    const auto p = object_of(program);
    require_pointer("out", out);
    *out = p->run.kernels();
  });
}

weft_status weft_program_kept_bytes(weft_program program, int64_t* out) {
  return guarded([&] {
    const auto p = object_of(program);
    require_pointer("out", out);
    *out = p->run.kept_bytes();
  });
}

weft_status weft_program_planned_bytes(weft_program program, int64_t* out) {
  return guarded([&] {
    const auto p = object_of(program);
    require_pointer("out", out);
    *out = p->run.planned_bytes();
  });
}

weft_status weft_program_reset(weft_program program) {
  return guarded([&] {
    const auto p = object_of(program);
    const ContextScope scope(p->owner->context);
    if (p->running) fail("program.nested", "a program is reset inside of itself");
    p->run.reset();
  });
}

weft_status weft_export_onnx(const char* path, weft_function function, void* user,
                             const weft_tensor* inputs, size_t count, size_t results) {
  return guarded([&] {
    const std::string file(required_text("path", path));
    require_pointer("function", reinterpret_cast<const void*>(function));
    std::shared_ptr<ContextObject> owner;
    const Tensors given = tensors_of(inputs, count, owner);
    if (!owner)
      fail("onnx.export", "there is no input, whose context the function runs in: give one");
    const ContextScope scope(owner->context);
    const Callback call{owner, function, user, &results};
    onnx::save_onnx(file, onnx::export_onnx(call, given));
  });
}

void weft_program_release(weft_program program) { release_handle(program); }

}  // extern "C"
