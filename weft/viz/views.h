// Views: everything that can be seen of a session, one row each. The page's server and the terminal
// ask the same rows, so that neither shows what the other does not. docs/viz.md has their JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::viz {

class Session;

/// What a request says: names and values, as text. A getter fails with the code viz.parameter where
/// the text is not what it asks for.
class Parameters {
 public:
  Parameters() = default;
  Parameters(std::initializer_list<std::pair<std::string, std::string>> values) : values_(values) {}

  /// The last value of a name counts.
  void set(std::string_view name, std::string_view value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Empty where it is not given.
  std::string_view text(std::string_view name) const;
  /// A decimal integer of 0 to 2^63 - 1.
  int64_t number(std::string_view name, int64_t initial) const;
  /// The same for one that must be given, and lie below `end`: a position in a list of `what`s.
  size_t position(std::string_view name, size_t end, std::string_view what) const;
  std::span<const std::pair<std::string, std::string>> values() const { return values_; }

 private:
  const std::string* find(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> values_;
};

struct ViewParameter {
  const char* name;
  const char* doc;  ///< with what holds where it is not given
};

struct View {
  const char* name;
  std::span<const ViewParameter> parameters;
  const char* doc;
  /// JSON, one object. An Error with a code viz.* where the parameters ask for what is not there.
  std::string (*json)(const Session&, const Parameters&);
  /// For a terminal; null where the JSON is printed in lines.
  std::string (*text)(const Session&, const Parameters&, bool colour) = nullptr;
};

/// In the order in which they are listed.
std::span<const View> views();

/// An Error (viz.view) where there is none of that name.
const View& find_view(std::string_view name);

/// The JSON of a view; an Error (viz.parameter) where a parameter is none of its own, too.
std::string view_json(const Session& session, std::string_view name, const Parameters& parameters);
/// The same for people.
std::string view_text(const Session& session, std::string_view name, const Parameters& parameters,
                      bool colour);

}  // namespace weft::viz
