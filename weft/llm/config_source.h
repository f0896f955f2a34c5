// ConfigSource: the keys of a model's description, from GGUF metadata or a config.json, and a list
// of what is wrong with them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/io/gguf.h"
#include "weft/io/json_tree.h"

namespace weft::llm {

/// What one thing is called: in GGUF files behind the architecture and a point, in config.json by
/// alternatives "a|b", each a path "outer.inner". Empty: that kind of file does not say it.
struct Key {
  std::string_view gguf, json;
};

class ConfigSource {
 public:
  virtual ~ConfigSource() = default;
  virtual bool is_gguf() const = 0;
  virtual std::string family() const = 0;       ///< as the file calls it
  virtual bool says(const Key& key) const = 0;  ///< the key is there, if with null
  /// Nothing where the key is missing or null. A value of another kind is a problem.
  virtual std::optional<double> number(const Key& key) = 0;
  virtual std::optional<bool> boolean(const Key& key) = 0;
  virtual std::optional<std::string> text(const Key& key) = 0;
  virtual std::vector<double> numbers(const Key& key) = 0;  ///< one number is a list, too
  virtual std::vector<std::string> texts(const Key& key) = 0;

  /// A whole number within bounds; what is not is a problem, and gives `otherwise`.
  int64_t integer(const Key& key, int64_t least, int64_t most, std::optional<int64_t> otherwise);
  /// A finite number that is at least `least`.
  double real(const Key& key, double least, double otherwise);
  /// Of a GGUF file: a small tensor's numbers; nothing where there is none.
  virtual std::vector<double> tensor(std::string_view name) = 0;

  void problem(std::string text);
  const std::vector<std::string>& problems() const { return problems_; }
  std::string shown(const Key& key) const;

 private:
  std::vector<std::string> problems_;
};

class GgufSource final : public ConfigSource {
 public:
  explicit GgufSource(const GgufContent& content);
  bool is_gguf() const override { return true; }
  std::string family() const override { return architecture_; }
  bool says(const Key& key) const override { return value(key) != nullptr; }
  std::optional<double> number(const Key& key) override;
  std::optional<bool> boolean(const Key& key) override;
  std::optional<std::string> text(const Key& key) override;
  std::vector<double> numbers(const Key& key) override;
  std::vector<std::string> texts(const Key& key) override;
  std::vector<double> tensor(std::string_view name) override;

 private:
  const GgufValue* value(const Key& key) const;
  const GgufContent& content_;
  std::string architecture_;
};

class JsonSource final : public ConfigSource {
 public:
  explicit JsonSource(const JsonTree& tree) : tree_(tree) {}
  bool is_gguf() const override { return false; }
  std::string family() const override;
  bool says(const Key& key) const override;
  std::optional<double> number(const Key& key) override;
  std::optional<bool> boolean(const Key& key) override;
  std::optional<std::string> text(const Key& key) override;
  std::vector<double> numbers(const Key& key) override;
  std::vector<std::string> texts(const Key& key) override;
  std::vector<double> tensor(std::string_view) override { return {}; }

 private:
  /// Of the first alternative that is there; null ones count only where `even_null`.
  std::optional<JsonTree::Value> value(const Key& key, bool even_null = false) const;
  const JsonTree& tree_;
};

}  // namespace weft::llm
