// What bodies of several routes have in common, and sampling_fields.h has not.
#pragma once

#include <string>
#include <string_view>

#include "weft/serve/fields.h"
#include "weft/serve/requests.h"

namespace weft::serve {

inline constexpr size_t kMostTools = 256;
inline constexpr int64_t kMostLogprobs = 20;

/// A message's role; others than there are, are refused.
std::string read_role(const Fields& message);
std::string read_tool_name(const Fields& function);
/// The name of one of the request's tools.
std::string read_chosen_tool(const Fields& function, const CompletionRequest& request);
/// {"mode": .., "tools": [..]}; `nested`: names stand in a function of each.
void read_allowed_tools(const Fields& fields, bool nested, CompletionRequest& request);
void read_tool_choice(const Fields& fields, CompletionRequest& request);
/// A parameter of OpenAI's that would change the answer, and is not there.
void refuse_unsupported(const Fields& fields, std::string_view name, std::string_view why);

}  // namespace weft::serve
