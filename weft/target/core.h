// Core: whose latencies and pipes estimates are about, which people read; code does not depend on
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

struct Machine;

/// Golden Cove's successors in servers and desktops (Raptor, Redwood Cove) count as it.
enum class Core : uint8_t { Unknown, Zen4, Zen5, GoldenCove };

/// By CPUID.
Core this_core();
/// "Zen 4"; empty of an unknown one.
std::string_view name_of(Core core);

/// The machine with its core: "Zen 5, L1 48 KiB 12 ways, L2 1 MiB 16 ways, ...".
std::string text_with_core(const Machine& machine);
/// What such a text begins with.
Core core_named_in(std::string_view machine_text);

}  // namespace weft
