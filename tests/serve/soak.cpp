// soak SECONDS [PORT PID]: hostile clients (slow, huge, truncated, wrong, many) against a server of
// a FakeGenerator in a process of its own, or against another one, with /health asked after each.
// Fails where that is not answered within seconds, or where the memory of the server that it made
// grows.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "tests/serve/attacks.h"
#include "weft/base/format.h"

namespace weft::serve {
namespace {

using Clock = std::chrono::steady_clock;
using std::string;

constexpr int kAttackers = 6, kHealthSeconds = 10;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double resident_mb(pid_t process) {
  long pages = 0, resident = 0;
  std::ifstream(strformat("/proc/{}/statm", process)) >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 0x1p20;
}

void wrong(uint16_t port, Random& random) {
  Client client(port);
  if (random.chance(50)) {
    client.send(random.pick(http_attacks()).bytes);
  } else {
    client.send(random.pick(body_attacks()).bytes);
  }
  client.read_answer(5);
}

void changed(uint16_t port, Random& random) {
  for (int i = 0; i < 20; ++i) {
    Client client(port);
    const string bytes = changed_request(random);
    client.send(bytes);
    if (random.chance(25)) client.send(bytes);
    if (random.chance(30)) client.reset();
  }
}

void truncated(uint16_t port, Random& random) {
  const string whole = chat_with(R"(, "stream": true)");
  Client client(port);
  client.send(
      whole.substr(0, static_cast<size_t>(random.below(static_cast<int64_t>(whole.size())))));
  random.chance(50) ? client.close() : client.reset();
}

/// A byte now and then, for up to six seconds.
void slow(uint16_t port, Random& random) {
  Client client(port);
  const string whole = random.chance(50) ? chat_with("") : with_length("100000");
  for (size_t i = 0; i < 60 && i < whole.size(); ++i) {
    if (!client.send({&whole[i], 1})) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(random.below(200)));
  }
}

void huge(uint16_t port, Random& random) {
  Client client(port);
  const size_t size = static_cast<size_t>(random.between(1, 5)) << 20;
  switch (random.below(4)) {
    case 0: client.send(get("/health", "X: " + string(size, 'x') + "\r\n")); break;
    case 1: client.send(post("/tokenize", R"({"content": ")" + string(size, 'a') + "\"}")); break;
    case 2:
      client.send(post("/v1/embeddings", "{\"input\": [" + repeated("1,", size / 4) + "1]}"));
      break;
    default: client.send(post("/v1/chat/completions", repeated("[", size)));
  }
  client.read_answer(20);
}

/// Connections that say little or nothing, more than there is room for.
void many(uint16_t port, Random& random) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int64_t i = random.between(10, 200); i > 0; --i) {
    clients.push_back(std::make_unique<Client>(port));
    if (random.chance(50)) clients.back()->send("GET /hea");
  }
}

/// Streams that nobody reads, and some that end in the middle.
void streams(uint16_t port, Random& random) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int64_t i = random.between(1, 16); i > 0; --i) {
    clients.push_back(std::make_unique<Client>(port));
    clients.back()->send(
        post("/v1/chat/completions",
             chat_body("LONG 100000", {{"stream", true}, {"n", random.between(1, 4)}}).dump()));
    if (random.chance(50)) clients.back()->read_until("content\":\"w", 5);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(random.below(500)));
  for (auto& client : clients) random.chance(50) ? client->close() : client->reset();
}

void pipelined(uint16_t port, Random& random) {
  Client client(port);
  string all;
  for (int64_t i = random.between(1, 100); i > 0; --i)
    all += post("/tokenize", R"({"content": "abc"})");
  std::thread sender([&] { client.send(all); });
  if (random.chance(50)) client.read_answer(5);
  client.reset();
  sender.join();
}

struct Attack {
  const char* name;
  void (*run)(uint16_t port, Random& random);
};
constexpr Attack kAttacks[] = {
    {"wrong", wrong}, {"changed", changed}, {"truncated", truncated}, {"slow", slow},
    {"huge", huge},   {"many", many},       {"streams", streams},     {"pipelined", pipelined}};

class Soak {
 public:
  Soak(uint16_t port, pid_t process, double seconds)
      : port_(port), process_(process), seconds_(seconds) {}

  /// Whether /health was always answered.
  bool run() {
    std::vector<std::thread> attackers;
    for (int i = 0; i < kAttackers; ++i)
      attackers.emplace_back([this, i] { attack(static_cast<uint64_t>(i)); });
    for (double next = 10; !over(); std::this_thread::sleep_for(std::chrono::milliseconds(100)))
      if (since(start_) >= next) report(), next += 10;
    for (std::thread& attacker : attackers) attacker.join();
    report();
    return failures_ == 0;
  }

 private:
  bool over() const { return since(start_) >= seconds_ || failures_ != 0; }

  void attack(uint64_t seed) {
    Random random(seed + 1);
    while (!over()) {
      const Attack& which = random.pick(kAttacks);
      which.run(port_, random);
      ask_health(which.name);
    }
  }

  /// Asked again where nothing comes: the whole machine may have stood still.
  void ask_health(const char* after) {
    const auto start = Clock::now();
    int status = 0;
    for (int tries = 0; status != 200 && tries < 3; ++tries) {
      Client client(port_);
      client.send(get("/health"));
      status = client.read_answer(kHealthSeconds).status;
    }
    const double took = since(start);
    const std::lock_guard lock(mutex_);
    ++asked_;
    worst_ = std::max(worst_, took);
    if (status == 200) return;
    ++failures_;
    std::printf("no /health after %s: status %d, %.1f s\n", after, status, took);
  }

  void report() {
    const std::lock_guard lock(mutex_);
    std::printf("%.0f s: %zu attacks, slowest /health %.0f ms, %.1f MB\n", since(start_), asked_,
                worst_ * 1e3, resident_mb(process_));
    std::fflush(stdout);
  }

  const uint16_t port_;
  const pid_t process_;
  const double seconds_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  size_t asked_ = 0;
  double worst_ = 0;
  std::atomic<size_t> failures_{0};
};

/// A server in a child; it ends with this.
class ServerProcess {
 public:
  ServerProcess() {
    int to[2], from[2];
    if (::pipe(to) != 0 || ::pipe(from) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      ::close(to[1]);
      serve(to[0], from[1]);
      ::_exit(0);
    }
    ::close(to[0]);
    end_ = to[1];
    if (::read(from[0], &port_, sizeof(port_)) != sizeof(port_)) std::abort();
  }
  ~ServerProcess() {
    ::close(end_);
    ::waitpid(process_, nullptr, 0);
  }
  pid_t process() const { return process_; }
  uint16_t port() const { return port_; }
  bool idle() const {
    Client client(port_);
    client.send(get("/metrics"));
    const string text = client.read_answer().body;
    return text.find("weft_generator_running 0\n") != string::npos &&
           text.find("weft_generator_queued 0\n") != string::npos;
  }

 private:
  static void serve(int until_closed, int port_goes_to) {
    const ServerHere server({.step_time = std::chrono::milliseconds(1)});
    const uint16_t port = server.port();
    char byte;
    if (::write(port_goes_to, &port, sizeof(port)) == sizeof(port))
      while (::read(until_closed, &byte, 1) > 0) {}
  }
  pid_t process_ = 0;
  uint16_t port_ = 0;
  int end_ = -1;
};

int run(double seconds) {
  const ServerProcess server;
  // What is allocated once.
  Soak(server.port(), server.process(), std::min(seconds, 20.0)).run();
  const double before = resident_mb(server.process());
  const bool answered = Soak(server.port(), server.process(), seconds).run();
  const bool empties = comes_true([&] { return server.idle(); }, 20);
  const double grown = resident_mb(server.process()) - before;
  std::printf("memory %+.1f MB, %s\n", grown, empties ? "nothing runs" : "requests are left");
  return answered && empties && grown < 64 ? 0 : 1;
}

}  // namespace
}  // namespace weft::serve

int main(int count, char** arguments) {
  using namespace weft::serve;
  if (count == 2) return run(std::atof(arguments[1]));
  if (count != 4) return std::fprintf(stderr, "usage: soak SECONDS [PORT PID]\n"), 2;
  const auto port = static_cast<uint16_t>(std::atoi(arguments[2]));
  return Soak(port, std::atoi(arguments[3]), std::atof(arguments[1])).run() ? 0 : 1;
}
