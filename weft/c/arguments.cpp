#include "weft/c/arguments.h"

#include <algorithm>
#include <charconv>

#include "weft/base/names.h"
#include "weft/c/boundary.h"

namespace weft::c {

// ---- tables

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \n\t";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// Parts between commas that are in no brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '}' || c == '>') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    const std::string_view part = trimmed(text.substr(begin, i - begin));
    if (!part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

std::optional<double> parse_number(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto over = parse_number(trimmed(text.substr(0, slash)));
    const auto under = parse_number(trimmed(text.substr(slash + 1)));
    if (!over || !under) return std::nullopt;
    return *over / *under;
  }
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return x;
}

void set_list(Constant& c, std::string_view inside) {
  bool whole = true;
  for (std::string_view part : parts_of(inside)) {
    const auto x = parse_number(part);
    WEFT_CHECK(x, "a default has \"{}\" in a list", part);
    whole &= part.find('.') == std::string_view::npos;
    c.floats.push_back(*x);
    c.ints.push_back(static_cast<int64_t>(*x));
  }
  c.value = whole ? weft_ints(c.ints.data(), c.ints.size())
                  : weft_floats(c.floats.data(), c.floats.size());
}

/// "[]", "{2, 2}", "-1", "1.0 / 6", "true", "none", "mean", "Reduction::Mean".
std::unique_ptr<Constant> parse_default(std::string_view text) {
  auto c = std::make_unique<Constant>();
  if (text.empty() || text == "none") return c;
  if (text == "true" || text == "false") {
    c->value = weft_bool(text == "true");
  } else if (text.front() == '[' || text.front() == '{') {
    set_list(*c, text.substr(1, text.size() - 2));
  } else if (const auto x = parse_number(text)) {
    const bool whole = text.find_first_of("./e") == std::string_view::npos;
    c->value = whole ? weft_int(static_cast<int64_t>(*x)) : weft_float(*x);
  } else if (text == "''") {
    c->value = weft_text(c->text.c_str());
  } else {
    c->text = text.substr(text.rfind(':') + 1);
    if (c->text.size() < text.size())  // an enumerator
      for (char& letter : c->text) letter = static_cast<char>(std::tolower(letter));
    c->value = weft_text(c->text.c_str());
  }
  return c;
}

}  // namespace

std::vector<Parameter> parse_parameters(std::string_view text,
                                        const std::vector<std::string_view>& types) {
  const std::vector<std::string_view> parts = parts_of(text);
  WEFT_CHECK(parts.size() == types.size(), "\"{}\" has {} parameters, the function {}", text,
             parts.size(), types.size());
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t equal = parts[i].find('=');
    const std::string_view declared = trimmed(parts[i].substr(0, equal));
    Parameter p;
    p.name = declared.substr(declared.find_last_of(" &") + 1);
    p.type = types[i];
    p.has_default = equal != std::string_view::npos;
    if (p.has_default) p.default_text = trimmed(parts[i].substr(equal + 1));
    p.initial = parse_default(p.default_text);
    if (!p.initial->text.empty()) p.default_text = p.initial->text;
    parameters.push_back(std::move(p));
  }
  return parameters;
}

// ---- one argument

namespace {

constexpr const char* kKindNames[] = {
    "none",     "a bool",  "an int",         "a float",          "a text",
    "a tensor", "a dtype", "a list of ints", "a list of floats", "a list of tensors"};
constexpr uint64_t kMostInList = uint64_t{1} << 24;  // a count that was never set is refused

bool is_list(weft_kind kind) {
  return kind == WEFT_INTS || kind == WEFT_FLOATS || kind == WEFT_TENSORS;
}

DType dtype_of_number(int64_t id) {
  const auto d = id >= 0 && id < 256 ? dtype_from_id(static_cast<uint8_t>(id)) : std::nullopt;
  if (!d || !is_data(*d)) fail_type("dtype", "no dtype has the number {}", id);
  return *d;
}

}  // namespace

void Argument::refuse_kind() const {
  const Parameter& p = *parameter_;
  fail_type(strformat("{}.argument", function_), "{} takes {} {}: got {}", p.name,
            p.type.find('|') == std::string_view::npos ? "a value of type" : "one of", p.type,
            kKindNames[value_.kind]);
}

void Argument::give(const weft_value& value, std::shared_ptr<ContextObject>& owner) {
  const auto code = [&] { return strformat("{}.argument", function_); };
  if (given_) fail(code(), "{} is given twice", parameter_->name);
  if (value.kind > WEFT_TENSORS)
    fail_type(code(), "{} has a value of kind {}, which there is not", parameter_->name,
              value.kind);
  if (value.reserved != 0) refuse("value", "{} has reserved bits that are not 0", parameter_->name);
  if (value.kind == WEFT_NONE) return;
  given_ = true;
  value_ = value;
  if (is_list(value.kind) && value.count > kMostInList)
    fail(code(), "{} has a list of {} values", parameter_->name, value.count);
  const auto count = is_list(value.kind) ? static_cast<size_t>(value.count) : 1;
  if (is_list(value.kind) || value.kind == WEFT_TEXT)
    require_pointer(parameter_->name.c_str(), value.as.text, count);
  if (value.kind == WEFT_TENSOR) tensor_ = tensors_of(&value.as.tensor, 1, owner)[0];
  if (value.kind == WEFT_TENSORS) tensors_ = tensors_of(value.as.tensors, count, owner);
}

bool Argument::is_number() const {
  return value_.kind == WEFT_BOOLEAN || value_.kind == WEFT_INT || value_.kind == WEFT_FLOAT;
}

const Tensor& Argument::tensor() const {
  if (value_.kind != WEFT_TENSOR && !is_none()) refuse_kind();
  return tensor_;
}

const std::vector<Tensor>& Argument::tensors() const {
  const bool empty = is_list(value_.kind) && value_.count == 0;
  if (value_.kind != WEFT_TENSORS && !is_none() && !empty) refuse_kind();
  return tensors_;
}

bool Argument::boolean() const {
  if (value_.kind == WEFT_BOOLEAN) return value_.as.boolean;
  if (value_.kind != WEFT_INT || (value_.as.integer != 0 && value_.as.integer != 1)) refuse_kind();
  return value_.as.integer == 1;
}

int64_t Argument::integer() const {
  if (value_.kind != WEFT_INT) refuse_kind();
  return value_.as.integer;
}

double Argument::number() const {
  if (value_.kind == WEFT_INT) return static_cast<double>(value_.as.integer);
  if (value_.kind != WEFT_FLOAT) refuse_kind();
  return value_.as.number;
}

Scalar Argument::scalar() const {
  if (value_.kind == WEFT_BOOLEAN) return value_.as.boolean;
  if (value_.kind == WEFT_INT) return value_.as.integer;
  if (value_.kind != WEFT_FLOAT) refuse_kind();
  return value_.as.number;
}

DType Argument::dtype() const {
  if (value_.kind == WEFT_DTYPE) return dtype_of_number(value_.as.dtype);
  if (value_.kind == WEFT_INT) return dtype_of_number(value_.as.integer);
  if (value_.kind != WEFT_TEXT) refuse_kind();
  const auto d = dtype_from_name(value_.as.text);
  if (!d || !is_data(*d))
    fail_type(strformat("{}.argument", function_), "{}: no dtype is called \"{}\"",
              parameter_->name, value_.as.text);
  return *d;
}

std::string_view Argument::text() const {
  if (value_.kind != WEFT_TEXT) refuse_kind();
  return value_.as.text;
}

std::vector<int64_t> Argument::ints() const {
  if (value_.kind == WEFT_INT) return {value_.as.integer};
  if (is_none()) return {};
  if (value_.kind != WEFT_INTS) refuse_kind();
  return {value_.as.ints, value_.as.ints + value_.count};
}

std::vector<double> Argument::floats() const {
  if (value_.kind == WEFT_INTS) return {value_.as.ints, value_.as.ints + value_.count};
  if (value_.kind != WEFT_FLOATS) refuse_kind();
  return {value_.as.numbers, value_.as.numbers + value_.count};
}

size_t Argument::choice() const {
  const std::string_view given = text();
  size_t place = 0;
  for (size_t begin = 0; begin <= parameter_->type.size(); ++place) {
    const size_t bar = std::min(parameter_->type.find('|', begin), parameter_->type.size());
    if (parameter_->type.substr(begin, bar - begin) == given) return place;
    begin = bar + 1;
  }
  fail(strformat("{}.argument", function_), "{} is one of {}: got \"{}\"", parameter_->name,
       parameter_->type, given);
}

std::vector<DimPair> Taken<std::vector<DimPair>>::of(const Argument& a) {
  const std::vector<int64_t> flat = a.ints();
  if (flat.size() % 2 != 0)
    fail("pairs", "a list of {} numbers has no pair for every axis", flat.size());
  std::vector<DimPair> pairs;
  for (size_t i = 0; i < flat.size(); i += 2) pairs.emplace_back(flat[i], flat[i + 1]);
  return pairs;
}

// ---- a call's

namespace {

size_t place_of(const char* function, const std::string& signature,
                const std::vector<Parameter>& parameters, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Parameter& p : parameters) {
    if (p.name == name) return names.size();
    names.push_back(p.name);
  }
  fail(strformat("{}.argument", function), "no parameter is called \"{}\"{}: {}", name,
       did_you_mean(name, names), signature);
}

}  // namespace

std::vector<Argument> bind_arguments(const char* function, const std::string& signature,
                                     const std::vector<Parameter>& parameters,
                                     const weft_value* values, size_t count,
                                     std::shared_ptr<ContextObject>& owner) {
  const auto code = [&] { return strformat("{}.argument", function); };
  if (count > parameters.size())
    fail(code(), "{} values for {} parameters: {}", count, parameters.size(), signature);
  require_pointer("values", values, count);
  std::vector<Argument> bound;
  bound.reserve(parameters.size());
  for (const Parameter& p : parameters) bound.emplace_back(function, p);
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    const char* name = values[i].name;
    bound[name ? place_of(function, signature, parameters, name) : next++].give(values[i], owner);
  }
  for (size_t i = 0; i < bound.size(); ++i)
    if (!bound[i].given() && !parameters[i].has_default)
      fail(code(), "{} is missing: {}", parameters[i].name, signature);
  return bound;
}

}  // namespace weft::c
