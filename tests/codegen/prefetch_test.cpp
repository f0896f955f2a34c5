// Prefetches between what is computed.
#include "weft/codegen/x86/prefetch.h"

#include <gtest/gtest.h>

#include <string>

#include "weft/isa/x86.h"

namespace weft::codegen {
namespace {

using x86::Form;

/// p: a prefetch, m: a move, j: a jump.
MachineProgram program_of(const std::string& text) {
  MachineProgram out;
  int32_t line = 0;
  for (const char c : text) {
    if (c == 'p')
      out.code.push_back(
          x86::make(Form::Prefetcht0, 8, {}, Address{.base = 1, .displacement = 64 * line++}));
    else if (c == 'm')
      out.code.push_back(x86::make(Form::Mov, 64, {0, 1}));
    else
      out.code.push_back(x86::make(Form::Jmp, 64, {}));
  }
  return out;
}

std::string text_of(const MachineProgram& p) {
  std::string out;
  int32_t line = 0;
  for (const Instruction& i : p.code) {
    const auto form = static_cast<Form>(i.form);
    out += form == Form::Prefetcht0 ? 'p' : form == Form::Mov ? 'm' : 'j';
    if (form == Form::Prefetcht0) {
      EXPECT_EQ(i.address.displacement, 64 * line++) << "in their order";
    }
  }
  return out;
}

std::string spread(const std::string& text) {
  MachineProgram p = program_of(text);
  spread_prefetches(p);
  return text_of(p);
}

TEST(Prefetch, ManyAreSpread) {
  EXPECT_EQ(spread("mppppmmmmmmmmmjm"), "mpmmpmmpmmpmmmjm");
  EXPECT_EQ(spread("ppppmmmmjppppmmmmmmmm"), "pmpmpmpmjpmmpmmpmmpmm");
}

TEST(Prefetch, FewStayAndNoneIsLost) {
  EXPECT_EQ(spread("mpppmmmmmmj"), "mpppmmmmmmj");
  EXPECT_EQ(spread("ppppppmmj"), "pmpmppppj");
  EXPECT_EQ(spread("ppppj"), "ppppj");
  EXPECT_EQ(spread(""), "");
}

}  // namespace
}  // namespace weft::codegen
