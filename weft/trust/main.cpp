#include "weft/trust/command.h"

int main(int argc, char** argv) {
  return weft::trust::run_trust({argv, static_cast<size_t>(argc)}, stdout, stderr);
}
