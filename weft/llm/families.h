// Families of models: what their files do not say. A family is a row; what it needs beyond the row
// is a function of a few lines.
#pragma once

#include <span>
#include <string_view>

#include "weft/llm/config.h"
#include "weft/llm/config_source.h"

namespace weft::llm {

/// Which numbers of a head are turned together.
enum class Pairs : uint8_t { Halves, NeighboursInGguf, Neighbours };

struct Family {
  std::string_view name;
  std::string_view gguf;  ///< general.architecture, alternatives "a|b"
  std::string_view json;  ///< model_type of config.json, likewise
  Pairs pairs;
  Norm norm;
  double epsilon;  ///< of norms, where config.json does not say it
  Activation activation;
  /// Sets what is different; null: nothing. Sizes and positions were read.
  void (*describe)(Config& config, ConfigSource& source);
  double rope_base = 10000;  ///< where config.json does not say it
  /// Of a head, the part that is turned where config.json does not say it; 0: whole heads are,
  /// whatever it says.
  double part_turned = 0;
};

/// Of local layers that have positions of their own; those of the others were read.
void read_local_rope(Config& config, ConfigSource& source);

std::span<const Family> families();
/// Null: unknown.
const Family* find_family(std::string_view name, bool gguf);

}  // namespace weft::llm
