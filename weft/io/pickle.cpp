#include "weft/io/pickle.h"

#include <bit>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/base/utf8.h"

namespace weft {

namespace {

using Kind = PickleNode::Kind;

constexpr uint64_t kMostNodes = uint64_t{1} << 22;
constexpr uint64_t kLongestInteger = 255;  // bytes
constexpr size_t kLongestName = 256;       // of modules and functions: written once, joined often
constexpr int kFirstProtocol = 2, kLastProtocol = 5;

// pickletools.py: the codes that data is made of.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

// What these make is data, whatever they are called with.
constexpr std::string_view kDicts[] = {"collections OrderedDict", "collections defaultdict",
                                       "builtins dict", "__builtin__ dict"};

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> data, std::string_view what)
      : reader_(data, what), what_(what) {}

  Pickle read() {
    while (!step()) {}
    if (stack_.size() != 1 || !marks_.empty())
      wrong("ends with {} values and {} marks instead of one value", stack_.size(), marks_.size());
    pickle_.root = stack_.back();
    pickle_.bytes = reader_.offset();
    return std::move(pickle_);
  }

 private:
  // Whether it was the last one.
  bool step() {
    at_ = reader_.offset();
    const uint8_t code = reader_.u8();
    switch (code) {
      case kStop: return true;
      case kProto: check_protocol(reader_.u8()); break;
      case kFrame: check_frame(reader_.u64()); break;
      case kMark: marks_.push_back(stack_.size()); break;
      case kPop: pop(); break;
      case kPopMark: take_marked(); break;
      case kDup: push(top()); break;
      case kNone:
      case kNewTrue:
      case kNewFalse:
      case kBinInt:
      case kBinInt1:
      case kBinInt2:
      case kLong1:
      case kLong4:
      case kBinFloat: read_number(code); break;
      case kBinPut: memo_[reader_.u8()] = top(); break;
      case kLongBinPut: memo_[reader_.u32()] = top(); break;
      case kMemoize: memo_[static_cast<uint32_t>(memo_.size())] = top(); break;
      case kBinGet: push(remembered(reader_.u8())); break;
      case kLongBinGet: push(remembered(reader_.u32())); break;
      case kGlobal: read_global(); break;
      case kStackGlobal: join_global(); break;
      case kReduce:
      case kNewObj: call(); break;
      case kBuild: build(); break;
      case kBinPersId: push(made(Kind::Persistent, {drop()})); break;
      default:
        if (!read_text(code) && !read_container(code)) refuse(code);
    }
    return false;
  }

  // ---- nodes, the stack and the memo

  uint32_t made(Kind kind, std::vector<uint32_t> items = {}) {
    PickleNode node;
    node.kind = kind;
    node.items = std::move(items);
    return add(std::move(node));
  }
  uint32_t add(PickleNode node) {
    if (pickle_.nodes.size() >= kMostNodes) wrong("more than {} values", kMostNodes);
    pickle_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(pickle_.nodes.size() - 1);
  }
  void push(uint32_t node) {
    if (stack_.size() >= kMostNodes) wrong("more than {} values on its stack", kMostNodes);
    stack_.push_back(node);
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t top() const {
    if (stack_.size() <= floor()) wrong("takes a value from an empty stack");
    return stack_.back();
  }
  uint32_t drop() {
    const uint32_t node = top();
    stack_.pop_back();
    return node;
  }
  // A value, or the mark where there is none above it.
  void pop() {
    if (!marks_.empty() && marks_.back() == stack_.size())
      marks_.pop_back();
    else
      drop();
  }
  std::vector<uint32_t> take_marked() {
    if (marks_.empty()) wrong("takes what is above a mark, and there is none");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<uint32_t> take(size_t count) {
    std::vector<uint32_t> items(count);
    for (size_t i = count; i-- > 0;) items[i] = drop();
    return items;
  }
  uint32_t remembered(uint32_t place) const {
    const auto at = memo_.find(place);
    if (at == memo_.end()) wrong("takes {} from its memo, where nothing is", place);
    return at->second;
  }
  PickleNode& at(uint32_t node) { return pickle_.nodes[node]; }

  // ---- numbers and texts

  void check_protocol(int protocol) const {
    if (protocol < kFirstProtocol || protocol > kLastProtocol)
      wrong("protocol {}; {} to {} are read", protocol, kFirstProtocol, kLastProtocol);
  }
  void check_frame(uint64_t size) const {
    if (size > reader_.remaining())
      wrong("a frame of {} bytes, of which {} are there", size, reader_.remaining());
  }

  void read_number(uint8_t code) {
    PickleNode node;
    node.kind = Kind::Integer;
    switch (code) {
      case kNone: node.kind = Kind::None; break;
      case kNewTrue:
      case kNewFalse:
        node.kind = Kind::Bool;
        node.integer = code == kNewTrue;
        break;
      case kBinInt: node.integer = reader_.i32(); break;
      case kBinInt1: node.integer = reader_.u8(); break;
      case kBinInt2: node.integer = reader_.u16(); break;
      case kLong1: read_long(node, reader_.u8()); break;
      case kLong4: read_long(node, reader_.u32()); break;
      default:
        node.kind = Kind::Number;
        node.number = std::bit_cast<double>(__builtin_bswap64(reader_.u64()));
    }
    push(add(std::move(node)));
  }
  void read_long(PickleNode& node, uint64_t size) {
    if (size > kLongestInteger) wrong("an integer of {} bytes", size);
    const std::string_view digits = reader_.text(size);
    if (size > sizeof(int64_t)) {
      node.kind = Kind::LongInteger;
      node.text = digits;
      return;
    }
    uint64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = digits.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(digits[i]);
    node.integer = static_cast<int64_t>(value);
  }

  bool read_text(uint8_t code) {
    switch (code) {
      case kShortBinUnicode: return push_text(Kind::Text, reader_.u8());
      case kBinUnicode: return push_text(Kind::Text, reader_.u32());
      case kBinUnicode8: return push_text(Kind::Text, reader_.u64());
      case kShortBinString: return push_string(reader_.u8());
      case kBinString: return push_string(reader_.u32());
      case kShortBinBytes: return push_text(Kind::Bytes, reader_.u8());
      case kBinBytes: return push_text(Kind::Bytes, reader_.u32());
      case kBinBytes8:
      case kByteArray8: return push_text(Kind::Bytes, reader_.u64());
      default: return false;
    }
  }
  bool push_text(Kind kind, uint64_t size) {
    PickleNode node;
    node.kind = kind;
    node.text = reader_.text(size);
    if (kind == Kind::Text && !is_utf8(node.text)) wrong("a text that is not UTF-8");
    push(add(std::move(node)));
    return true;
  }
  // Python 2's strings are either.
  bool push_string(uint64_t size) {
    PickleNode node;
    node.text = reader_.text(size);
    node.kind = is_utf8(node.text) ? Kind::Text : Kind::Bytes;
    push(add(std::move(node)));
    return true;
  }

  // ---- containers

  bool read_container(uint8_t code) {
    switch (code) {
      case kEmptyTuple: push(made(Kind::Tuple)); return true;
      case kEmptyList: push(made(Kind::List)); return true;
      case kEmptyDict: push(made(Kind::Dict)); return true;
      case kEmptySet: push(made(Kind::Set)); return true;
      case kTuple1:
      case kTuple2:
      case kTuple3: push(made(Kind::Tuple, take(code - kTuple1 + 1))); return true;
      case kTuple: push(made(Kind::Tuple, take_marked())); return true;
      case kList: push(made(Kind::List, take_marked())); return true;
      case kFrozenSet: push(made(Kind::Set, take_marked())); return true;
      case kDict: push_dict(take_marked()); return true;
      case kAppend: return extend(Kind::List, take(1));
      case kAppends: return extend(Kind::List, take_marked());
      case kAddItems: return extend(Kind::Set, take_marked());
      case kSetItem: return extend(Kind::Dict, take(2));
      case kSetItems: return extend(Kind::Dict, take_marked());
      default: return false;
    }
  }
  void push_dict(const std::vector<uint32_t>& items) {
    push(made(Kind::Dict));
    extend(Kind::Dict, items);
  }

  // What a foreign object is given has no place to go.
  bool extend(Kind kind, const std::vector<uint32_t>& items) {
    PickleNode& into = at(top());
    if (into.kind == Kind::Call) return true;
    if (into.kind != kind) wrong("adds members to what has none");
    if (kind == Kind::Dict && items.size() % 2 != 0) wrong("a key without a value");
    into.items.insert(into.items.end(), items.begin(), items.end());
    return true;
  }

  // ---- names and calls

  std::string_view line() {
    const std::string_view rest = peek();
    const size_t end = rest.find('\n');
    if (end == rest.npos) wrong("a name without an end");
    reader_.skip(end + 1);
    return rest.substr(0, end);
  }
  std::string_view peek() {
    ByteReader ahead = reader_;
    return ahead.text(ahead.remaining());
  }
  void read_global() {
    const std::string_view module = line();
    push_name(module, line());
  }
  void join_global() {
    const uint32_t name = drop(), module = drop();
    if (at(name).kind != Kind::Text || at(module).kind != Kind::Text)
      wrong("a name that is no text");
    push_name(at(module).text, at(name).text);
  }
  void push_name(std::string_view module, std::string_view name) {
    if (module.size() > kLongestName || name.size() > kLongestName)
      wrong("a name of more than {} bytes", kLongestName);
    PickleNode node;
    node.kind = Kind::Name;
    node.text = strformat("{} {}", module, name);
    push(add(std::move(node)));
  }

  void call() {
    const uint32_t arguments = drop(), function = drop();
    const Kind kind = at(function).kind;
    if (at(arguments).kind != Kind::Tuple) wrong("calls with something other than a tuple");
    if (kind != Kind::Name && kind != Kind::Call && kind != Kind::Persistent)
      wrong("calls what is no function");
    for (const std::string_view dict : kDicts)
      if (at(function).text == dict) return push(dict_of(arguments));
    push(made(Kind::Call, {function, arguments}));
  }
  // OrderedDict([[key, value], ...]), as Python 2 wrote them; of other arguments only the count is
  // known: a factory, say.
  uint32_t dict_of(uint32_t arguments) {
    std::vector<uint32_t> items;
    for (const uint32_t list : at(arguments).items) {
      if (at(list).kind != Kind::List) continue;
      for (const uint32_t pair : at(list).items) {
        if (at(pair).items.size() != 2 || at(pair).kind > Kind::Tuple) wrong("a pair that is none");
        if (++copied_ > kMostNodes) wrong("more than {} copied values", kMostNodes);
        items.insert(items.end(), at(pair).items.begin(), at(pair).items.end());
      }
    }
    return made(Kind::Dict, std::move(items));
  }
  // Attributes: of dictionaries (a state dict's versions) and of foreign objects they are left out.
  void build() {
    drop();
    const Kind kind = at(top()).kind;
    if (kind != Kind::Dict && kind != Kind::Call) wrong("sets attributes of what has none");
  }

  [[noreturn]] void refuse(uint8_t code) const {
    if (code > ' ' && code < 127)
      wrong("opcode '{}', which tensors do not need", static_cast<char>(code));
    wrong("opcode {:#04x}, which tensors do not need", code);
  }
  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> pattern, Args&&... args) const {
    std::string problem;
    append_vformat(problem, pattern, fmt::make_format_args(args...));
    fail_runtime("pickle.format", "{}: {} at offset {} of the pickle", what_, problem, at_);
  }

  ByteReader reader_;
  std::string_view what_;
  size_t at_ = 0;
  uint64_t copied_ = 0;  // a list may be passed again and again
  Pickle pickle_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, uint32_t> memo_;
};

}  // namespace

Pickle parse_pickle(std::span<const std::byte> data, std::string_view what) {
  return PickleReader(data, what).read();
}

}  // namespace weft
