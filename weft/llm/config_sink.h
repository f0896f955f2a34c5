// ConfigSink: where a model's description is written to, under the keys that a ConfigSource reads.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/base/json_writer.h"
#include "weft/llm/config_source.h"
#include "weft/llm/config_write.h"

namespace weft::llm {

/// What a kind of file has no key for is left out. Keys have no alternatives here.
class ConfigSink {
 public:
  virtual ~ConfigSink() = default;
  virtual void integer(const Key& key, int64_t x) = 0;
  virtual void real(const Key& key, double x) = 0;
  virtual void boolean(const Key& key, bool x) = 0;
  virtual void text(const Key& key, const std::string& x) = 0;
  virtual void nothing(const Key& key) = 0;  ///< null, where a default would be something
  virtual void booleans(const Key& key, const std::vector<bool>& x) = 0;
  virtual void numbers(const Key& key, std::span<const double> x) = 0;
  virtual void texts(const Key& key, std::span<const std::string> x) = 0;
  /// A small tensor of f32, of GGUF files only.
  virtual void tensor(const std::string& name, const std::vector<float>& x) = 0;
};

class GgufSink final : public ConfigSink {
 public:
  explicit GgufSink(const std::string& architecture);
  void integer(const Key& key, int64_t x) override;
  void real(const Key& key, double x) override;
  void boolean(const Key& key, bool x) override;
  void text(const Key& key, const std::string& x) override;
  void nothing(const Key&) override {}
  void booleans(const Key& key, const std::vector<bool>& x) override;
  void numbers(const Key&, std::span<const double>) override {}
  void texts(const Key&, std::span<const std::string>) override {}
  void tensor(const std::string& name, const std::vector<float>& x) override;
  GgufDescription take() { return std::move(made_); }

 private:
  void put(const Key& key, GgufValue value);
  std::string architecture_;
  GgufDescription made_;
};

class JsonSink final : public ConfigSink {
 public:
  void integer(const Key& key, int64_t x) override;
  void real(const Key& key, double x) override;
  void boolean(const Key& key, bool x) override;
  void text(const Key& key, const std::string& x) override;
  void nothing(const Key& key) override;
  void booleans(const Key&, const std::vector<bool>&) override {}
  void numbers(const Key& key, std::span<const double> x) override;
  void texts(const Key& key, std::span<const std::string> x) override;
  void tensor(const std::string&, const std::vector<float>&) override {}
  void tokens(const Key& key, std::span<const int32_t> ids);  ///< one is no list, none is null
  std::string take() const;

 private:
  template <class T>
  void put(const Key& key, const T& x);
  template <class T>
  void put_all(const Key& key, std::span<const T> all);
  void put_json(const Key& key, std::string json);
  std::map<std::string, std::string> outer_;                         // values are JSON
  std::map<std::string, std::map<std::string, std::string>> inner_;  // of objects
};

}  // namespace weft::llm
