#include "weft/app/app.h"
#include "weft/app/bus_error.h"

int main(int argc, char** argv) {
  weft::open_standard_files();
  weft::explain_bus_errors();
  return weft::run_app({argv, static_cast<size_t>(argc)}, stdout, stderr);
}
