// Models to files and bytes: the other side of read_onnx().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weft/onnx/model.h"

namespace weft::onnx {

struct SaveOptions {
  /// Initialisers of 1 KiB and more lie in a file of their own, "MODEL.data" beside the model. What
  /// is larger than a protocol buffer may be, 2 GiB, lies there anyway.
  bool external_data = false;
};

/// Replaces the file atomically: its directory holds the old model or the new one. Where it has
/// external data those are written first, as a file that is complete before the model names it.
///   Model model = read_onnx("old.onnx");
///   model.graph.name = "new";
///   save_onnx("new.onnx", model);
void save_onnx(const std::string& path, const Model& model, const SaveOptions& options = {});
/// The same as bytes, all initialisers inside. An Error (code "onnx.size") above 2 GiB.
std::vector<std::byte> onnx_bytes(const Model& model);

}  // namespace weft::onnx
