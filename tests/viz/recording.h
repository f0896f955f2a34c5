// A recording of a small program, made anew.
#pragma once

#include <string>

#include "tests/io/scratch_dir.h"

namespace weft::viz {

class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  std::string file() const { return dir_ + "/a.weftviz"; }

 private:
  std::string dir_;
};

class RecordingTest : public testing::Test {
 protected:
  void SetUp() override;
  /// The first pass whose state is a graph of several nodes.
  int64_t a_pass_with_a_graph() const;

  Recording recording;
  std::string file;
};

}  // namespace weft::viz
