#include "weft/base/version.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>

#include "weft/base/hash.h"

namespace weft {

namespace {

struct Search {
  uintptr_t inside;  // an address of ours
  uint64_t id = 0;
};

// Hash of the NT_GNU_BUILD_ID note in one PT_NOTE segment, 0 when it holds none.
uint64_t id_in_notes(const unsigned char* at, const unsigned char* end) {
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof(note));
    const unsigned char* name = at + sizeof(note);
    const unsigned char* content = name + (note.n_namesz + 3) / 4 * 4;
    const bool gnu = note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) return hash_bytes(content, note.n_descsz);
    at = content + (note.n_descsz + 3) / 4 * 4;
  }
  return 0;
}

int look(dl_phdr_info* object, size_t, void* user) {
  auto& search = *static_cast<Search*>(user);
  bool ours = false;
  uint64_t id = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && search.inside - start < part.p_memsz) ours = true;
    if (part.p_type == PT_NOTE && id == 0) {
      const auto* notes = reinterpret_cast<const unsigned char*>(start);
      id = id_in_notes(notes, notes + part.p_memsz);
    }
  }
  if (ours) search.id = id;
  return ours ? 1 : 0;
}

uint64_t linked_id() {
  Search search{reinterpret_cast<uintptr_t>(&build_id)};
  ::dl_iterate_phdr(look, &search);
  return search.id;
}

}  // namespace

uint64_t build_id() { return hash_combine(hash_text(kVersion), linked_id()); }

bool has_build_id() { return linked_id() != 0; }

}  // namespace weft
