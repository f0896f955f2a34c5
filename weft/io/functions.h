// Captured functions to files and back: a step that was traced once runs without the program it was
// written in.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/jit.h"

namespace weft {

/// A captured function as a safetensors file: "graph" (U8) is a graph file, "plan" (I64) says which
/// of its values go where, "state.K" are the tensors the function keeps (parameters, optimizer and
/// random state) as they are now; the metadata holds names and "weft.function": the version. The
/// graph is that of the tensors, before scheduling: it is compiled for the machine that loads it.
std::vector<std::byte> function_bytes(const CapturedFunction& f);
/// Everything is checked: other bytes than those of function_bytes() are an Error that names `what`
/// now, or one from the first call.
CapturedFunction parse_function(std::span<const std::byte> data, std::string_view what);

/// What a function made by jit() has captured, to a file that is replaced atomically. An Error
/// before its second call.
///   auto step = jit([&](const Tensor& x) { return model(x); });
///   step(x), step(x);
///   save_function("step.safetensors", step.captured());
void save_function(const std::string& path, const CapturedFunction& f);
///   LoadedFunction step = load_function("step.safetensors");
///   Tensor y = step(x)[0];
LoadedFunction load_function(const std::string& path, CallSite at = CallSite::here());

}  // namespace weft
