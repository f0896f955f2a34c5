#include "weft/text/unicode.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "weft/base/utf8.h"

namespace weft::text {
namespace {

struct Decomposition {
  uint32_t key;    // code point << 1 | only for compatibility
  uint32_t place;  // in kDecomposed << 5 | length
};
struct Composition {
  char32_t first, second, composed;
};
struct CaseRun {
  char32_t first, last;
  uint8_t step;
  int32_t distance;
};

#include "weft/text/unicode_tables.def"

constexpr size_t kPage = 256;

/// The runs as two tables, pages of which are shared.
struct Pages {
  Pages() {
    std::vector<uint16_t> page(kPage);
    size_t run = 0;
    for (char32_t c = 0; c <= kLastCodePoint; ++c) {
      if (run + 1 < std::size(kRuns) && kRuns[run + 1] >> 10 == c) ++run;
      page[c % kPage] = kRuns[run] & 1023;
      if (c % kPage == kPage - 1) first_[c / kPage] = place_of(page);
    }
  }
  uint16_t place_of(const std::vector<uint16_t>& page) {
    for (size_t at = records_.size(); at > 0; at -= kPage)  // the last is the likeliest
      if (std::equal(page.begin(), page.end(), records_.begin() + static_cast<long>(at - kPage)))
        return static_cast<uint16_t>(at / kPage - 1);
    records_.insert(records_.end(), page.begin(), page.end());
    return static_cast<uint16_t>(records_.size() / kPage - 1);
  }

  std::array<uint16_t, (kLastCodePoint + 1) / kPage> first_{};
  std::vector<uint16_t> records_;
};

const CaseRun* case_run(std::span<const CaseRun> runs, char32_t c) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), c,
                                      [](char32_t x, const CaseRun& r) { return x < r.first; });
  if (after == runs.begin()) return nullptr;
  const CaseRun& run = *(after - 1);
  return c <= run.last && (c - run.first) % run.step == 0 ? &run : nullptr;
}

char32_t mapped(std::span<const CaseRun> runs, char32_t c) {
  const CaseRun* run = case_run(runs, c);
  return run ? static_cast<char32_t>(static_cast<int32_t>(c) + run->distance) : c;
}

// Hangul's syllables: the Unicode Standard, chapter 3.12.
constexpr char32_t kSyllable = 0xac00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11a7;
constexpr char32_t kLeads = 19, kVowels = 21, kTails = 28, kSyllables = kLeads * kVowels * kTails;

void decompose_syllable(char32_t c, std::u32string& out) {
  const char32_t index = c - kSyllable;
  out += kLead + index / (kVowels * kTails);
  out += kVowel + index / kTails % kVowels;
  if (index % kTails != 0) out += kTail + index % kTails;
}

std::u32string_view one_step(char32_t c, bool compatible) {
  const auto found =
      std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), c << 1,
                       [](const Decomposition& d, char32_t key) { return d.key < key; });
  if (found == std::end(kDecompositions) || found->key >> 1 != c) return {};
  if ((found->key & 1) != 0 && !compatible) return {};
  return {kDecomposed + (found->place >> 5), found->place & 31};
}

/// As deep as the table's steps go: four.
void decompose(char32_t c, bool compatible, std::u32string& out) {
  if (c < 0x80) {
    out += c;
  } else if (c >= kSyllable && c < kSyllable + kSyllables) {
    decompose_syllable(c, out);
  } else if (const std::u32string_view parts = one_step(c, compatible); !parts.empty()) {
    for (const char32_t part : parts) decompose(part, compatible, out);
  } else {
    out += c;
  }
}

uint8_t combining_class(char32_t c) { return c < 0x300 ? 0 : character(c).combining_class; }

void order_marks(std::u32string& text) {
  for (size_t i = 0; i < text.size();) {
    if (combining_class(text[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && combining_class(text[end]) != 0) ++end;
    std::vector<std::pair<uint8_t, size_t>> order;
    for (size_t k = i; k < end; ++k) order.emplace_back(combining_class(text[k]), k);
    std::sort(order.begin(), order.end());  // places keep equal classes in their order
    std::u32string sorted;
    for (const auto& [mark_class, place] : order) sorted += text[place];
    text.replace(i, end - i, sorted);
    i = end;
  }
}

/// 0: they do not compose.
char32_t composed(char32_t a, char32_t b) {
  if (a >= kLead && a < kLead + kLeads && b >= kVowel && b < kVowel + kVowels)
    return kSyllable + ((a - kLead) * kVowels + (b - kVowel)) * kTails;
  const bool open = a >= kSyllable && a < kSyllable + kSyllables && (a - kSyllable) % kTails == 0;
  if (open && b > kTail && b < kTail + kTails) return a + (b - kTail);
  const auto found = std::lower_bound(
      std::begin(kCompositions), std::end(kCompositions), std::pair(a, b),
      [](const Composition& c, const auto& key) { return std::pair(c.first, c.second) < key; });
  const bool is = found != std::end(kCompositions) && found->first == a && found->second == b;
  return is ? found->composed : 0;
}

void compose(std::u32string& text) {
  constexpr size_t kNone = SIZE_MAX;
  size_t starter = kNone, kept = 0;
  uint8_t before = 0;  // class of what was kept last behind the starter
  for (const char32_t c : std::u32string(text)) {
    const uint8_t own = combining_class(c);
    const bool next_to = starter != kNone && kept == starter + 1;
    if (starter != kNone && (next_to || before < own)) {
      if (const char32_t both = composed(text[starter], c); both != 0) {
        text[starter] = both;
        continue;
      }
    }
    if (own == 0) starter = kept;
    before = own;
    text[kept++] = c;
  }
  text.resize(kept);
}

/// Whether normalising changes nothing from a code point to the next such one.
bool is_inert(char32_t c, NormalForm form) {
  if (c < 0x80) return true;
  if (form == NormalForm::C && c < 0x300) return true;
  // Ideographs and kana without marks are the bulk of texts that are not ASCII.
  return (c >= 0x3400 && c < 0xa000) || (c >= 0x3041 && c < 0x3047);
}

std::u32string normal_form(std::string_view text, NormalForm form) {
  const bool compatible = form == NormalForm::KC || form == NormalForm::KD;
  std::u32string out;
  for (size_t at = 0; at < text.size();) decompose(next_code_point(text, at), compatible, out);
  order_marks(out);
  if (form == NormalForm::C || form == NormalForm::KC) compose(out);
  return out;
}

// ---- grapheme clusters

struct Cluster {
  GraphemeBreak last = GraphemeBreak::Other;
  bool odd_regional = false;              // an odd number of regional indicators ends here
  bool emoji = false;                     // a pictograph and Extend* end here
  bool emoji_joined = false;              // the same and a joiner
  bool conjunct = false, linked = false;  // consonant [Extend Linker]*, with a linker
};

bool breaks_hangul(GraphemeBreak a, GraphemeBreak b) {
  using B = GraphemeBreak;
  if (a == B::L) return !(b == B::L || b == B::V || b == B::LV || b == B::LVT);
  if (a == B::LV || a == B::V) return !(b == B::V || b == B::T);
  return !((a == B::LVT || a == B::T) && b == B::T);
}

/// Rules GB3 to GB999 of Annex 29.
bool breaks(const Cluster& before, const CharacterRecord& next) {
  using B = GraphemeBreak;
  const B a = before.last, b = static_cast<B>(next.grapheme_break);
  const auto is_control = [](B x) { return x == B::Control || x == B::CR || x == B::LF; };
  if (a == B::CR && b == B::LF) return false;
  if (is_control(a) || is_control(b)) return true;
  if (b == B::Extend || b == B::ZWJ || b == B::SpacingMark || a == B::Prepend) return false;
  if (before.linked && (next.flags & 8) != 0) return false;
  if (before.emoji_joined && next.is_pictographic()) return false;
  if (before.odd_regional && b == B::RegionalIndicator) return false;
  return breaks_hangul(a, b);
}

void extend(Cluster& cluster, const CharacterRecord& next, bool begins) {
  const auto b = static_cast<GraphemeBreak>(next.grapheme_break);
  const bool extends = b == GraphemeBreak::Extend || b == GraphemeBreak::ZWJ;
  if (begins) cluster = {};
  cluster.odd_regional = b == GraphemeBreak::RegionalIndicator && !cluster.odd_regional;
  cluster.emoji_joined = cluster.emoji && b == GraphemeBreak::ZWJ;
  cluster.emoji = next.is_pictographic() || (cluster.emoji && b == GraphemeBreak::Extend);
  const bool consonant = (next.flags & 8) != 0, linker = (next.flags & 4) != 0;
  cluster.linked = cluster.conjunct && (linker || (cluster.linked && extends));
  cluster.conjunct = consonant || (cluster.conjunct && (linker || extends));
  cluster.last = b;
}

}  // namespace

const CharacterRecord& character(char32_t c) {
  static const Pages pages;
  if (c > kLastCodePoint) return kRecords[0];
  return kRecords[pages.records_[pages.first_[c / kPage] * kPage + c % kPage]];
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || is_in(c, kSeparators);
}

bool is_word(char32_t c) {
  const CharacterRecord& r = character(c);
  return r.is_alphabetic() || r.in(kMarks | of(Category::Nd) | of(Category::Pc)) || c == 0x200c ||
         c == 0x200d;
}

void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {  // SpecialCasing.txt's only one that is not about context
    out += "i\xcc\x87";
  } else {
    append_utf8(out, mapped(kLower, c));
  }
}

char32_t folded(char32_t c) { return mapped(kFolded, c); }

std::string normalized(std::string_view text, NormalForm form) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    // What is inert is copied up to the last one, which a mark may follow.
    size_t next = at, last = at, inert = at;
    while (next < text.size()) {
      last = next;
      if (!is_inert(next_code_point(text, next), form)) break;
      inert = next;
    }
    if (inert == text.size()) return out.append(text.substr(at));
    size_t from = last;
    if (from > at) from = code_point_before(text, from);
    out.append(text.substr(at, from - at));
    // To the next that is inert, which may be what comes after only with its own marks.
    size_t end = next;
    for (size_t peek = end; peek < text.size(); end = peek)
      if (is_inert(next_code_point(text, peek), form)) break;
    for (const char32_t c : normal_form(text.substr(from, end - from), form)) append_utf8(out, c);
    at = end;
  }
  return out;
}

void for_each_grapheme(std::string_view text, FunctionRef<void(std::string_view)> cluster) {
  Cluster state;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const CharacterRecord& next = character(next_code_point(text, at));
    const bool begins = here > begin && breaks(state, next);
    if (begins) {
      cluster(text.substr(begin, here - begin));
      begin = here;
    }
    extend(state, next, begins);
  }
  if (begin < text.size()) cluster(text.substr(begin));
}

CodeRanges ranges_where(FunctionRef<bool(const CharacterRecord&)> has) {
  CodeRanges out;
  for (size_t i = 0; i < std::size(kRuns); ++i) {
    if (!has(kRecords[kRuns[i] & 1023])) continue;
    const char32_t first = kRuns[i] >> 10;
    const char32_t last = i + 1 < std::size(kRuns) ? (kRuns[i + 1] >> 10) - 1 : kLastCodePoint;
    if (!out.empty() && out.back().second + 1 == first)
      out.back().second = last;
    else
      out.emplace_back(first, last);
  }
  return out;
}

CodeRanges ranges_of_script(std::string_view name) {
  CodeRanges out;
  for (size_t i = 0; i < std::size(kScriptRuns); ++i) {
    if (kScriptNames[kScriptRuns[i] & 255] != name) continue;
    const bool last = i + 1 == std::size(kScriptRuns);
    out.emplace_back(kScriptRuns[i] >> 8, last ? kLastCodePoint : (kScriptRuns[i + 1] >> 8) - 1);
  }
  return out;
}

}  // namespace weft::text
