// The C renderer's text, against tests/golden/c_<name>.c. Run with GOLDEN_UPDATE=1 to rewrite them.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/device/samples.h"
#include "tests/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {
namespace {

TEST(RenderC, Golden) {
  const Target target = make_target("c", CpuFeatures(), 1);
  for (const LinearProgram& program : testing::samples()) {
    const std::string entry = entry_name(0, program.name);
    const std::string path = strformat("{}/tests/golden/c_{}.c", source_dir(), entry.substr(4));
    const std::string text = render(program, target, entry);
    if (std::getenv("GOLDEN_UPDATE") != nullptr) atomic_write_file(path, text);
    EXPECT_EQ(text, MappedFile(path).text()) << path;
  }
}

// Node addresses, ids and history must not show.
TEST(RenderC, SameTextEveryTime) {
  const Target target = make_target("c", CpuFeatures(), 1);
  const std::vector<LinearProgram> once = testing::samples(), again = testing::samples();
  EXPECT_EQ(render(once, target), render(again, target));
}

TEST(RenderC, NamesAreOursAlone) {
  EXPECT_EQ(entry_name(3, "Rm -rf /; \"\n"), "k_3_rm__rf______");
  EXPECT_EQ(entry_name(0, std::string(500, 'x')).size(), 4u + 64u);
}

TEST(RenderC, NoRestrictWhereParamsMayOverlap) {
  const Target target = make_target("c", CpuFeatures(), 1);
  const LinearProgram program = testing::sample_add();
  EXPECT_NE(render(program, target, "k").find("restrict"), std::string::npos);
  RenderOptions options;
  options.distinct_params = false;
  EXPECT_EQ(render(program, target, "k", options).find("restrict"), std::string::npos);
}

TEST(RenderC, UnsupportedOpsAreOurError) {
  testing::ProgramBuilder b("bad");
  NodeRef out = b.param(DType::F32, true);
  NodeRef two = b.alu(Op::Exp2, {b.constant(DType::F32, 1)});
  b.store(out, b.i32(0), two);
  const LinearProgram program = b.build();
  EXPECT_THROW(render(program, make_target("c", CpuFeatures(), 1), "k"), InternalError);
  EXPECT_THROW(render(program, make_target("interp", CpuFeatures(), 1), "k"), InternalError);
}

TEST(Target, RowsAreWhatTheySay) {
  CpuFeatures none, avx2, avx512;
  for (CpuFeature f : {CpuFeature::Avx, CpuFeature::Avx2, CpuFeature::Fma}) {
    avx2.set(f, true);
    avx512.set(f, true);
  }
  for (CpuFeature f :
       {CpuFeature::Avx512f, CpuFeature::Avx512bw, CpuFeature::Avx512dq, CpuFeature::Avx512vl})
    avx512.set(f, true);
  const Target plain = make_target("c", none, 1), ymm = make_target("c", avx2, 1),
               zmm = make_target("c", avx512, 1);
  EXPECT_EQ(plain.lanes(DType::F32), 4);
  EXPECT_EQ(ymm.lanes(DType::F32), 8);
  EXPECT_EQ(zmm.lanes(DType::F32), 16);
  EXPECT_FALSE(plain.native(Op::MulAcc, DType::F32));
  EXPECT_TRUE(plain.native(Op::MulAcc, DType::I32));
  EXPECT_TRUE(ymm.native(Op::MulAcc, DType::F32));
  EXPECT_FALSE(zmm.native(Op::Exp2, DType::F32));
  EXPECT_FALSE(zmm.native(Op::Add, DType::F16));
  EXPECT_TRUE(zmm.native(Op::Cast, DType::F16));
  EXPECT_TRUE(zmm.native(Op::Add, DType::Index));
  EXPECT_NE(plain.key(), zmm.key());
  EXPECT_EQ(make_target("c", avx512, 7).key(), zmm.key());
  EXPECT_EQ(avx2.compiler_flags(), "-mavx -mfma -mavx2");
  EXPECT_THROW(make_target("tpu", none, 1), Error);
}

}  // namespace
}  // namespace weft
