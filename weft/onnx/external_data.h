// Files beside a model that hold its large tensors.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/file.h"

namespace weft::onnx {

/// Maps each file once. Only files that lie, links resolved, in one of the directories or below it:
/// that of the model's path, and where that is a link, that of the file itself.
class ExternalData {
 public:
  ExternalData() = default;
  /// Of a model at this path, or of bytes whose data lie in a directory.
  static ExternalData beside(const std::string& model);
  static ExternalData in(std::string_view directory);

  struct Slice {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  /// `offset` and `length` as the model says them: texts of numbers; without a length up to the
  /// end. An Error (code "onnx.external") that names the model and the tensor.
  Slice slice(std::string_view model, std::string_view tensor, const std::string& location,
              std::string_view offset, std::string_view length);

 private:
  std::string resolved(std::string_view model, std::string_view tensor,
                       const std::string& location) const;

  std::vector<std::string> directories_;  // real paths, without a / at their end
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace weft::onnx
