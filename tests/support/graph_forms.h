// What must hold for any bytes given to the readers of graphs; shared by tests and libFuzzer.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace weft {

/// Reads `data` as a graph file. True if it was accepted; then it also went through the verifiers
/// and both forms and came back the same. Anything but acceptance or an Error throws.
bool try_graph_file(std::span<const std::byte> data);
bool try_graph_text(std::string_view text);

}  // namespace weft
