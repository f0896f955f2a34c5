#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(ImageOperators, ResizeOfAllOpsets) {
  const std::vector<NodeCase> cases = {
      {"Resize",
       10,
       {},
       {ramp({1, 1, 2, 3}), known({4}, {1, 1, 2, 0.7})},
       {{{1, 1, 4, 2}, {0, 0.625, 0, 0.625, -0.5, 0.125, -0.5, 0.125}}}},
      {"Resize",
       10,
       {attr("mode", "linear")},
       {ramp({1, 1, 2, 3}), known({4}, {1, 1, 1.5, 2})},
       {{{1, 1, 3, 6},
         {0, -0.5625, -1.125, -0.25, 0.625, 0.625, -0.3333333, 0.06250003, 0.4583334, 0.375,
          0.2916667, 0.2916667, -0.5, 0.375, 1.25, 0.6875, 0.125, 0.125}}}},
      {"Resize",
       11,
       {attr("mode", "nearest"), attr("nearest_mode", "ceil"),
        attr("coordinate_transformation_mode", "asymmetric")},
       {ramp({1, 1, 2, 3}), known({0}, {}), known({4}, {1, 1, 2, 2})},
       {{{1, 1, 4, 6},
         {0,    -1.125, -1.125, 0.625, 0.625, 0.625, -0.5, 1.25, 1.25, 0.125, 0.125, 0.125,
          -0.5, 1.25,   1.25,   0.125, 0.125, 0.125, -0.5, 1.25, 1.25, 0.125, 0.125, 0.125}}}},
      {"Resize",
       11,
       {attr("mode", "cubic"), attr("coordinate_transformation_mode", "align_corners")},
       {ramp({1, 1, 2, 3}), known({0}, {}), known({0}, {}), known({1, 1, 3, 4})},
       {{{1, 1, 3, 4},
         {0, -0.9652778, -0.6990741, 0.625, -0.25, -0.07060198, 0.1956018, 0.375, -0.5, 0.8240739,
          1.090278, 0.125}}}},
      {"Resize",
       11,
       {attr("mode", "linear"), attr("coordinate_transformation_mode", "tf_crop_and_resize"),
        attr("extrapolation_value", 9.0)},
       {ramp({1, 1, 2, 3}), known({8}, {0, 0, 0, 0.25, 1, 1, 1, 1.25}), known({0}, {}),
        known({1, 1, 2, 4})},
       {{{1, 1, 2, 4}, {-0.5625, -0.8333331, 0.3333334, 9, 0.375, 1.0625, 0.3125, 9}}}},
      {"Resize",
       13,
       {attr("mode", "cubic"), attr("exclude_outside", 1), attr("cubic_coeff_a", -0.5)},
       {ramp({1, 1, 2, 3}), {}, known({4}, {1, 1, 2, 2})},
       {{{1, 1, 4, 6}, {0.1657656,   -0.2614051, -1.167013,  -0.9857151, 0.2586679, 0.8459127,
                        -0.05685398, -0.229334,  -0.5951404, -0.4138427, 0.2907391, 0.623293,
                        -0.4982931,  -0.1657391, 0.5388427,  0.7201405,  0.3543339, 0.181854,
                        -0.7209126,  -0.1336679, 1.110715,   1.292013,   0.3864051, -0.04076558}}}},
      {"Resize",
       13,
       {attr("mode", "linear"), attr("coordinate_transformation_mode", "pytorch_half_pixel")},
       {ramp({1, 1, 2, 3}), {}, {}, known({1, 1, 1, 2})},
       {{{1, 1, 1, 2}, {-0.28125, 0.1875}}}},
      {"Resize",
       18,
       {attr("mode", "linear"), attr("antialias", 1), attr("axes", ints{2, 3})},
       {ramp({1, 1, 5, 6}), {}, {}, known({2, 3})},
       {{{1, 1, 2, 3}, {-0.2175, 0.1025, 0.1925, -0.30125, 0.0475, 0.05125}}}},
      {"Resize",
       18,
       {attr("keep_aspect_ratio_policy", "not_smaller"), attr("axes", ints{2, 3})},
       {ramp({1, 1, 4, 6}), {}, {}, known({2, 2})},
       {{{1, 1, 2, 3}, {0, 0.625, 1.25, 0.875, -1.375, -0.75}}}},
      {"Upsample",
       9,
       {},
       {ramp({1, 1, 2, 3}), known({4}, {1, 1, 2, 1})},
       {{{1, 1, 4, 3},
         {0, -1.125, 0.625, 0, -1.125, 0.625, -0.5, 1.25, 0.125, -0.5, 1.25, 0.125}}}},
      {"Upsample",
       7,
       {attr("scales", doubles{1.0, 1.0, 1.0, 2.0}), attr("mode", "linear")},
       {ramp({1, 1, 2, 3})},
       {{{1, 1, 2, 6},
         {0, -0.5625, -1.125, -0.25, 0.625, 0.625, -0.5, 0.375, 1.25, 0.6875, 0.125, 0.125}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ImageOperators, Sampling) {
  const std::vector<NodeCase> cases = {
      {"GridSample",
       16,
       {attr("mode", "bicubic"), attr("padding_mode", "reflection")},
       {ramp({1, 1, 3, 3}), known({1, 2, 2, 2}, {-1.2, -0.5, 0.1, 0.3, 0.9, 1.4, 0.4, -0.2})},
       {{{1, 1, 2, 2}, {-0.03886713, 1.255539, -0.5326396, 0.5131476}}}},
      {"GridSample",
       16,
       {attr("padding_mode", "border"), attr("align_corners", 1)},
       {ramp({1, 1, 3, 3}), known({1, 2, 2, 2}, {-1.2, -0.5, 0.1, 0.3, 0.9, 1.4, 0.4, -0.2})},
       {{{1, 1, 2, 2}, {-0.25, 0.9875001, -0.2625, 0.5550001}}}},
      {"GridSample",
       20,
       {attr("mode", "nearest")},
       {ramp({1, 1, 3, 3}), known({1, 2, 2, 2}, {-1.2, -0.5, 0.1, 0.3, 0.9, 1.4, 0.4, -0.2})},
       {{{1, 1, 2, 2}, {0, 1.25, 0, 0.125}}}},
      {"GridSample",
       20,
       {attr("padding_mode", "reflection")},
       {ramp({1, 1, 2, 2, 2}), known({1, 1, 1, 1, 3}, {-0.5, 0.2, 0.1})},
       {{{1, 1, 1, 1, 1}, {-0.02000007}}}},
      {"RoiAlign",
       10,
       {attr("output_height", 2), attr("output_width", 2)},
       {ramp({1, 1, 4, 4}), known({1, 4}, {0, 0, 3, 3}), known({1}, {0}, DType::I64)},
       {{{1, 1, 2, 2}, {0.09375, -0.1899414, 0.5087891, -0.2802734}}}},
      {"RoiAlign",
       16,
       {attr("output_height", 1), attr("output_width", 2), attr("mode", "max"),
        attr("sampling_ratio", 2), attr("coordinate_transformation_mode", "output_half_pixel")},
       {ramp({1, 1, 4, 4}), known({2, 4}, {0, 0, 3, 3, 1, 0, 1.5, 3.5}),
        known({2}, {0, 0}, DType::I64)},
       {{{2, 1, 1, 2}, {0.9023438, 0.3515625, 0.4511719, 0.1933594}}}},
      {"NonMaxSuppression",
       11,
       {},
       {known({1, 3, 4}, {0, 0, 1, 1, 1, 1, 0, 0.1, 2, 2, 3, 3}), known({1, 1, 3}, {0.9, 0.8, 0.7}),
        known(ints{3}), known({1}, {0.5})},
       {{{2, 3}, {0, 0, 0, 0, 0, 2}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ImageOperators, Errors) {
  const Value x = ramp({1, 1, 2, 3});
  EXPECT_NE(refusal("Resize", 13, {}, {x}).find("neither scales nor sizes are given"),
            std::string::npos);
  EXPECT_NE(refusal("Resize", 13, {attr("mode", "area")}, {x, {}, known({4}, {1, 1, 2, 2})})
                .find("mode 'area' is not known"),
            std::string::npos);
  EXPECT_NE(refusal("Resize", 13, {}, {x, {}, known({2}, {2, 2})}).find("2 scales for 4 axes"),
            std::string::npos);
  EXPECT_NE(refusal("Resize", 13, {}, {x, {}, known({4}, {1, 1, -2, 2})})
                .find("scale -2 for an axis of 2"),
            std::string::npos);
  EXPECT_NE(refusal("GridSample", 16, {}, {x, ramp({1, 2, 2, 3})})
                .find("image (1, 1, 2, 3) and grid (1, 2, 2, 3)"),
            std::string::npos);
  EXPECT_NE(refusal("RoiAlign", 16, {}, {x, ramp({1, 5}), known(ints{0})})
                .find("input (1, 1, 2, 3) and regions (1, 5)"),
            std::string::npos);
  EXPECT_NE(
      refusal("RoiAlign", 16, {attr("sampling_ratio", 1000000)}, {x, ramp({1, 4}), known(ints{0})})
          .find("1 x 1 bins of 1000000 samples along each axis: give 1 to 1024"),
      std::string::npos);
  EXPECT_NE(refusal("NonMaxSuppression", 11, {}, {ramp({1, 2, 4}), ramp({1, 1, 3})})
                .find("boxes (1, 2, 4) and scores (1, 1, 3)"),
            std::string::npos);
}

TEST(ImageOperators, ImagesOfNoKnownFormat) {
  EXPECT_NE(refusal("ImageDecoder", 20, {}, {known({4}, {1, 2, 3, 4}, DType::U8)})
                .find("begins as no picture does"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
