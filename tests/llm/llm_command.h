// `weft llm` as users meet it: its exit code, and what it writes.
#pragma once

#include <cstdio>

#include "tests/io/scratch_dir.h"
#include "weft/app/app.h"

namespace weft {

class LlmCommand : public ScratchDir {
 protected:
  struct Outcome {
    int code;
    std::string text;
  };
  static Outcome weft(const std::vector<std::string>& words) {
    std::vector<const char*> arguments = {"weft", "llm"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    std::FILE* file = std::tmpfile();
    const int code = run_app(arguments, file, file);
    std::string text(static_cast<size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return {code, text};
  }
  static bool has(const Outcome& o, const std::string& part) {
    return o.text.find(part) != std::string::npos;
  }
};

}  // namespace weft
