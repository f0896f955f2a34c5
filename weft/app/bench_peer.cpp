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

// One line asks (JSON), one line answers: "yes ...", "no ..." or a number of seconds.
constexpr const char* kDriver = R"python(
import json, os, sys, time
library, threads = sys.argv[1], sys.argv[2]
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = threads
# OpenBLAS's workers poll for 2^26 ticks after a call, 0.1 s; so they still do from run to run.
os.environ["OPENBLAS_THREAD_TIMEOUT"] = "22"
answers = os.fdopen(os.dup(0), "w")
def answer(text):
    print(" ".join(str(text).split())[:300], file=answers, flush=True)
try:
    import numpy as np
    module = np
    if library == "torch":
        import torch
        import torch.nn.functional as F
        torch.set_num_threads(int(threads))
        module = torch
    answer("yes " + module.__version__)
except Exception as error:
    answer("no " + str(error))
    sys.exit()

RENAMED = {"mod": "remainder", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
           "swish": "silu"}
def f(name):
    name = RENAMED.get(name, name)
    if name == "gelu":
        return lambda x: F.gelu(x, approximate="tanh")
    for place in (torch, F, torch.special):
        if hasattr(place, name):
            return getattr(place, name)
    raise AttributeError("there is no " + name)
def grad(y, of):
    return torch.autograd.grad(y.sum(), of)

rng = np.random.default_rng(0)
NUMPY = {"f32": np.float32, "f64": np.float64, "bf16": np.float32, "i32": np.int32,
         "i64": np.int64, "i8": np.int8}
def array(dims, dtype, fill, below):
    if fill == "below":
        return rng.integers(0, below, dims).astype(NUMPY[dtype])
    if fill == "positive":
        return (rng.random(dims) + 0.1).astype(NUMPY[dtype])
    x = rng.standard_normal(dims).astype(NUMPY[dtype])
    if fill == "definite":
        x = x @ x.T + dims[-1] * np.eye(dims[-1], dtype=x.dtype)
    return x
def operand(dims, dtype, fill, below, code):
    x = array(dims, dtype, fill, below)
    if library == "numpy":
        return x
    x = torch.from_numpy(x)
    if dtype == "bf16":
        x = x.bfloat16()
    return x.requires_grad_() if code.startswith("grad(") else x

for line in sys.stdin:
    request = json.loads(line)
    try:
        if "code" in request:
            function = operands = None
            code = request["code"]
            operands = [operand(*o, code) for o in request["operands"]]
            function = eval("lambda " + ", ".join("abcdefgh"[: len(operands)]) + ": " + code)
            if library == "torch":
                torch.set_grad_enabled(code.startswith("grad("))
            function(*operands)
            answer("yes")
        else:
            function(*operands)
            start = time.perf_counter()
            for _ in range(request["runs"]):
                function(*operands)
            answer((time.perf_counter() - start) / request["runs"])
    except Exception as error:
        answer("no " + str(error))
)python";

const char* text_of(BenchOperand::Fill fill) {
  switch (fill) {
    case BenchOperand::Fill::Normal: return "normal";
    case BenchOperand::Fill::Positive: return "positive";
    case BenchOperand::Fill::Below: return "below";
    case BenchOperand::Fill::Definite: return "definite";
  }
  return "";
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
  if (library_ != "torch" && library_ != "numpy")
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
  std::vector<std::string> words = {python, "-c", kDriver, library_, strformat("{}", threads)};
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
  const std::string line = request + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    sent += static_cast<size_t>(n);
  }
  std::string said = read_line();
  if (said.empty()) fail("bench", "the process of {} ended in the middle of a case", library_);
  return said;
}

bool BenchPeer::prepare(const BenchCase& which, int64_t size) {
  const std::string& code = library_ == "torch" ? which.torch : which.numpy;
  why_ = "has no such function";
  if (code.empty()) return false;
  const std::string said = ask(request_for(code, which.operands(size)));
  if (said == "yes") return true;
  why_ = said.substr(std::min<size_t>(3, said.size()));
  return false;
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
