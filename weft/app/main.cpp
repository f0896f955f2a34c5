#include "weft/app/app.h"

int main(int argc, char** argv) {
  weft::open_standard_files();
  return weft::run_app({argv, static_cast<size_t>(argc)}, stdout, stderr);
}
