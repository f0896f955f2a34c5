#include "weft/base/constant_bytes.h"

namespace weft {
namespace {

/// What an owner is known by.
struct FreeConstantBytes {
  void operator()(const std::vector<std::byte>* bytes) const { delete bytes; }
};

}  // namespace

std::shared_ptr<const std::vector<std::byte>> constant_bytes(std::vector<std::byte> bytes) {
  return {new std::vector<std::byte>(std::move(bytes)), FreeConstantBytes{}};
}

bool are_constant_bytes(const std::shared_ptr<const void>& owner) {
  return std::get_deleter<FreeConstantBytes>(owner) != nullptr;
}

}  // namespace weft
