#include "weft/base/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

namespace weft {

namespace {

// Within a call from nobody's line: what it calls in turn is not the user's either.
constexpr CallSite kNobodys{nullptr, -1};

thread_local CallSite t_call_site;

// The path's last two parts: enough to find the line, the same in every checkout.
std::string_view short_path(std::string_view path) {
  size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return path;
  slash = path.rfind('/', slash - 1);
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// What make_unique, emplace_back and the like construct is called from a header of theirs:
// libstdc++ and libc++ both lie in ".../include/c++/".
bool is_in_standard_library(CallSite site) {
  return std::strstr(site.file, "/include/c++/") != nullptr;
}

constexpr ErrorCode kErrorCodes[] = {
#define X(code, explanation) {code, explanation},
#include "weft/base/errors.def"
#undef X
};

}  // namespace

CallSiteScope::CallSiteScope(CallSite site, Wins wins) noexcept
    : counts_(site && (wins == Wins::Always || (!t_call_site.file && t_call_site.line == 0))) {
  if (counts_) outer_ = std::exchange(t_call_site, is_in_standard_library(site) ? kNobodys : site);
}

CallSiteScope::~CallSiteScope() {
  if (counts_) t_call_site = outer_;
}

CallSite current_call_site() noexcept { return t_call_site ? t_call_site : CallSite{}; }

std::string short_text(CallSite site) {
  if (!site) return {};
  const std::string_view file = site.file;
  return strformat("{}:{}", file.substr(file.rfind('/') + 1), site.line);
}

Error::Error(ErrorKind kind, std::string_view code, std::string message, CallSite where)
    : kind_(kind), where_(where), code_(code), message_(std::move(message)) {
  append_format(text_, "[{}] {}", tag(), message_);
  if (where_) append_format(text_, " ({}:{})", short_path(where_.file), where_.line);
}

InternalError::InternalError(std::string_view code, std::string message)
    : Error(ErrorKind::Internal, code,
            std::move(message) + "; this is a bug in weft: WEFT_DEBUG=6 prints every step") {}

DeviceError::DeviceError(std::string_view call, int64_t status, std::string_view library,
                         std::string detail, int64_t command)
    : Error(ErrorKind::Device, "device",
            strformat("{} failed with status {} ({}): {}", call, status, library, detail)),
      call_(call),
      library_(library),
      detail_(std::move(detail)),
      status_(status),
      command_(command) {}

void DeviceError::rethrow_with(std::string_view more) const {
  throw DeviceError(call_, status_, library_, strformat("{}; {}", detail_, more), command_);
}

void vfail(ErrorKind kind, std::string_view code, fmt::string_view pattern, fmt::format_args args) {
  std::string message = fmt::vformat(pattern, args);
  if (kind == ErrorKind::Internal) throw InternalError(code, std::move(message));
  throw Error(kind, code, std::move(message));
}

void vfail_device(std::string_view call, int64_t status, std::string_view library,
                  fmt::string_view pattern, fmt::format_args args) {
  throw DeviceError(call, status, library, fmt::vformat(pattern, args));
}

void vfail_check(const char* condition, const char* file, int line, fmt::string_view pattern,
                 fmt::format_args args) {
  std::string message = strformat("{}:{}: `{}` does not hold", short_path(file), line, condition);
  if (pattern.size() != 0) message += ": " + fmt::vformat(pattern, args);
  throw InternalError("internal.check", std::move(message));
}

void fail_errno(std::string_view code, std::string_view doing, int error_number) {
  const char* name = strerrorname_np(error_number);
  std::string why =
      strformat("{}: {} ({})", doing, strerrordesc_np(error_number), name ? name : "");
  if (error_number == ENOSPC || error_number == EDQUOT) {
    why += "; free some space and try again, nothing that existed before was changed";
  }
  throw Error(error_number == ENOMEM ? ErrorKind::Memory : ErrorKind::Runtime, code,
              std::move(why));
}

std::span<const ErrorCode> error_codes() { return kErrorCodes; }

std::vector<std::string_view> codes_of(const ErrorCode& row) {
  constexpr std::string_view kBetween = ", ";
  std::vector<std::string_view> codes;
  std::string_view rest = row.codes;
  for (size_t end; (end = rest.find(kBetween)) != std::string_view::npos;) {
    codes.push_back(rest.substr(0, end));
    rest.remove_prefix(end + kBetween.size());
  }
  codes.push_back(rest);
  return codes;
}

const ErrorCode* find_error_code(std::string_view code) {
  for (const ErrorCode& row : kErrorCodes) {
    const std::vector<std::string_view> codes = codes_of(row);
    if (std::find(codes.begin(), codes.end(), code) != codes.end()) return &row;
  }
  const size_t dot = code.rfind('.');
  return dot == std::string_view::npos ? nullptr : find_error_code(code.substr(0, dot));
}

}  // namespace weft
