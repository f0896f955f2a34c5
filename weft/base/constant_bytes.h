// Bytes of the host that nobody writes once they have an owner.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace weft {

/// An owner of the bytes, which are_constant_bytes() knows again.
std::shared_ptr<const std::vector<std::byte>> constant_bytes(std::vector<std::byte> bytes);
bool are_constant_bytes(const std::shared_ptr<const void>& owner);

}  // namespace weft
