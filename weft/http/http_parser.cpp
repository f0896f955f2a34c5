// The only file that includes Beast, and of it no more than its parser. One of Beast's assertions
// is about what a client sends (of the last chunk's line, read again, it wants five bytes; without
// content before it there may be three), and input is refused, not asserted about.
#define BOOST_DISABLE_ASSERTS
#include "weft/http/http_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include "weft/base/format.h"

namespace weft::http {

namespace {

namespace beast = boost::beast::http;
using Failure = boost::beast::error_code;

std::string text(boost::beast::string_view view) { return {view.data(), view.size()}; }

struct Refused {
  int status;
  std::string problem;
};

Refused refused(const Failure& failure, const HttpLimits& limits) {
  if (failure == beast::error::header_limit)
    return {431, strformat("the request's fields take more than {} bytes", limits.head_bytes)};
  if (failure == beast::error::body_limit)
    return {413, strformat("the request's body takes more than {} bytes", limits.body_bytes)};
  if (failure == beast::error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are spoken"};
  return {400, strformat("no HTTP/1.1 request: {}", failure.message())};
}

}  // namespace

struct HttpParser::State final : beast::basic_parser<true> {
  explicit State(const HttpLimits& limits_of_all) : limits(limits_of_all) {
    header_limit(static_cast<uint32_t>(limits.head_bytes));
    body_limit(limits.body_bytes);
    eager(true);
  }

  void refuse(int status, std::string problem, Failure& failure) {
    refusal = {status, std::move(problem)};
    failure = beast::error::bad_value;
  }

  void on_request_impl(beast::verb, boost::beast::string_view method,
                       boost::beast::string_view target, int version, Failure& failure) override {
    request.method = text(method);
    request.target = text(target);
    request.chunks = version >= 11;
    if (version != 10 && version != 11) failure = beast::error::bad_version;
  }

  void on_field_impl(beast::field name, boost::beast::string_view spelled,
                     boost::beast::string_view value, Failure& failure) override {
    if (head) return;  // trailers, which may be left out (RFC 9110, 6.5.1)
    if (value.find('\0') != value.npos) return refuse(400, "a field with a NUL", failure);
    if (name == beast::field::transfer_encoding &&
        (!request.chunks || !equal_ignoring_case(text(value), "chunked")))
      return refuse(501, "the only transfer encoding is chunked, in HTTP/1.1", failure);
    if (name == beast::field::content_length && request.count("Content-Length") != 0)
      return refuse(400, "two fields Content-Length", failure);
    request.fields.emplace_back(text(spelled), text(value));
  }

  /// "http://HOST/PATH", of clients that take the server for a proxy: what it says of the host goes
  /// before the field (RFC 9112, 3.2.2).
  void split_target() {
    constexpr std::string_view kScheme = "http://";
    const std::string_view given = request.target;
    if (!equal_ignoring_case(given.substr(0, kScheme.size()), kScheme)) return;
    const size_t begin = kScheme.size(),
                 end = std::min(given.find_first_of("/?", begin), given.size());
    const std::string host(given.substr(begin, end - begin));
    const std::string path(given.substr(end));
    const size_t named = request.count("Host");
    if (host.empty() || named > 1 || (named == 0 && request.chunks)) return;
    std::erase_if(request.fields,
                  [](const auto& f) { return equal_ignoring_case(f.first, "Host"); });
    request.fields.emplace_back("Host", host);
    request.target = path.starts_with('/') ? path : "/" + path;
  }

  void on_header_impl(Failure& failure) override {
    head = true;
    split_target();
    request.keep_alive = keep_alive();
    const std::string_view expected = request.field("Expect");
    wants_continue = request.chunks && equal_ignoring_case(expected, "100-continue");
    if (!expected.empty() && !wants_continue)
      refuse(400, strformat("cannot do what is expected: {}", expected), failure);
  }

  void on_body_init_impl(const boost::optional<uint64_t>&, Failure&) override {}

  size_t add(boost::beast::string_view bytes, Failure& failure) {
    // Lengths of chunks are checked before they are read; this is what they sum to.
    if (request.body.size() + bytes.size() > limits.body_bytes) {
      failure = beast::error::body_limit;
      return 0;
    }
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  size_t on_body_impl(boost::beast::string_view bytes, Failure& failure) override {
    return add(bytes, failure);
  }
  size_t on_chunk_body_impl(uint64_t, boost::beast::string_view bytes, Failure& failure) override {
    return add(bytes, failure);
  }
  void on_chunk_header_impl(uint64_t, boost::beast::string_view, Failure&) override {}
  void on_response_impl(int, boost::beast::string_view, int, Failure&) override {}
  void on_finish_impl(Failure&) override {}

  const HttpLimits limits;
  HttpRequest request;
  Refused refusal{0, ""};
  bool head = false, begun = false, wants_continue = false, skipped_line = false;
  size_t raw = 0;
};

HttpParser::HttpParser(const HttpLimits& limits) : state_(std::make_unique<State>(limits)) {}
HttpParser::~HttpParser() = default;
HttpParser::HttpParser(HttpParser&&) noexcept = default;
HttpParser& HttpParser::operator=(HttpParser&&) noexcept = default;

size_t HttpParser::feed(std::string_view bytes) {
  State& s = *state_;
  if (bytes.empty() || done() || failed() != 0) return 0;
  // Some send an empty line behind a body, which belongs to no request (RFC 9112, 2.2).
  if (!s.begun && !s.skipped_line && bytes[0] == '\r') {
    if (bytes.size() == 1) return 0;
    s.skipped_line = bytes[1] == '\n';
    if (s.skipped_line) return 2 + feed(bytes.substr(2));
  }
  s.begun = true;
  Failure failure;
  size_t used = 0;
  // A call may stop after the head although there is more.
  while (!failure && !s.is_done() && used < bytes.size()) {
    const size_t more =
        s.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), failure);
    used += more;
    if (more == 0) break;
  }
  s.raw += used;
  const bool wants_more = failure == beast::error::need_more;
  if (failure && !wants_more && s.refusal.status == 0) s.refusal = refused(failure, s.limits);
  // Chunks of a byte each, or a chunk's line without an end.
  const size_t most = s.limits.head_bytes + 8 * s.limits.body_bytes;
  if (failed() == 0 && (s.raw > most || bytes.size() - used > 2 * s.limits.head_bytes) && !done())
    s.refusal = {413, "the request's chunks take more bytes than they have content"};
  return used;
}

bool HttpParser::started() const { return state_->begun; }
bool HttpParser::head_done() const { return state_->head; }
bool HttpParser::done() const { return state_->is_done() && failed() == 0; }
bool HttpParser::expects_continue() const { return state_->wants_continue; }
int HttpParser::failed() const { return state_->refusal.status; }
const std::string& HttpParser::problem() const { return state_->refusal.problem; }
size_t HttpParser::body_size() const { return state_->request.body.size(); }
HttpRequest HttpParser::take() { return std::move(state_->request); }

}  // namespace weft::http
