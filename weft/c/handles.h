// What the C interface's handles stand for, and the table that knows which of them are alive.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weft/base/context.h"
#include "weft/c/weft.h"
#include "weft/device/device.h"
#include "weft/tensor/tensor.h"
#include "weft/text/tokenizer.h"

namespace weft::c {

struct ContextObject {
  explicit ContextObject(Options options) : context(std::move(options)) {}
  Context context;
  std::once_flag probed;
  std::vector<DeviceInfo> devices;  // texts that weft_describe_device() gave out
};

struct TensorObject {
  std::shared_ptr<ContextObject> owner;  // outlives the tensor
  Tensor tensor;
};

struct ProgramObject;  // programs.cpp
struct ModelObject;    // models.cpp
struct TokenizerObject {
  std::shared_ptr<const text::Tokenizer> tokenizer;
};
struct EventFileObject;  // event_files.cpp
struct LlmObject;        // llm.cpp
struct TrainingObject;   // llm_train.cpp

/// The number of a kind is part of its handles.
template <class Handle>
struct HandleOf;
template <>
struct HandleOf<weft_context> {
  using Object = ContextObject;
  static constexpr uint32_t kKind = 1;
  static constexpr const char* kName = "context";
};
template <>
struct HandleOf<weft_tensor> {
  using Object = TensorObject;
  static constexpr uint32_t kKind = 2;
  static constexpr const char* kName = "tensor";
};
template <>
struct HandleOf<weft_program> {
  using Object = ProgramObject;
  static constexpr uint32_t kKind = 3;
  static constexpr const char* kName = "program";
};
template <>
struct HandleOf<weft_model> {
  using Object = ModelObject;
  static constexpr uint32_t kKind = 4;
  static constexpr const char* kName = "model";
};
template <>
struct HandleOf<weft_tokenizer> {
  using Object = TokenizerObject;
  static constexpr uint32_t kKind = 5;
  static constexpr const char* kName = "tokenizer";
};
template <>
struct HandleOf<weft_llm> {
  using Object = LlmObject;
  static constexpr uint32_t kKind = 6;
  static constexpr const char* kName = "language model";
};
template <>
struct HandleOf<weft_training> {
  using Object = TrainingObject;
  static constexpr uint32_t kKind = 7;
  static constexpr const char* kName = "training";
};

template <>
struct HandleOf<weft_event_file> {
  using Object = EventFileObject;
  static constexpr uint32_t kKind = 8;
  static constexpr const char* kName = "event file";
};

/// Of the whole process: a handle must be recognised before it is known whose it is.
uint64_t add_handle(uint32_t kind, std::shared_ptr<void> object);
std::shared_ptr<void> find_handle(uint64_t handle, uint32_t kind, const char* kind_name);
/// The object is the caller's to let go of; null where the handle is none.
std::shared_ptr<void> remove_handle(uint64_t handle, uint32_t kind);

template <class Handle>
Handle make_handle(std::shared_ptr<typename HandleOf<Handle>::Object> object) {
  return reinterpret_cast<Handle>(add_handle(HandleOf<Handle>::kKind, std::move(object)));
}
/// What a handle stands for, kept alive while the caller looks at it; refused where it is none.
template <class Handle>
std::shared_ptr<typename HandleOf<Handle>::Object> object_of(Handle handle) {
  return std::static_pointer_cast<typename HandleOf<Handle>::Object>(find_handle(
      reinterpret_cast<uint64_t>(handle), HandleOf<Handle>::kKind, HandleOf<Handle>::kName));
}
template <class Handle>
void release_handle(Handle handle) noexcept {
  remove_handle(reinterpret_cast<uint64_t>(handle), HandleOf<Handle>::kKind);
}

/// A handle of a result, or of one more view of a tensor.
weft_tensor tensor_handle(const std::shared_ptr<ContextObject>& owner, Tensor x);
/// Handles of all of them, or none.
void tensor_handles(const std::shared_ptr<ContextObject>& owner, std::vector<Tensor> from,
                    weft_tensor* outs);
/// The tensors of one context; refused where there are two, or where there is none.
std::vector<Tensor> tensors_of(const weft_tensor* handles, size_t count,
                               std::shared_ptr<ContextObject>& owner);

}  // namespace weft::c
