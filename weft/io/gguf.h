// GGUF: named arrays of ggml's block formats with metadata, in a file that is mapped, fully checked
// before use, and saved atomically. The format:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/dtype/codec.h"
#include "weft/io/gguf_value.h"

namespace weft {

struct GgufTensor {
  std::string name;
  Codec codec = Codec::F32;
  std::vector<int64_t> shape;         // row-major, so the file's sizes reversed; empty: one element
  std::span<const std::byte> bytes;   // of whole blocks along the last axis
  std::shared_ptr<const void> owner;  // keeps `bytes` alive
};

// What a file holds, in its order; no key and no name twice.
struct GgufContent {
  uint32_t version = 3;
  uint32_t alignment = 32;  // of tensors in the file; a power of two
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<GgufTensor> tensors;
  std::shared_ptr<const void> owner;  // keeps what metadata views alive

  const GgufValue* value(std::string_view key) const;  // null: none
  const GgufTensor* find(std::string_view name) const;
};

// Versions 2 and 3, little-endian. Tensors are views of the mapped file, which lives as long as any
// of them. Of a split model (name-00001-of-00003.gguf) the first part is named; the others lie in
// its directory.
GgufContent read_gguf(const std::string& path);
// One file from bytes; `what` names them in errors. Tensors and metadata are views of `data`.
GgufContent parse_gguf(std::span<const std::byte> data, std::string_view what,
                       std::shared_ptr<const void> owner = nullptr);

// Whether a file begins as one of these does; false for what cannot be read, too.
bool is_gguf(const std::string& path);

// Replaces `path` atomically, in version 3. Names and keys must be distinct, without NUL, of 1 to
// 65535 bytes; tensors have at most 4 axes. The key general.alignment is written where alignment is
// not 32.
void save_gguf(const std::string& path, const GgufContent& content);
std::vector<std::byte> gguf_bytes(const GgufContent& content);  // what save_gguf writes
// The same with tensors that are made while the file is written, so that one is in memory at a
// time: `made(i)` is content.tensors[i], which has no bytes yet, with them.
void save_gguf(const std::string& path, const GgufContent& content,
               FunctionRef<GgufTensor(size_t)> made);

}  // namespace weft
