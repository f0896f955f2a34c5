// `weft inspect FILE`: what a file of tensors says about itself, by its first bytes.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/io/gguf.h"
#include "weft/io/npy.h"
#include "weft/io/safetensors.h"

namespace weft {

namespace {

struct Line {
  std::string name, type;
  std::vector<int64_t> shape;
  uint64_t bytes;
};

/// A file of any format: headline, what it says, and its tensors.
struct Contents {
  std::string format;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Line> tensors;
};

Contents of_gguf(const std::string& path) {
  const GgufContent file = read_gguf(path);
  Contents all{strformat("GGUF version {}, alignment {}", file.version, file.alignment), {}, {}};
  for (const auto& [key, value] : file.metadata) all.metadata.emplace_back(key, value.shown());
  for (const GgufTensor& t : file.tensors)
    all.tensors.push_back({t.name, std::string(name(t.codec)), t.shape, t.bytes.size()});
  return all;
}

Contents of_npy(const std::string& path) {
  const HostArray array = read_npy(path);
  return {"NPY", {}, {{"", std::string(name(array.dtype)), array.shape, array.bytes.size()}}};
}

Contents of_safetensors(const std::string& path) {
  const SafetensorsContent file = read_safetensors_model(path);
  Contents all{"safetensors", {file.metadata.begin(), file.metadata.end()}, {}};
  for (const NamedArray& a : file.arrays)
    all.tensors.push_back(
        {a.name, std::string(name(a.array.dtype)), a.array.shape, a.array.bytes.size()});
  return all;
}

bool is_npy(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  char start[6] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof(start));
  return std::string_view(start, sizeof(start)) == "\x93NUMPY";
}

/// By its first bytes, never by its name; a folder is a sharded safetensors model.
Contents contents_of(const std::string& path) {
  if (is_gguf(path)) return of_gguf(path);
  if (is_npy(path)) return of_npy(path);
  return of_safetensors(path);
}

void print_json(const Session& session, const Contents& all) {
  JsonWriter json;
  json.begin_object().field("format", all.format).key("metadata").begin_object();
  for (const auto& [key, value] : all.metadata) json.field(key, value);
  json.end_object().key("tensors").begin_array();
  for (const Line& t : all.tensors) {
    json.begin_object().field("name", t.name).field("type", t.type).key("shape").begin_array();
    for (const int64_t size : t.shape) json.value(size);
    json.end_array().field("bytes", t.bytes).end_object();
  }
  session.print("{}\n", json.end_array().end_object().text());
}

/// The most bytes of a column of names, within reason.
template <class Rows, class Name>
size_t width(const Rows& rows, Name name) {
  size_t most = 0;
  for (const auto& row : rows) most = std::max(most, name(row).size());
  return std::min<size_t>(most, 60);
}

void print_text(const Session& session, const Contents& all) {
  uint64_t bytes = 0, numbers = 0;
  for (const Line& t : all.tensors) {
    bytes += t.bytes;
    numbers += static_cast<uint64_t>(checked_numel(t.shape).value_or(0));
  }
  session.print("{}: {} tensors of {} numbers in {} bytes\n", session.bold(all.format),
                all.tensors.size(), numbers, bytes);
  const auto key = [](const auto& pair) { return quoted_name(pair.first); };
  const auto name = [](const Line& t) { return quoted_name(t.name); };
  const size_t keys = width(all.metadata, key), names = width(all.tensors, name);
  for (const auto& pair : all.metadata)
    session.print("  {:<{}}  {}\n", key(pair), keys, pair.second);
  for (const Line& t : all.tensors)
    session.print("  {:<{}}  {:<7}  {:<20}  {:>12}\n", name(t), names, t.type, shape_text(t.shape),
                  t.bytes);
}

}  // namespace

int run_inspect(const Session& session, const std::string& file) {
  const Contents all = contents_of(file);
  if (session.json) {
    print_json(session, all);
  } else {
    print_text(session, all);
  }
  return kExitOk;
}

}  // namespace weft
