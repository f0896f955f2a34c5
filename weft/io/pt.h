// PyTorch's files (.pt, .pth, .bin): tensors out of the pickles of torch.save(), none of which is
// run, and state dicts that torch.load() reads. The format: torch/serialization.py of PyTorch 2.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/io/archive.h"
#include "weft/io/pickle.h"

namespace weft {

struct PtContent {
  /// What was saved. A node that is a tensor is a Call here and in `tensors`; all other calls are
  /// objects of `foreign` classes, which come without contents.
  Pickle pickle;
  std::unordered_map<uint32_t, HostArray> tensors;
  /// Those that keys and positions lead to from the root: "model.layers.0.weight"; the file's
  /// order.
  std::vector<NamedArray> arrays;
  std::vector<std::string> foreign;  ///< "module name", each once

  const HostArray* find(std::string_view name) const;
};

/// A file of PyTorch 1.6 and newer (a zip archive) or of the versions before (pickles one after the
/// other); the tar files of before 0.1.10 are refused. Tensors are views of the mapped file where
/// their elements lie in order, else copies. Checksums of storages are not computed, since that
/// would read the whole file; PyTorch's own reader does not either. Errors: pt.format, pt.size, and
/// those of zip and pickle.
PtContent read_pt(const std::string& path, const UnpackLimits& limits = {});
PtContent parse_pt(std::span<const std::byte> data, std::string_view what,
                   std::shared_ptr<const void> owner = nullptr, const UnpackLimits& limits = {});

/// A dict of the arrays, which torch.load(path, weights_only=True) reads; replaces the file
/// atomically.
///
///     save_pt("model.pt", {{"weight", host_array_of(w)}, {"bias", host_array_of(b)}});
void save_pt(const std::string& path, const std::vector<NamedArray>& arrays);

}  // namespace weft
