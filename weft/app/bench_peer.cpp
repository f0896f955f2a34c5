#include "weft/app/bench_peer.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/base/json_writer.h"

namespace weft {
namespace {

const char* text_of(BenchOperand::Fill fill) {
  switch (fill) {
    case BenchOperand::Fill::Normal: return "normal";
    case BenchOperand::Fill::Positive: return "positive";
    case BenchOperand::Fill::Below: return "below";
    case BenchOperand::Fill::Definite: return "definite";
  }
  return "";
}

// A process that is stopped notices no closed socket: PR_SET_PDEATHSIG (prctl(2)), SIGKILL.
constexpr const char* kEndWithParent = "import ctypes; ctypes.CDLL(None).prctl(1, 9)\n";

struct Library {
  const char* name;
  std::string BenchCase::* code;
};
constexpr Library kRows[] = {
    {"torch", &BenchCase::torch},   {"torch.cuda", &BenchCase::torch},
    {"onednn", &BenchCase::onednn}, {"openblas", &BenchCase::numpy},
    {"numpy", &BenchCase::numpy},   {"ort", &BenchCase::onnx},
    {"llama.cpp", nullptr},
};

const Library* library_named(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &Library::name);
  return row == std::end(kRows) ? nullptr : row;
}

/// OpenBLAS is what NumPy does products with, and nothing else.
bool is_left_out(std::string_view library, const BenchCase& which) {
  return library == "openblas" && which.group != "products" && which.group != "constant weights";
}

std::string request_for(const std::string& code, const BenchOperands& operands) {
  JsonWriter json;
  json.begin_object().field("code", code).key("operands").begin_array();
  for (const BenchOperand& o : operands) {
    json.begin_array().begin_array();
    for (const int64_t dim : o.dims) json.value(dim);
    json.end_array().value(name(o.dtype)).value(text_of(o.fill)).value(o.below).end_array();
  }
  return json.end_array().end_object().take();
}

}  // namespace

BenchPeer::BenchPeer(std::string library, const std::string& python, int threads)
    : library_(std::move(library)) {
  if (!library_named(library_))
    fail("bench", "there is no peer \"{}\" to compare with; there are {}", library_, kLibraries);
  start(python, threads);
  const std::string said = read_line();
  if (!said.starts_with("yes "))
    fail("bench", "{} has no {} ({}); install it there, or name another Python by --python", python,
         library_, said.empty() ? "it ended" : said.substr(3));
  version_ = said.substr(4);
}

BenchPeer::~BenchPeer() {
  if (socket_ >= 0) ::close(socket_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);  // it may be in the middle of something
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

void BenchPeer::start(const std::string& python, int threads) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail_errno("bench", "cannot make a pair of sockets", errno);
  socket_ = ends[0];
  const std::string program =
      std::string(kEndWithParent) + (library_ == "llama.cpp" ? kLlamaProgram : kPeerProgram);
  std::vector<std::string> words = {python, "-c", program, library_, strformat("{}", threads)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 0);  // both ways
  ::posix_spawn_file_actions_adddup2(&actions, 2, 1);        // what libraries print is no answer
  const int status =
      ::posix_spawnp(&pid_, python.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (status == 0) return;
  pid_ = -1;
  fail("bench", "cannot run \"{}\": {}; name another Python by --python", python,
       std::strerror(status));
}

std::string BenchPeer::read_line() {
  for (size_t end; (end = unread_.find('\n')) == std::string::npos;) {
    char bytes[512];
    const ssize_t n = ::recv(socket_, bytes, sizeof(bytes), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return "";
    unread_.append(bytes, static_cast<size_t>(n));
  }
  const size_t end = unread_.find('\n');
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::string BenchPeer::ask(const std::string& request) {
  ::kill(pid_, SIGCONT);
  const std::string line = request + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  std::string said = read_line();
  if (said.empty()) fail("bench", "the process of {} ended in the middle of a case", library_);
  ::kill(pid_, SIGSTOP);  // its workers poll for work, ONNX Runtime's for longer than any pause
  return said;
}

bool BenchPeer::has(const BenchCase& which) const {
  const auto code = library_named(library_)->code;
  return code != nullptr && !(which.*code).empty() && !is_left_out(library_, which);
}

bool BenchPeer::prepare(const BenchCase& which, int64_t size) {
  why_ = "has no such function";
  if (!has(which)) return false;
  const std::string& code = which.*library_named(library_)->code;
  const std::string said = ask(request_for(code, which.operands(size)));
  if (said == "yes") return true;
  why_ = said.substr(std::min<size_t>(3, said.size()));
  return false;
}

BenchPeer::Loaded BenchPeer::prepare_model(
    const std::string& path, const std::map<std::string, std::vector<int64_t>>& shapes) {
  JsonWriter json;
  json.begin_object().field("model", path).key("shapes").begin_object();
  for (const auto& [name, shape] : shapes) {
    json.key(name).begin_array();
    for (const int64_t size : shape) json.value(size);
    json.end_array();
  }
  const std::string said = ask(json.end_object().end_object().take());
  Loaded loaded;
  if (std::sscanf(said.c_str(), "yes %lf %lf", &loaded.load, &loaded.first) == 2) return loaded;
  fail("bench", "{} cannot run {}: {}", library_, path, said);
}

BenchPeer::Loaded BenchPeer::prepare_language_model(const std::string& path, int64_t context,
                                                    int64_t slots) {
  JsonWriter json;
  json.begin_object().field("model", path).field("context", context).field("slots", slots);
  const std::string said = ask(json.end_object().take());
  Loaded loaded;
  if (std::sscanf(said.c_str(), "yes %lf %lf", &loaded.load, &loaded.first) == 2) return loaded;
  fail("bench", "{} cannot run {}: {}", library_, path, said);
}

BenchPeer::Steps BenchPeer::language_steps(int64_t prompt, int64_t slots, int64_t tokens) {
  const std::string said = ask(strformat("{{\"measure\": [{}, {}, {}]}}", prompt, slots, tokens));
  Steps steps;
  if (std::sscanf(said.c_str(), "yes %lf %lf", &steps.first, &steps.later) == 2) return steps;
  fail("bench", "{} failed at {} tokens of {} texts: {}", library_, tokens, slots, said);
}

double BenchPeer::seconds(int64_t runs) {
  const std::string said = ask(strformat("{{\"runs\": {}}}", runs));
  double value = 0;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), value);
  if (error != std::errc())
    fail("bench", "{} failed in a case that it could do before: {}", library_, said);
  return value;
}

}  // namespace weft
