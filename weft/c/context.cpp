// Contexts, options, devices, element types: the parts of weft.h without tensors.
#include "weft/base/version.h"
#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/run/recording_scope.h"
#include "weft/tensor/training.h"

namespace weft::c {

namespace {

std::string_view bare_name(std::string_view name) {
  return name.starts_with("WEFT_") ? name.substr(5) : name;
}

void apply_settings(Options& options, const char* const* settings) {
  for (; settings && *settings; ++settings) {
    const std::string_view entry = *settings;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos)
      fail("context.options", "\"{}\" is no setting: write WEFT_NAME=value", entry);
    options.set(bare_name(entry.substr(0, equals)), entry.substr(equals + 1));
  }
}

/// Probed once: the texts belong to the context.
const std::vector<DeviceInfo>& devices_of(ContextObject& c) {
  std::call_once(c.probed, [&] {
    const ContextScope scope(c.context);
    c.devices = c.context.get<DeviceTable>().probe();
  });
  return c.devices;
}

}  // namespace

// The numbers of weft.h are those of dtypes.def.
#define X(id, e, name, bits, kind, c, numpy, safetensors) constexpr int32_t k##e = id;
#include "weft/dtype/dtypes.def"
#undef X
static_assert(WEFT_BOOL == kBool && WEFT_I8 == kI8 && WEFT_I16 == kI16 && WEFT_I32 == kI32 &&
              WEFT_I64 == kI64 && WEFT_U8 == kU8 && WEFT_U16 == kU16 && WEFT_U32 == kU32 &&
              WEFT_U64 == kU64 && WEFT_F16 == kF16 && WEFT_BF16 == kBF16 && WEFT_F32 == kF32 &&
              WEFT_F64 == kF64 && WEFT_F8E4M3 == kF8E4M3 && WEFT_F8E5M2 == kF8E5M2 &&
              WEFT_F8E4M3FNUZ == kF8E4M3Fnuz && WEFT_F8E5M2FNUZ == kF8E5M2Fnuz);
static_assert(kDTypeCount == 19, "a new dtype needs its number in weft.h");
static_assert(sizeof(weft_value) == 32);

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

const char* weft_version(void) { return kVersion; }

weft_status weft_context_create(const char* const* settings, weft_context* out) {
  return guarded([&] {
    require_pointer("out", out);
    Options options = Options::from_environment();
    apply_settings(options, settings);
    *out = make_handle<weft_context>(std::make_shared<ContextObject>(std::move(options)));
  });
}

void weft_context_release(weft_context context) { release_handle(context); }

weft_status weft_context_set(weft_context context, const char* name, const char* value) {
  return guarded([&] {
    const auto c = object_of(context);
    const std::string_view option = bare_name(required_text("name", name));
    c->context.mutable_options().set(option, required_text("value", value));
  });
}

weft_status weft_context_get(weft_context context, const char* name, char* text, size_t capacity,
                             size_t* length) {
  return guarded([&] {
    const auto c = object_of(context);
    const std::string_view option = bare_name(required_text("name", name));
    write_text(c->context.options().text(option), text, capacity, length);
  });
}

weft_status weft_seed(weft_context context, uint64_t seed) {
  return guarded([&] {
    const auto c = object_of(context);
    const ContextScope scope(c->context);
    Tensor::manual_seed(seed);
  });
}

weft_status weft_start_recording(weft_context context, const char* path) {
  return guarded([&] { start_recording(object_of(context)->context, path ? path : ""); });
}

weft_status weft_stop_recording(weft_context context) {
  return guarded([&] { stop_recording(object_of(context)->context); });
}

void weft_set_training(bool on) { set_training(on); }
bool weft_is_training(void) { return is_training(); }

weft_status weft_device_count(weft_context context, size_t* count) {
  return guarded([&] {
    require_pointer("count", count);
    *count = devices_of(*object_of(context)).size();
  });
}

weft_status weft_describe_device(weft_context context, size_t index, weft_device_info* out) {
  return guarded([&] {
    const auto c = object_of(context);
    const std::vector<DeviceInfo>& all = devices_of(*c);
    if (index >= all.size())
      fail_index("devices", "there is no device {}: {} are known", index, all.size());
    const DeviceInfo& d = all[index];
    const weft_device_info info{sizeof(info), d.available ? 1u : 0u, d.name.c_str(),
                                d.detail.c_str()};
    write_struct("weft_device_info", info, out, sizeof(info));
  });
}

weft_status weft_describe_dtype(weft_dtype dtype, weft_dtype_info* out) {
  return guarded([&] {
    const auto d =
        dtype >= 0 && dtype < 256 ? dtype_from_id(static_cast<uint8_t>(dtype)) : std::nullopt;
    if (!d || !is_data(*d)) fail_type("dtype", "no dtype has the number {}", dtype);
    const weft_dtype_info info{sizeof(info), static_cast<uint32_t>(bits(*d)), name(*d).data()};
    write_struct("weft_dtype_info", info, out, sizeof(info));
  });
}

}  // extern "C"
