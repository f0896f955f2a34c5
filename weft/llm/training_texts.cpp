#include "weft/llm/training_texts.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <tuple>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/base/thread_pool.h"
#include "weft/base/utf8.h"
#include "weft/io/gzip.h"
#include "weft/io/host_array.h"
#include "weft/text/train_bpe.h"

namespace weft::llm {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndings[] = {".txt", ".md", ".rst", ".text"};
constexpr uint64_t kMostInflated = uint64_t{4} << 30;
constexpr size_t kFilesAtOnce = 64;  // are held in memory

bool is_text_name(std::string_view name) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  return std::ranges::any_of(kEndings, [&](std::string_view e) { return name.ends_with(e); });
}

void find_in(const std::string& folder, std::vector<TextFile>& found) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const fs::path& path = at->path();
    if (at->is_symlink() || !at->is_regular_file() || !is_text_name(path.filename().string()))
      continue;
    found.push_back({path.string(), path.lexically_relative(folder).string()});
  }
  if (error)
    fail_runtime("train.data", "cannot look through {}: {}", quoted_name(folder), error.message());
}

std::string content_of(const std::string& path) {
  std::error_code error;
  if (fs::file_size(path, error) == 0) return {};  // which cannot be mapped
  const MappedFile file(path);
  if (!is_gzip(file.bytes())) return std::string(file.text());
  const std::vector<std::byte> inflated = gunzip_members(file.bytes(), kMostInflated, path);
  return {reinterpret_cast<const char*>(inflated.data()), inflated.size()};
}

/// Why a file's content is no text; empty: it is.
std::string_view problem_of(std::string_view content) {
  if (content.empty()) return "is empty";
  if (content.find('\0') != std::string_view::npos) return "has bytes of 0, so it is no text";
  return is_utf8(content) ? "" : "is not UTF-8; convert it (iconv -t UTF-8)";
}

/// The tokens of some files, one list each; a list is empty where a file was left out.
std::vector<std::vector<text::TokenId>> encoded(std::span<const TextFile> files,
                                                const text::Tokenizer& tokenizer,
                                                std::optional<text::TokenId> end) {
  std::vector<std::vector<text::TokenId>> all(files.size());
  const text::EncodeOptions plain{.add_special_tokens = false, .parse_special = false};
  Context::current().thread_pool().parallel_for(
      static_cast<int64_t>(files.size()), [&](int64_t begin, int64_t stop, int) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(stop); ++i) {
          const std::optional<std::string> text = read_text(files[i]);
          if (!text) continue;
          all[i] = tokenizer.encode(*text, plain);
          if (end) all[i].push_back(*end);
        }
      });
  return all;
}

template <class T>
HostArray narrowed(std::span<const text::TokenId> ids, DType dtype) {
  std::vector<std::byte> bytes(ids.size() * sizeof(T));
  for (size_t i = 0; i < ids.size(); ++i) {
    const T id = static_cast<T>(ids[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &id, sizeof(T));
  }
  return HostArray::owned(dtype, {static_cast<int64_t>(ids.size())}, std::move(bytes));
}

HostArray token_array(std::span<const text::TokenId> ids, size_t vocabulary) {
  return vocabulary <= 65536 ? narrowed<uint16_t>(ids, DType::U16)
                             : narrowed<uint32_t>(ids, DType::U32);
}

constexpr const char* kPartNames[] = {"training", "validation"};

}  // namespace

std::vector<TextFile> find_texts(const std::vector<std::string>& paths) {
  std::vector<TextFile> found;
  for (const std::string& path : paths) {
    check_path(path);
    if (is_directory(path)) {
      find_in(path, found);
    } else if (file_exists(path)) {
      found.push_back({path, fs::path(path).filename().string(), true});
    } else {
      fail_runtime("train.data", "there is no file or folder {}", quoted_name(path));
    }
  }
  if (found.empty())
    fail_runtime("train.data", "there is no text in {}: files that end in {}, gzipped or not",
                 paths.empty() ? "nothing" : quoted_name(paths[0]), ".txt, .md, .rst or .text");
  std::ranges::sort(found, {}, [](const TextFile& f) {
    return std::tuple(hash_text(f.name), std::string_view(f.name), std::string_view(f.path));
  });
  return found;
}

std::optional<std::string> read_text(const TextFile& file) {
  std::string content = content_of(file.path);
  const std::string_view problem = problem_of(content);
  if (problem.empty()) return content;
  if (file.asked_for) fail_runtime("train.data", "{} {}", quoted_name(file.path), problem);
  return {};
}

std::string learn_tokenizer(std::span<const TextFile> files, size_t vocabulary,
                            FilesDone progress) {
  text::BpeTrainer trainer({.vocab_size = vocabulary, .special_tokens = {"<|endoftext|>"}});
  for (size_t i = 0; i < files.size(); ++i) {
    if (const auto text = read_text(files[i])) trainer.add(*text);
    progress(i + 1, files.size());
  }
  return trainer.train();
}

TokenCounts write_tokens(const std::string& path, std::span<const TextFile> files,
                         const text::Tokenizer& tokenizer, std::optional<text::TokenId> end,
                         double share, FilesDone progress) {
  TokenCounts counts;
  std::vector<text::TokenId> tokens;
  for (size_t at = 0; at < files.size(); at += kFilesAtOnce) {
    const size_t count = std::min(kFilesAtOnce, files.size() - at);
    for (const auto& ids : encoded(files.subspan(at, count), tokenizer, end)) {
      ++(ids.empty() ? counts.left_out : counts.files);
      tokens.insert(tokens.end(), ids.begin(), ids.end());
    }
    progress(at + count, files.size());
  }
  if (tokens.empty())
    fail_runtime("train.data", "none of {} files is a text in UTF-8", files.size());
  counts.validation = static_cast<int64_t>(share * static_cast<double>(tokens.size()));
  counts.training = static_cast<int64_t>(tokens.size()) - counts.validation;
  const auto all = std::span<const text::TokenId>(tokens);
  const auto cut = static_cast<size_t>(counts.training);
  const uint64_t fingerprint = hash_bytes(tokens.data(), all.size_bytes());
  save_safetensors(path,
                   {{kPartNames[0], token_array(all.first(cut), tokenizer.vocab_size())},
                    {kPartNames[1], token_array(all.subspan(cut), tokenizer.vocab_size())}},
                   {{"fingerprint", std::to_string(fingerprint)}});
  return counts;
}

TokenFile::TokenFile(const std::string& path, int64_t vocabulary)
    : path_(path), content_(read_safetensors(path)), vocabulary_(vocabulary) {
  for (const char* name : kPartNames) {
    const HostArray* array = content_.find(name);
    if (array == nullptr || array->shape.size() != 1 ||
        (array->dtype != DType::U16 && array->dtype != DType::U32))
      fail_runtime("train.data", "{}: its tokens '{}' are not there as a list of u16 or u32", path,
                   name);
  }
  const std::string& text = content_.metadata["fingerprint"];
  std::from_chars(text.data(), text.data() + text.size(), fingerprint_);
}

const HostArray& TokenFile::array(Part part) const {
  return *content_.find(kPartNames[static_cast<size_t>(part)]);
}

int64_t TokenFile::size(Part part) const { return array(part).numel(); }

void TokenFile::read(Part part, int64_t at, std::span<int32_t> out) const {
  const HostArray& from = array(part);
  WEFT_CHECK(at >= 0 && at + static_cast<int64_t>(out.size()) <= from.numel());
  const auto width = static_cast<size_t>(bits(from.dtype) / 8);
  const std::byte* bytes = from.bytes.data() + static_cast<size_t>(at) * width;
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t id = 0;  // little-endian, as the file is
    std::memcpy(&id, bytes + i * width, width);
    if (id >= static_cast<uint64_t>(vocabulary_))
      fail_runtime("train.data", "{}: token {} is none of the vocabulary's {}; make the file anew",
                   path_, id, vocabulary_);
    out[i] = static_cast<int32_t>(id);
  }
}

WindowOrder::WindowOrder(int64_t tokens, int64_t context, uint64_t seed)
    : windows_(tokens / context - 1), context_(context), seed_(seed) {
  if (windows_ < 1)
    fail_runtime("train.data",
                 "there are {} tokens for training, and two texts of the model's context are {}: "
                 "give more text, or a model with a shorter context",
                 tokens, 2 * context);
}

int64_t WindowOrder::start(int64_t sample) {
  const int64_t epoch = sample / windows_;
  if (epoch != epoch_) shuffle(epoch);
  const auto offset = static_cast<int64_t>(
      hash_combine(hash_combine(seed_, static_cast<uint64_t>(epoch)), ~uint64_t{0}) %
      static_cast<uint64_t>(context_));
  return offset + context_ * order_[static_cast<size_t>(sample % windows_)];
}

void WindowOrder::shuffle(int64_t epoch) {
  epoch_ = epoch;
  order_.resize(static_cast<size_t>(windows_));
  std::iota(order_.begin(), order_.end(), int64_t{0});
  const uint64_t seed = hash_combine(seed_, static_cast<uint64_t>(epoch));
  std::ranges::sort(order_, {}, [&](int64_t i) {
    return std::pair(hash_combine(seed, static_cast<uint64_t>(i)), i);
  });
}

}  // namespace weft::llm
