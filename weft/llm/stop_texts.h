// StopTexts: finds texts that end an answer, across the borders of tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::llm {

/// Gives out text as it comes, but what may be the beginning of a stop text.
///   StopTexts stops({"\n\nUser:"});
///   while (!stops.found()) std::cout << stops.add(stream.step(next_token()));
///   std::cout << stops.finish();
class StopTexts {
 public:
  /// Empty ones are left out.
  explicit StopTexts(std::vector<std::string> texts);

  /// What is sure to be before any stop text. `piece` is whole characters, and so is this.
  std::string add(std::string_view piece);
  bool found() const { return found_; }  ///< add() and finish() give nothing more
  std::string finish();                  ///< what was held back

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace weft::llm
