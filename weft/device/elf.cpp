#include "weft/device/elf.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/reader.h"

namespace weft {

namespace {

constexpr size_t kPage = 4096;
constexpr uint64_t kMaxImage = uint64_t{256} << 20;  // far below what PC-relative code reaches

template <class... Args>
[[noreturn]] void bad(fmt::format_string<Args...> pattern, Args&&... args) {
  fail_runtime("device.object", "object file: {}; delete the kernel cache or try another compiler",
               strformat(pattern, std::forward<Args>(args)...));
}

struct External {
  const char* name;
  void* address;
};

// What a compiler may call even in freestanding code; Clang makes fmaxf of a select on f16 values.
std::span<const External> externals() {
  static const External kTable[] = {
      {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
      {"memmove", reinterpret_cast<void*>(&std::memmove)},
      {"memset", reinterpret_cast<void*>(&std::memset)},
      {"memcmp", reinterpret_cast<void*>(&std::memcmp)},
      {"fmaxf", reinterpret_cast<void*>(&::fmaxf)},
      {"fminf", reinterpret_cast<void*>(&::fminf)},
      {"fmax", reinterpret_cast<void*>(static_cast<double (*)(double, double)>(&::fmax))},
      {"fmin", reinterpret_cast<void*>(static_cast<double (*)(double, double)>(&::fmin))},
  };
  return kTable;
}

// jmp *2(%rip); ud2; then the address itself, which serves as the global offset table's entry too.
constexpr size_t kStubBytes = 16;
constexpr size_t kStubAddress = 8;
constexpr unsigned char kStubCode[kStubAddress] = {0xff, 0x25, 0x02, 0, 0, 0, 0x0f, 0x0b};

template <class T>
T read_struct(ByteReader& reader) {
  T value;
  std::memcpy(&value, reader.bytes(sizeof(T)).data(), sizeof(T));
  return value;
}

std::string_view name_at(std::span<const std::byte> table, uint64_t offset) {
  if (offset >= table.size()) bad("a name at {} lies outside its table", offset);
  const char* first = reinterpret_cast<const char*>(table.data()) + offset;
  return {first, ::strnlen(first, table.size() - static_cast<size_t>(offset))};
}

}  // namespace

class ObjectLoader {
 public:
  explicit ObjectLoader(std::span<const std::byte> elf) : elf_(elf), code_(new CodeObject) {}

  std::shared_ptr<CodeObject> load() {
    read_sections();
    read_symbols();
    place_sections();
    copy_sections();
    for (const Section& s : sections_)
      if (s.header.sh_type == SHT_RELA) relocate(s);
    export_functions();
    protect();
    return std::move(code_);
  }

 private:
  enum Group { kCode, kConst, kData, kGroups };
  struct Section {
    Elf64_Shdr header;
    std::byte* at = nullptr;  // in our memory; null: not loaded
    bool loaded() const { return at != nullptr; }
  };

  ByteReader reader_at(uint64_t offset) const {
    ByteReader reader(elf_, "object file");
    reader.seek(offset);
    return reader;
  }
  std::span<const std::byte> content(const Section& s) const {
    ByteReader reader = reader_at(s.header.sh_offset);
    return reader.bytes(s.header.sh_size);
  }
  const Section& section(uint64_t index) const {
    if (index >= sections_.size()) bad("there is no section {}", index);
    return sections_[static_cast<size_t>(index)];
  }

  void read_sections();
  void read_symbols();
  void place_sections();
  void copy_sections();
  void relocate(const Section& rela);
  void apply(Section& target, const Elf64_Rela& r);
  void write_relative(std::byte* at, uint64_t value, bool is_signed, uint64_t type);
  uint64_t address_of(const Elf64_Sym& symbol);
  std::byte* stub(std::string_view name);
  void export_functions();
  void protect();

  static Group group_of(const Elf64_Shdr& h) {
    return h.sh_flags & SHF_WRITE ? kData : h.sh_flags & SHF_EXECINSTR ? kCode : kConst;
  }
  static bool wanted(const Elf64_Shdr& h) {
    return (h.sh_flags & SHF_ALLOC) != 0 && (h.sh_type == SHT_PROGBITS || h.sh_type == SHT_NOBITS);
  }

  std::span<const std::byte> elf_;
  std::shared_ptr<CodeObject> code_;
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::span<const std::byte> names_;
  size_t group_end_[kGroups] = {};  // page-aligned offsets in the mapping
  size_t stubs_at_ = 0;
};

void ObjectLoader::read_sections() {
  ByteReader reader(elf_, "object file");
  const auto h = read_struct<Elf64_Ehdr>(reader);
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
      h.e_ident[EI_DATA] != ELFDATA2LSB) {
    bad("it is not a 64-bit little-endian ELF file");
  }
  if (h.e_type != ET_REL || h.e_machine != EM_X86_64) {
    bad("it is of type {} for machine {}, not a relocatable x86-64 object", h.e_type, h.e_machine);
  }
  if (h.e_shentsize != sizeof(Elf64_Shdr)) bad("section headers have {} bytes", h.e_shentsize);
  ByteReader table = reader_at(h.e_shoff);
  const size_t count = table.count(h.e_shnum, sizeof(Elf64_Shdr));
  for (size_t i = 0; i < count; ++i) sections_.push_back({read_struct<Elf64_Shdr>(table)});
}

void ObjectLoader::read_symbols() {
  for (const Section& s : sections_) {
    if (s.header.sh_type != SHT_SYMTAB) continue;
    if (!symbols_.empty()) bad("it has two symbol tables");
    ByteReader reader = reader_at(s.header.sh_offset);
    const size_t count = reader.count(s.header.sh_size / sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    for (size_t i = 0; i < count; ++i) symbols_.push_back(read_struct<Elf64_Sym>(reader));
    names_ = content(section(s.header.sh_link));
  }
}

void ObjectLoader::place_sections() {
  std::vector<size_t> offsets(sections_.size());
  uint64_t end = 0;
  for (int group = 0; group < kGroups; ++group) {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& h = sections_[i].header;
      if (!wanted(h) || group_of(h) != group) continue;
      if ((h.sh_flags & SHF_EXECINSTR) != 0 && (h.sh_flags & SHF_WRITE) != 0)
        bad("section {} is writable and executable", i);
      const uint64_t align = h.sh_addralign == 0 ? 1 : h.sh_addralign;
      if (!std::has_single_bit(align) || align > kPage)
        bad("section {} is aligned to {}", i, align);
      if (h.sh_size > kMaxImage) bad("section {} has {} bytes", i, h.sh_size);
      end = (end + align - 1) & ~(align - 1);
      offsets[i] = static_cast<size_t>(end);
      end += h.sh_size;
      if (end > kMaxImage) bad("it needs more than {} bytes", kMaxImage);
    }
    if (group == kCode) {
      end = (end + kStubBytes - 1) & ~(kStubBytes - 1);
      stubs_at_ = static_cast<size_t>(end);
      end += externals().size() * kStubBytes;
    }
    end = (end + kPage - 1) & ~(kPage - 1);
    group_end_[group] = static_cast<size_t>(end);
  }
  void* memory = ::mmap(nullptr, static_cast<size_t>(end), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_errno("device.object", "cannot map memory for code", errno);
  code_->base_ = static_cast<std::byte*>(memory);
  code_->size_ = static_cast<size_t>(end);
  for (size_t i = 0; i < sections_.size(); ++i)
    if (wanted(sections_[i].header)) sections_[i].at = code_->base_ + offsets[i];
}

void ObjectLoader::copy_sections() {
  for (const Section& s : sections_) {
    if (!s.loaded() || s.header.sh_type == SHT_NOBITS) continue;
    const std::span<const std::byte> bytes = content(s);
    if (!bytes.empty()) std::memcpy(s.at, bytes.data(), bytes.size());
  }
  std::byte* stub = code_->base_ + stubs_at_;
  for (const External& e : externals()) {
    std::memcpy(stub, kStubCode, sizeof(kStubCode));
    std::memcpy(stub + kStubAddress, &e.address, sizeof(e.address));
    stub += kStubBytes;
  }
}

std::byte* ObjectLoader::stub(std::string_view name) {
  std::byte* at = code_->base_ + stubs_at_;
  for (const External& e : externals()) {
    if (name == e.name) return at;
    at += kStubBytes;
  }
  bad("it needs the function {}, which kernels may not call", name);
}

uint64_t ObjectLoader::address_of(const Elf64_Sym& symbol) {
  if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
  if (symbol.st_shndx == SHN_UNDEF)
    return reinterpret_cast<uint64_t>(stub(name_at(names_, symbol.st_name)));
  const Section& home = section(symbol.st_shndx);
  if (!home.loaded() || symbol.st_value > home.header.sh_size)
    bad("a symbol lies outside the loaded sections");
  return reinterpret_cast<uint64_t>(home.at) + symbol.st_value;
}

void ObjectLoader::relocate(const Section& rela) {
  if (rela.header.sh_info >= sections_.size()) bad("relocations of a section that is not there");
  Section& target = sections_[rela.header.sh_info];
  if (!target.loaded()) return;
  if (target.header.sh_type == SHT_NOBITS) bad("relocations of zeros");
  ByteReader reader = reader_at(rela.header.sh_offset);
  const size_t count = reader.count(rela.header.sh_size / sizeof(Elf64_Rela), sizeof(Elf64_Rela));
  for (size_t i = 0; i < count; ++i) apply(target, read_struct<Elf64_Rela>(reader));
}

void ObjectLoader::write_relative(std::byte* at, uint64_t value, bool is_signed, uint64_t type) {
  const auto low = static_cast<uint32_t>(value);
  const uint64_t back = is_signed
                            ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(low)))
                            : uint64_t{low};
  if (back != value) bad("a relocation of type {} does not reach its target", type);
  std::memcpy(at, &low, sizeof(low));
}

void ObjectLoader::apply(Section& target, const Elf64_Rela& r) {
  const uint64_t type = ELF64_R_TYPE(r.r_info), index = ELF64_R_SYM(r.r_info);
  if (type == R_X86_64_NONE) return;
  if (index >= symbols_.size()) bad("a relocation of symbol {}, which is not there", index);
  const bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
  const uint64_t width = wide ? 8 : 4;
  if (target.header.sh_size < width || r.r_offset > target.header.sh_size - width)
    bad("a relocation at {} lies outside its section", r.r_offset);
  std::byte* at = target.at + r.r_offset;
  const auto here = reinterpret_cast<uint64_t>(at), addend = static_cast<uint64_t>(r.r_addend);
  const uint64_t value = address_of(symbols_[static_cast<size_t>(index)]) + addend;
  switch (type) {
    case R_X86_64_64: std::memcpy(at, &value, 8); return;
    case R_X86_64_PC64: {
      const uint64_t distance = value - here;
      std::memcpy(at, &distance, 8);
      return;
    }
    case R_X86_64_PC32:
    case R_X86_64_PLT32: return write_relative(at, value - here, true, type);
    case R_X86_64_32: return write_relative(at, value, false, type);
    case R_X86_64_32S: return write_relative(at, value, true, type);
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX: {
      const Elf64_Sym& symbol = symbols_[static_cast<size_t>(index)];
      if (symbol.st_shndx != SHN_UNDEF) bad("a table entry for a symbol of its own");
      return write_relative(at, value + kStubAddress - here, true, type);
    }
    default: bad("a relocation of unknown type {}", type);
  }
}

void ObjectLoader::export_functions() {
  for (const Elf64_Sym& s : symbols_) {
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || ELF64_ST_BIND(s.st_info) != STB_GLOBAL) continue;
    if (s.st_shndx == SHN_UNDEF || s.st_shndx >= sections_.size()) continue;
    const Section& home = sections_[s.st_shndx];
    if (!home.loaded() || group_of(home.header) != kCode || s.st_value >= home.header.sh_size)
      bad("a function lies outside the code");
    code_->functions_.emplace(name_at(names_, s.st_name), home.at + s.st_value);
  }
}

void ObjectLoader::protect() {
  const auto set = [&](size_t begin, size_t end, int protection) {
    if (begin == end) return;
    if (::mprotect(code_->base_ + begin, end - begin, protection) != 0)
      fail_errno("device.object", "the system refuses to make code executable", errno);
  };
  set(0, group_end_[kCode], PROT_READ | PROT_EXEC);
  set(group_end_[kCode], group_end_[kConst], PROT_READ);
}

std::shared_ptr<CodeObject> CodeObject::load(std::span<const std::byte> elf) {
  return ObjectLoader(elf).load();
}

CodeObject::~CodeObject() {
  if (base_ != nullptr) ::munmap(base_, size_);
}

void* CodeObject::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace weft
