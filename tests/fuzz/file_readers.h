// Every reader of untrusted bytes as one row: name, and a call that returns or throws Error.
#pragma once

#include <cstddef>
#include <span>

#include "tests/fuzz/checksums.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/sanitizers.h"
#include "weft/http/http_parser.h"
#include "weft/io/bmp.h"
#include "weft/io/cifar.h"
#include "weft/io/csv.h"
#include "weft/io/gguf.h"
#include "weft/io/gzip.h"
#include "weft/io/idx.h"
#include "weft/io/jpeg.h"
#include "weft/io/jpeg2000.h"
#include "weft/io/json_tree.h"
#include "weft/io/npy.h"
#include "weft/io/pickle.h"
#include "weft/io/pictures.h"
#include "weft/io/png.h"
#include "weft/io/pnm.h"
#include "weft/io/pt.h"
#include "weft/io/safetensors.h"
#include "weft/io/tar.h"
#include "weft/io/tiff.h"
#include "weft/io/webp.h"
#include "weft/io/zip.h"
#include "weft/io/zstd.h"
#include "weft/llm/grammar.h"
#include "weft/llm/lora.h"
#include "weft/llm/network.h"
#include "weft/onnx/model.h"
#include "weft/onnx/regex.h"
#include "weft/run/repro_file.h"
#include "weft/schedule/schedule_file.h"
#include "weft/serve/answer_parts.h"
#include "weft/serve/chat_prompt.h"
#include "weft/serve/refusal.h"
#include "weft/text/gguf_tokenizer.h"
#include "weft/text/regex.h"
#include "weft/text/template.h"
#include "weft/text/tokenizer.h"
#include "weft/viz/session_data.h"
#include "weft/viz/views.h"

#ifdef WEFT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace weft {

struct FileReader {
  const char* name;
  uint64_t (*read)(std::span<const std::byte>);
  bool (*is_here)() = nullptr;  // whether the library it needs is; null: it needs none
  void (*mend)(std::span<std::byte>) = nullptr;  // checksums.h: else few mutations come past them
};

inline std::string_view text_of(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

/// Looks at every byte that a result claims to have, so that a sanitizer sees a bad extent: at its
/// shadow, where it has one, which is 8 times less.
inline uint64_t touch(std::span<const std::byte> bytes, uint64_t seed) {
#ifdef WEFT_ADDRESS_SANITIZER
  const void* bad = __asan_region_is_poisoned(const_cast<std::byte*>(bytes.data()), bytes.size());
  return hash_combine(seed, bad ? static_cast<uint64_t>(*static_cast<const std::byte*>(bad)) : 0);
#else
  return hash_bytes(bytes.data(), bytes.size(), seed);
#endif
}

inline uint64_t touch(const HostArray& array) { return touch(array.bytes, array.shape.size()); }

inline uint64_t touch(const std::vector<NamedArray>& arrays) {
  uint64_t hash = 0;
  for (const NamedArray& named : arrays)
    hash = hash_combine(hash, touch(named.array)) + hash_text(named.name);
  return hash;
}

/// How many pieces a chat's prompt has, in ChatML and for a tokenizer of one special token.
inline uint64_t chat_prompt(const serve::CompletionRequest& request) {
  static const auto tokenizer = text::Tokenizer::from_json(R"({"model": {"type": "WordLevel",
    "vocab": {"u": 0}, "unk_token": "u"}, "added_tokens": [{"id": 1, "content": "<|im_end|>",
    "special": true}]})");
  static const text::ChatTemplate form(tokenizer);
  return serve::prompt_pieces(request, form, tokenizer).size();
}

/// A body of a request to the server; a Refusal is an Error here.
inline uint64_t read_body(std::span<const std::byte> data,
                          serve::CompletionRequest (*parse)(std::string_view,
                                                            const serve::ServeLimits&)) {
  try {
    const std::string_view body = text_of(data);
    const serve::CompletionRequest request = parse(body, {});
    const auto names = std::vector<std::string>(request.tools.size(), "f");
    uint64_t hash = request.messages.size() + request.prompts.size();
    if (request.chat()) hash += chat_prompt(request);
    serve::AnswerParts parts(names);
    return hash + parts.feed(body).size() + parts.finish().size();
  } catch (const serve::Refusal& refusal) {
    fail("serve.request", "{}", refusal.message);
  }
}

inline uint64_t touch(const text::Tokenizer& t) {
  uint64_t hash = t.vocab_size();
  for (const text::TokenId id : t.encode("A b\xc3\xa9 \xf0\x9f\x91\x8d[MASK]  12'll <s>\xff"))
    hash = hash_combine(hash, static_cast<uint64_t>(id));
  return hash + t.decode(std::vector<text::TokenId>{0, 1, 2, 3, 4, 99}).size();
}

inline uint64_t touch(const JsonTree::Value& value) {
  uint64_t hash = value.is_text() ? hash_text(value.text()) : 1;
  if (value.is_array() || value.is_object())
    for (const JsonTree::Value member : value) hash = hash_combine(hash, touch(member));
  if (value.is_object())
    for (const JsonTree::Value member : value) hash = hash_combine(hash, hash_text(member.key()));
  return hash;
}

/// And what may come next, for some tokens of an answer.
inline uint64_t touch(const llm::Grammar& grammar) {
  static const auto vocabulary = [] {
    std::vector<std::string> pieces = {"", "true", "\":"};
    for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    return std::make_shared<const llm::GrammarVocabulary>(pieces, std::vector<text::TokenId>{0});
  }();
  llm::GrammarMatcher matcher(std::make_shared<const llm::Grammar>(grammar), vocabulary);
  uint64_t hash = 0;
  for (int step = 0; step < 20 && !matcher.finished(); ++step) {
    const std::span<const uint64_t> allowed = matcher.allowed();
    text::TokenId id = 1;
    while (static_cast<size_t>(id) < vocabulary->size() && (allowed[id / 64] >> id % 64 & 1) == 0)
      ++id;
    if (static_cast<size_t>(id) == vocabulary->size()) break;
    matcher.accept(id);
    hash = hash_combine(hash, static_cast<uint64_t>(id));
  }
  return hash;
}

/// The tables of its positions, too.
inline uint64_t touch(const llm::Config& config) {
  const llm::RopeTable table = llm::rope_table(config.rope, 64);
  const uint64_t sizes =
      hash_combine(static_cast<uint64_t>(config.layers), hash_text(config.family));
  return table.cosine.defined() ? hash_combine(sizes, table.cosine.to_vector<float>().size())
                                : sizes;
}

/// What views say of a recording; an Error of one does not keep the others from being asked.
inline uint64_t ask_all(const viz::Session& session) {
  uint64_t hash = 0;
  const auto ask = [&](const char* view, const viz::Parameters& parameters = {}) {
    try {
      hash = hash_combine(hash, hash_text(viz::view_json(session, view, parameters)));
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Internal) throw;
    }
  };
  for (const char* view : {"session", "realizations", "timeline", "kernels", "lines"}) ask(view);
  ask("memory", {{"realization", "0"}});
  ask("graph", {{"realization", "0"}});
  ask("kernel", {{"kernel", "0"}});
  ask("code", {{"kernel", "0"}});
  ask("graph", {{"kernel", "0"}});
  for (const char* pass : {"0", "9", "30"}) {
    ask("pass", {{"pass", pass}});
    ask("firings", {{"pass", pass}});
  }
  ask("graph", {{"pass", "9"}, {"side", "both"}});
  return hash;
}

/// A small file that may unpack to much would only show that memory is slow.
inline constexpr UnpackLimits kFuzzLimits{uint64_t{1} << 20, 1000};

inline constexpr FileReader kFileReaders[] = {
    {"regex",
     [](std::span<const std::byte> data) {
       uint64_t hash = 0;
       text::Regex(text_of(data))
           .for_each_match("ab_9.c d'll \xc3\xa9\n",
                           [&](size_t begin, size_t end) { hash += begin * 31 + end; });
       return hash;
     }},
    {"recording",
     [](std::span<const std::byte> data) {
       const auto session = viz::Session::read(data, "fuzz");
       const uint64_t hash = ask_all(*session);
       if (!session->data().missing.empty()) fail("viz.damaged", "parts of it are left out");
       return hash;
     },
     nullptr, mend_recording},
    {"safetensors",
     [](std::span<const std::byte> data) { return touch(parse_safetensors(data, "fuzz").arrays); }},
    {"idx", [](std::span<const std::byte> data) { return touch(parse_idx(data, "fuzz")); }},
    {"cifar",
     [](std::span<const std::byte> data) {
       return touch(parse_cifar(data, Cifar::Hundred, "fuzz").images);
     }},
    {"csv",
     [](std::span<const std::byte> data) {
       return touch(parse_csv(text_of(data), "fuzz").matrix());
     }},
    {"png", [](std::span<const std::byte> data) { return touch(parse_png(data, "fuzz")); }, nullptr,
     mend_png},
    {"bmp", [](std::span<const std::byte> data) { return touch(parse_bmp(data, "fuzz")); }},
    {"pnm", [](std::span<const std::byte> data) { return touch(parse_pnm(data, "fuzz")); }},
    {"webp",
     [](std::span<const std::byte> data) { return touch(parse_webp(data, "fuzz", kFuzzLimits)); },
     has_webp_library},
    {"tiff",
     [](std::span<const std::byte> data) { return touch(parse_tiff(data, "fuzz", kFuzzLimits)); },
     has_tiff_library},
    {"jpeg2000",
     [](std::span<const std::byte> data) {
       return touch(parse_jpeg2000(data, "fuzz", kFuzzLimits));
     },
     has_jpeg2000_library},
    {"jpeg",
     [](std::span<const std::byte> data) {
       // Grey, resized: what a set of pictures does.
       return touch(resized(with_channels(parse_jpeg(data, "fuzz"), Channels::Grey), 3, 5));
     },
     has_jpeg_library},
    {"gbnf",
     [](std::span<const std::byte> data) { return touch(llm::Grammar::from_gbnf(text_of(data))); }},
    {"gguf",
     [](std::span<const std::byte> data) {
       const GgufContent content = parse_gguf(data, "fuzz");
       uint64_t hash = content.alignment;
       for (const auto& [key, value] : content.metadata)
         hash = hash_combine(hash, hash_text(key)) + hash_text(value.shown());
       for (const GgufTensor& t : content.tensors)
         hash = hash_combine(hash, touch(t.bytes, t.shape.size()));
       if (content.alignment > 4096) return hash;  // padding of megabytes
       return hash_combine(hash, gguf_bytes(content).size());
     }},
    {"gguf_tokenizer",
     [](std::span<const std::byte> data) {
       const GgufContent content = parse_gguf(data, "fuzz");
       const uint64_t read = touch(text::Tokenizer::from_gguf(content, "fuzz"));
       return hash_combine(read, text::tokenizer_files(content, "fuzz").tokenizer.size());
     }},
    {"gzip",
     [](std::span<const std::byte> data) {
       return uint64_t{gunzip_members(data, kFuzzLimits.most_bytes, "fuzz").size()};
     }},
    {"json",
     [](std::span<const std::byte> data) { return touch(JsonTree(text_of(data), "fuzz").root()); }},
    {"json_schema",
     [](std::span<const std::byte> data) {
       return touch(llm::Grammar::from_json_schema(text_of(data)));
     }},
    {"llm_config",
     [](std::span<const std::byte> data) {
       const std::string_view json(reinterpret_cast<const char*>(data.data()), data.size());
       return touch(llm::read_config(json, "fuzz"));
     }},
    {"llm_gguf",
     [](std::span<const std::byte> data) {
       const auto kept = std::make_shared<std::vector<std::byte>>(data.begin(), data.end());
       const GgufModel model = gguf_model(parse_gguf(*kept, "fuzz", kept));
       const llm::Network network(llm::read_config(model.content), llm::Weights(model), 64);
       return touch(network.config());
     }},
    {"llm_lora",
     [](std::span<const std::byte> data) {
       const auto kept = std::make_shared<std::vector<std::byte>>(data.begin(), data.end());
       llm::Config config;
       config.family = "llama";
       config.heads = config.kv_heads = 2;
       const GgufModel file = gguf_model(parse_gguf(*kept, "fuzz", kept));
       uint64_t hash = 0;
       for (const auto& [name, part] : llm::gguf_lora(file, config).parts)
         hash = hash_combine(hash, hash_text(name) + static_cast<uint64_t>(part.b.numel()));
       return hash;
     }},
    {"npy", [](std::span<const std::byte> data) { return touch(parse_npy(data, "fuzz")); }},
    {"onnx_regex",
     [](std::span<const std::byte> data) {
       return uint64_t{onnx::Regex(text_of(data)).matches("ab_9.c d@example.org")};
     }},
    {"onnx",
     [](std::span<const std::byte> data) {
       const onnx::Model model = onnx::parse_onnx(data, "fuzz");
       uint64_t hash = model.functions.size();
       for (const onnx::ConstantData& t : model.graph.initialisers)
         hash = hash_combine(hash, touch(t.array) + hash_text(t.name));
       for (const onnx::Node& node : model.graph.nodes) hash += hash_text(node.label());
       return hash;
     }},
    {"npz",
     [](std::span<const std::byte> data) {
       return touch(parse_npz(data, "fuzz", nullptr, kFuzzLimits));
     },
     nullptr, mend_zip},
    {"pickle",
     [](std::span<const std::byte> data) {
       const Pickle pickle = parse_pickle(data, "fuzz");
       uint64_t hash = pickle.bytes;
       for (const PickleNode& node : pickle.nodes) {
         hash = hash_combine(hash, hash_text(node.text));
         for (const uint32_t item : node.items)
           hash = hash_combine(hash, static_cast<uint64_t>(pickle[item].kind));
       }
       return hash;
     }},
    {"pt",
     [](std::span<const std::byte> data) {
       const PtContent content = parse_pt(data, "fuzz", nullptr, kFuzzLimits);
       uint64_t hash = touch(content.arrays);
       for (const auto& [node, array] : content.tensors) hash = hash_combine(hash, touch(array));
       return hash;
     },
     nullptr, mend_zip},
    {"schedule",
     [](std::span<const std::byte> data) {
       const std::optional<Schedule> read = read_schedule(text_of(data), {2, 2});
       if (!read) fail("graph_file", "no schedule");
       return hash_text(write_schedule(*read));
     }},
    {"repro",
     [](std::span<const std::byte> data) {
       return hash_text(print_repro(parse_repro(text_of(data), "fuzz")));
     }},
    {"serve_chat",
     [](std::span<const std::byte> data) { return read_body(data, serve::parse_chat_request); }},
    {"serve_http",
     [](std::span<const std::byte> data) {
       http::HttpParser parser({});
       std::string_view bytes = text_of(data);
       for (size_t used = 1; used != 0 && !parser.done(); bytes.remove_prefix(used))
         used = parser.feed(bytes);
       if (!parser.done()) fail("serve.http", "no request, or no end of one: {}", parser.problem());
       const http::HttpRequest request = parser.take();
       return hash_text(request.body) + request.fields.size();
     }},
    {"serve_text",
     [](std::span<const std::byte> data) { return read_body(data, serve::parse_text_request); }},
    {"tar",
     [](std::span<const std::byte> data) {
       return touch(untar(data, "fuzz", nullptr, kFuzzLimits));
     }},
    {"tokenizer",
     [](std::span<const std::byte> data) {
       return touch(text::Tokenizer::from_json(text_of(data), "fuzz"));
     }},
    {"template",
     [](std::span<const std::byte> data) {
       text::RenderOptions limits;
       limits.most_steps = 20000;
       limits.most_memory = limits.most_output = 1 << 20;
       return hash_text(
           text::JinjaTemplate(text_of(data), "fuzz")
               .render(
                   R"({"messages": [{"role": "user", "content": "Hi"}], "n": 7, "l": [3, 1], "t": true})",
                   limits));
     }},
    {"zip",
     [](std::span<const std::byte> data) {
       return touch(unzip(data, "fuzz", nullptr, kFuzzLimits));
     },
     nullptr, mend_zip},
    {"zstd",
     [](std::span<const std::byte> data) {
       return uint64_t{unzstd(data, uint64_t{1} << 16, "fuzz").size()};  // a MiB takes 2 ms
     },
     has_zstd_library},
};

}  // namespace weft
