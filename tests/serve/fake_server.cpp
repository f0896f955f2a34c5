// A server of a FakeGenerator, for clients in other languages: fake_server [PORT [KEY [ANSWERS]]]
// prints its address and serves so many answers at once until its input ends.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/support/llm/fake_generator.h"
#include "weft/serve/server.h"

int main(int count, char** arguments) {
  using namespace weft;
  using namespace weft::serve;
  llm::FakeGenerator generator({.places = 8, .step_time = std::chrono::milliseconds(2)});
  ServeOptions options;
  options.port = static_cast<uint16_t>(count > 1 ? std::atoi(arguments[1]) : 0);
  if (count > 2) options.api_key = arguments[2];
  if (count > 3) options.limits.choices_at_once = static_cast<size_t>(std::atoi(arguments[3]));
  Server server(generator, options);
  std::printf("%s\n", server.address().c_str());
  std::fflush(stdout);
  std::thread input([&] {
    char byte;
    while (::read(0, &byte, 1) > 0) {}
    server.stop();
  });
  server.run();
  input.join();
  return 0;
}
