#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/function_ref.h"
#include "weft/base/reader.h"
#include "weft/io/pt.h"
#include "weft/io/pt_types.h"
#include "weft/io/zip.h"

namespace weft {

namespace {

using Kind = PickleNode::Kind;

constexpr size_t kMostDims = 64;
constexpr size_t kDeepest = 64;  // of names
constexpr uint64_t kMostNamed = uint64_t{1} << 22;
// Copies of tensors whose elements do not lie in order: a storage may be seen by many.
constexpr uint64_t kMostCopied = uint64_t{256} << 20, kMostCopiedRatio = 4;

std::optional<DType> dtype_named(std::string_view text) {
  for (const PtType& type : kPtTypes)
    if (!type.name.empty() && text == strformat("torch {}", type.name)) return type.dtype;
  return std::nullopt;
}
std::optional<DType> dtype_of_storage(std::string_view text) {
  for (const PtType& type : kPtTypes) {
    if (type.storage.empty()) continue;
    for (const char* module : {"torch", "torch.storage"})
      if (text == strformat("{} {}", module, type.storage)) return type.dtype;
  }
  return std::nullopt;
}

/// What a persistent node says: elements of a storage.
struct StorageUse {
  std::string key;
  DType dtype = DType::Void;
  uint64_t count = 0;  // of elements in all of it
};

struct Layout {
  int64_t offset = 0;
  std::vector<int64_t> shape, strides;
};

/// The bytes of the storage with this key.
using FindStorage = FunctionRef<HostArray(const std::string& key)>;

class TensorReader {
 public:
  TensorReader(PtContent& content, std::string_view what, uint64_t file_bytes)
      : content_(content),
        pickle_(content.pickle),
        what_(what),
        copies_left_(std::max(kMostCopied, checked_mul(file_bytes, kMostCopiedRatio).value_or(0))) {
  }

  /// Every persistent node that is a storage.
  void each_storage(FunctionRef<void(const StorageUse&)> visit) const {
    for (const PickleNode& node : pickle_.nodes)
      if (node.kind == Kind::Persistent && is_storage(node)) visit(storage_of(node));
  }

  /// Makes the tensors; arguments come before what is called with them.
  void rebuild(FindStorage find) {
    std::unordered_set<std::string_view> seen;
    for (uint32_t i = 0; i < pickle_.nodes.size(); ++i) {
      PickleNode& node = pickle_.nodes[i];
      if (node.kind != Kind::Call) continue;
      const PickleNode& function = pickle_[node.items[0]];
      if (rebuild(i, function.text, node.items[1], find)) continue;
      const std::string_view text = function.text, name = text.empty() ? "(an object)" : text;
      if (seen.insert(name).second) content_.foreign.emplace_back(name);
    }
  }

 private:
  // The whole table of what has a meaning. Everything else is foreign.
  bool rebuild(uint32_t node, std::string_view name, uint32_t arguments, FindStorage find) {
    if (name == "torch._utils _rebuild_tensor" || name == "torch._utils _rebuild_tensor_v2") {
      content_.tensors[node] = tensor(arguments, false, find);
    } else if (name == "torch._utils _rebuild_tensor_v3") {
      content_.tensors[node] = tensor(arguments, true, find);
    } else if (name == "torch._utils _rebuild_parameter" ||
               name == "torch._utils _rebuild_parameter_with_state") {
      const auto data = content_.tensors.find(argument(arguments, 0));
      if (data == content_.tensors.end()) wrong("a parameter that is no tensor");
      content_.tensors.emplace(node, HostArray(data->second));
    } else if (name == "torch._tensor _rebuild_from_type_v2") {
      const PickleNode& function = pickle_[argument(arguments, 0)];
      const uint32_t inner = argument(arguments, 2);
      if (function.text == name || pickle_[inner].kind != Kind::Tuple)
        wrong("a tensor of another class without its arguments");
      return rebuild(node, std::string(function.text), inner, find);
    } else if (name == "torch Size") {
      const PickleNode& sizes = pickle_[argument(arguments, 0)];
      if (sizes.kind != Kind::Tuple || sizes.items.size() > kMostDims)
        wrong("a torch.Size that is no tuple, or of more than {}", kMostDims);
      pickle_.nodes[node] = PickleNode(sizes);
    } else {
      return false;
    }
    return true;
  }

  uint32_t argument(uint32_t arguments, size_t i) const {
    const auto& items = pickle_[arguments].items;
    if (i >= items.size()) wrong("a function of tensors lacks argument {}", i);
    return items[i];
  }

  // (storage, offset, size, stride, ...); v3: (.., requires_grad, hooks, dtype, ..).
  HostArray tensor(uint32_t arguments, bool typed, FindStorage find) {
    const PickleNode& persistent = pickle_[argument(arguments, 0)];
    if (persistent.kind != Kind::Persistent || !is_storage(persistent))
      wrong("a tensor without a storage");
    const StorageUse use = storage_of(persistent);
    DType dtype = use.dtype;
    if (typed) {
      const std::string& name = pickle_[argument(arguments, 6)].text;
      const auto named = dtype_named(name);
      if (!named) wrong("a tensor of {}, which weft does not have", quoted_name(name));
      dtype = *named;
    }
    Layout layout;
    layout.offset = integer(argument(arguments, 1));
    layout.shape = integers(argument(arguments, 2));
    layout.strides = integers(argument(arguments, 3));
    if (layout.shape.size() != layout.strides.size())
      wrong("a tensor with {} sizes and {} strides", layout.shape.size(), layout.strides.size());
    return elements(checked_storage(use, find), dtype, layout);
  }

  bool is_storage(const PickleNode& node) const {
    const PickleNode& id = pickle_[node.items[0]];
    return id.kind == Kind::Tuple && id.items.size() >= 5 &&
           pickle_[id.items[0]].kind == Kind::Text && pickle_[id.items[0]].text == "storage";
  }
  // ("storage", class, key, device, count of elements[, view of another, in old files]).
  StorageUse storage_of(const PickleNode& node) const {
    const auto& id = pickle_[node.items[0]].items;
    const std::string& name = pickle_[id[1]].text;
    const auto dtype = dtype_of_storage(name);
    if (!dtype) wrong("a storage {}, which weft does not have", quoted_name(name));
    if (pickle_[id[2]].kind != Kind::Text) wrong("a storage without a key");
    if (id.size() > 5 && pickle_[id[5]].kind != Kind::None) wrong("a storage that is part of one");
    const int64_t count = integer(id[4]);
    if (count < 0) wrong("a storage of {} elements", count);
    return {pickle_[id[2]].text, *dtype, static_cast<uint64_t>(count)};
  }
  HostArray checked_storage(const StorageUse& use, FindStorage find) const {
    HostArray storage = find(use.key);
    const auto bytes = checked_mul<uint64_t>(use.count, static_cast<uint64_t>(bits(use.dtype) / 8));
    if (!bytes || *bytes != storage.bytes.size())
      wrong("the storage {} of {} {} has {} bytes in the file", quoted_name(use.key), use.count,
            name(use.dtype), storage.bytes.size());
    return storage;
  }

  int64_t integer(uint32_t node) const {
    if (pickle_[node].kind != Kind::Integer) wrong("something other than a number of 64 bits");
    return pickle_[node].integer;
  }
  std::vector<int64_t> integers(uint32_t node) const {
    const PickleNode& list = pickle_[node];
    if (list.kind != Kind::Tuple || list.items.size() > kMostDims)
      wrong("sizes that are no tuple, or more than {}", kMostDims);
    std::vector<int64_t> all;
    for (const uint32_t item : list.items) all.push_back(integer(item));
    return all;
  }

  // ---- elements of a storage

  HostArray elements(const HostArray& storage, DType dtype, Layout& layout) {
    const int64_t size = bits(dtype) / 8, there = static_cast<int64_t>(storage.bytes.size()) / size;
    const std::optional<int64_t> bytes = checked_bytes(dtype, layout.shape);
    if (!bytes) wrong("a tensor of shape {}", shape_text(layout.shape));
    if (*bytes == 0) return HostArray::owned(dtype, layout.shape, {});
    const std::optional<int64_t> end = reach(layout);
    if (!end || *end > there)
      wrong("a tensor of shape {} from element {} ends outside of its storage of {}",
            shape_text(layout.shape), layout.offset, there);
    const auto at = static_cast<size_t>(layout.offset * size);
    if (in_order(layout))
      return {dtype, layout.shape, storage.bytes.subspan(at, static_cast<size_t>(*bytes)),
              storage.owner};
    const auto wanted = static_cast<uint64_t>(*bytes);
    if (wanted > copies_left_)
      fail_runtime("pt.size",
                   "{}: tensors that overlap or repeat in {} bytes of storage would take more than "
                   "{} bytes in all",
                   what_, storage.bytes.size(), wanted);
    copies_left_ -= wanted;
    return HostArray::owned(dtype, layout.shape, gathered(storage.bytes, layout, size, wanted));
  }

  // One past the last element; nothing where the numbers are none that a tensor can have.
  static std::optional<int64_t> reach(const Layout& layout) {
    if (layout.offset < 0) return std::nullopt;
    std::optional<int64_t> end = checked_add(layout.offset, int64_t{1});
    for (size_t i = 0; end && i < layout.shape.size(); ++i) {
      if (layout.strides[i] < 0) return std::nullopt;
      const auto step = checked_mul(layout.shape[i] - 1, layout.strides[i]);
      end = step ? checked_add(*end, *step) : std::nullopt;
    }
    return end;
  }
  static bool in_order(const Layout& layout) {
    int64_t step = 1;
    for (size_t i = layout.shape.size(); i-- > 0;) {
      if (layout.shape[i] != 1 && layout.strides[i] != step) return false;
      step *= layout.shape[i];
    }
    return true;
  }
  static std::vector<std::byte> gathered(std::span<const std::byte> storage, const Layout& layout,
                                         int64_t size, uint64_t bytes) {
    std::vector<std::byte> out(bytes);
    std::vector<int64_t> index(layout.shape.size(), 0);
    int64_t from = layout.offset;
    for (size_t at = 0; at < out.size(); at += static_cast<size_t>(size)) {
      std::memcpy(out.data() + at, storage.data() + from * size, static_cast<size_t>(size));
      for (size_t axis = layout.shape.size(); axis-- > 0;) {
        from += layout.strides[axis];
        if (++index[axis] < layout.shape[axis]) break;
        from -= layout.strides[axis] * layout.shape[axis];
        index[axis] = 0;
      }
    }
    return out;
  }

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> pattern, Args&&... args) const {
    std::string problem;
    append_vformat(problem, pattern, fmt::make_format_args(args...));
    fail_runtime("pt.format", "{}: {}; the file is damaged, or of a kind that weft does not read",
                 what_, problem);
  }

  PtContent& content_;
  Pickle& pickle_;
  std::string_view what_;
  uint64_t copies_left_;
};

/// Names of the tensors by the way from the root.
class Names {
 public:
  Names(PtContent& content, std::string_view what) : content_(content), what_(what) {}

  void visit(uint32_t node, const std::string& name, size_t depth) {
    const auto tensor = content_.tensors.find(node);
    if (tensor != content_.tensors.end()) return add(name, tensor->second);
    const PickleNode& tree = content_.pickle[node];
    const bool dict = tree.kind == Kind::Dict;
    if (!dict && tree.kind != Kind::List && tree.kind != Kind::Tuple) return;
    if (depth == kDeepest) wrong("is nested deeper than", kDeepest);
    for (size_t i = 0; i < tree.items.size(); i += dict ? 2 : 1) {
      if (++visited_ > kMostNamed) wrong("has more members than", kMostNamed);
      const std::string key = dict ? text_of(content_.pickle[tree.items[i]]) : std::to_string(i);
      if (key.empty()) continue;
      visit(tree.items[dict ? i + 1 : i], name.empty() ? key : name + "." + key, depth + 1);
    }
  }

 private:
  static std::string text_of(const PickleNode& key) {
    if (key.kind == Kind::Integer) return std::to_string(key.integer);
    return key.kind == Kind::Text ? key.text : "";
  }
  void add(const std::string& name, const HostArray& array) {
    if (!seen_.insert(name).second)
      fail_runtime("pt.format", "{}: two tensors are {}", what_, quoted_name(name));
    content_.arrays.push_back({name, array});
  }
  [[noreturn]] void wrong(const char* problem, uint64_t most) const {
    fail_runtime("pt.size", "{}: {} {}", what_, problem, most);
  }

  PtContent& content_;
  std::string_view what_;
  uint64_t visited_ = 0;
  std::unordered_set<std::string> seen_;
};

// ---- PyTorch 1.6 and newer: a zip archive with data.pkl, byteorder and data/<key>

class ZipFile {
 public:
  ZipFile(std::span<const std::byte> data, std::string_view what, std::shared_ptr<const void> owner,
          const UnpackLimits& limits)
      : what_(what), owner_(std::move(owner)) {
    constexpr std::string_view kPickle = "data.pkl";
    for (ZipMember& member : parse_zip(data, what, limits)) {
      const bool is_pickle = member.name == kPickle || member.name.ends_with("/data.pkl");
      if (is_pickle && std::exchange(found_, true))
        fail_runtime("pt.format", "{}: has more than one data.pkl", what);
      if (is_pickle) folder_ = member.name.substr(0, member.name.size() - kPickle.size());
      std::string name = member.name;
      members_.emplace(std::move(name), std::move(member));
    }
    if (!found_)
      fail_runtime("pt.format", "{}: is a zip archive without data.pkl, so not of torch.save",
                   what);
  }

  HostArray pickle() const {
    const auto order = members_.find(folder_ + "byteorder");
    if (order != members_.end()) check_order(order->second);
    return content(members_.at(folder_ + "data.pkl"));
  }
  HostArray storage(const std::string& key) {
    const auto at = members_.find(folder_ + "data/" + key);
    if (at == members_.end())
      fail_runtime("pt.format", "{}: has no storage {}; it is cut short or damaged", what_,
                   quoted_name(key));
    const ZipMember& member = at->second;
    if (member.stored)
      return {DType::U8, {static_cast<int64_t>(member.bytes)}, member.packed, owner_};
    const auto known = unpacked_.find(key);
    if (known != unpacked_.end()) return known->second;
    return unpacked_[key] = content(member);
  }

 private:
  HostArray content(const ZipMember& member) const {
    return zip_content(member, what_, owner_, Checksum::MayBeZero);
  }
  void check_order(const ZipMember& member) const {
    const HostArray text = content(member);
    const std::string_view order(reinterpret_cast<const char*>(text.bytes.data()),
                                 text.bytes.size());
    if (order != "little")
      fail_runtime("pt.format", "{}: has the byte order of another machine: {}", what_,
                   quoted_name(order));
  }

  std::string_view what_;
  std::shared_ptr<const void> owner_;
  bool found_ = false;
  std::string folder_;
  std::unordered_map<std::string, ZipMember> members_;
  std::unordered_map<std::string, HostArray> unpacked_;
};

PtContent parse_zipped(std::span<const std::byte> data, std::string_view what,
                       const std::shared_ptr<const void>& owner, const UnpackLimits& limits) {
  ZipFile file(data, what, owner, limits);
  PtContent content;
  const HostArray pickle = file.pickle();
  content.pickle = parse_pickle(pickle.bytes, what);
  if (content.pickle.bytes != pickle.bytes.size())
    fail_runtime("pt.format", "{}: something follows the end of its pickle at {}", what,
                 content.pickle.bytes);
  TensorReader reader(content, what, data.size());
  reader.rebuild([&](const std::string& key) { return file.storage(key); });
  return content;
}

// ---- before: a magic number, a version, facts about the machine, the object and the keys of its
// storages, each a pickle; then for each key the number of its elements and those

constexpr unsigned char kMagic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

bool is_magic(const Pickle& pickle) {
  const PickleNode& root = pickle[pickle.root];
  return root.kind == Kind::LongInteger &&
         root.text == std::string_view(reinterpret_cast<const char*>(kMagic), sizeof(kMagic));
}

void check_kind(std::span<const std::byte> data, std::string_view what) {
  constexpr size_t kTarMagic = 257;
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  if (text.size() > kTarMagic + 5 && text.substr(kTarMagic, 5) == "ustar")
    fail_runtime("pt.format",
                 "{}: is a tar file of PyTorch before 0.1.10, which is not read; load and save it "
                 "with a newer PyTorch",
                 what);
  if (text.substr(0, 2) != "\x80\x02")
    fail_runtime("pt.format", "{}: is neither a zip archive nor a pickle of torch.save", what);
}

Pickle next_pickle(ByteReader& reader, std::span<const std::byte> data, std::string_view what) {
  Pickle pickle = parse_pickle(data.subspan(reader.offset()), what);
  reader.skip(pickle.bytes);
  return pickle;
}

using Storages = std::map<std::string, HostArray>;

Storages read_storages(ByteReader& reader, const Pickle& keys,
                       const std::map<std::string, DType>& dtypes,
                       const std::shared_ptr<const void>& owner) {
  Storages storages;
  for (const uint32_t item : keys[keys.root].items) {
    const std::string& key = keys[item].text;
    const auto dtype = dtypes.find(key);
    if (dtype == dtypes.end() || storages.contains(key))
      fail_runtime("pt.format", "{}: the storage {} belongs to nothing or is there twice",
                   reader.what(), quoted_name(key));
    const uint64_t count = reader.u64();
    const auto bytes = checked_mul(count, static_cast<uint64_t>(bits(dtype->second) / 8));
    const auto content = reader.bytes(bytes.value_or(UINT64_MAX));
    storages[key] = {DType::U8, {static_cast<int64_t>(content.size())}, content, owner};
  }
  return storages;
}

PtContent parse_pickles(std::span<const std::byte> data, std::string_view what,
                        const std::shared_ptr<const void>& owner) {
  check_kind(data, what);
  ByteReader reader(data, what);
  if (!is_magic(next_pickle(reader, data, what)))
    fail_runtime("pt.format", "{}: is a pickle, but not of torch.save", what);
  next_pickle(reader, data, what);
  next_pickle(reader, data, what);
  PtContent content;
  content.pickle = next_pickle(reader, data, what);
  const Pickle keys = next_pickle(reader, data, what);
  TensorReader tensors(content, what, data.size());
  std::map<std::string, DType> dtypes;
  tensors.each_storage([&](const StorageUse& use) { dtypes.emplace(use.key, use.dtype); });
  Storages storages = read_storages(reader, keys, dtypes, owner);
  tensors.rebuild([&](const std::string& key) {
    const auto at = storages.find(key);
    if (at == storages.end())
      fail_runtime("pt.format", "{}: has no storage {}", what, quoted_name(key));
    return at->second;
  });
  return content;
}

}  // namespace

const HostArray* PtContent::find(std::string_view name) const {
  const auto at = std::ranges::find(arrays, name, &NamedArray::name);
  return at == arrays.end() ? nullptr : &at->array;
}

PtContent parse_pt(std::span<const std::byte> data, std::string_view what,
                   std::shared_ptr<const void> owner, const UnpackLimits& limits) {
  PtContent content =
      is_zip(data) ? parse_zipped(data, what, owner, limits) : parse_pickles(data, what, owner);
  Names(content, what).visit(content.pickle.root, "", 0);
  return content;
}

PtContent read_pt(const std::string& path, const UnpackLimits& limits) {
  const auto file = MappedFile::open(path);
  return parse_pt(file->bytes(), path, file, limits);
}

}  // namespace weft
