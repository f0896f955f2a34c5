// weft_apply() and what can be asked about operations.
#include "weft/c/boundary.h"
#include "weft/c/functions.h"

namespace weft::c {

namespace {

void describe(const Operation& o, weft_op_info* out) {
  const weft_op_info info{sizeof(info), static_cast<uint32_t>(o.parameters.size()),
                          o.function->name, o.signature.c_str(), o.function->doc};
  write_struct("weft_op_info", info, out, sizeof(info));
}

}  // namespace

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_apply(weft_context context, const char* name, const weft_value* values,
                       size_t value_count, weft_tensor* outs, size_t capacity, size_t* count) {
  return guarded([&] {
    auto owner = context ? object_of(context) : nullptr;
    const Operation& o = find_operation(required_text("name", name));
    const std::vector<Argument> arguments =
        bind_arguments(o.function->name, o.signature, o.parameters, values, value_count, owner);
    if (!owner) refuse("handle", "a context is NULL, and no value is a tensor");
    const ContextScope scope(owner->context);
    Results results = o.function->call(arguments);
    if (count) *count = results.size();
    if (results.size() > capacity) refuse_space(o.signature, results.size(), capacity);
    require_pointer("outs", outs, results.size());
    tensor_handles(owner, std::move(results), outs);
  });
}

size_t weft_op_count(void) {
  size_t count = 0;
  guarded([&] { count = operations().size(); });
  return count;
}

weft_status weft_describe_op(size_t index, weft_op_info* out) {
  return guarded([&] {
    const auto& all = operations();
    if (index >= all.size())
      fail_index("operations", "there is no operation {}: {} are known", index, all.size());
    describe(all[index], out);
  });
}

weft_status weft_find_op(const char* name, weft_op_info* out) {
  return guarded([&] { describe(find_operation(required_text("name", name)), out); });
}

}  // extern "C"
