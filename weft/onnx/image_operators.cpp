// Images: resizing, sampling, regions, files. Semantics: the ONNX operator specification.
#include "weft/onnx/image_operators.h"

#include <array>

#include "weft/io/pictures.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {

namespace {

/// The colours of a picture (height, width, 3) from last to first.
HostArray reversed_colours(const HostArray& picture) {
  std::vector<std::byte> bytes(picture.bytes.begin(), picture.bytes.end());
  for (size_t i = 0; i + 2 < bytes.size(); i += 3) std::swap(bytes[i], bytes[i + 2]);
  return HostArray::owned(picture.dtype, picture.shape, std::move(bytes));
}

/// The bytes of a file of any format that weft reads to u8 (height, width, channels).
Values decode_image(const NodeCall& call) {
  const std::string format = call.text("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    call.refuse("pixel_format is '{}': give RGB, BGR or Grayscale", format);
  const HostArray file = call.array(0);
  if (file.dtype != DType::U8 || file.shape.size() != 1)
    call.refuse("an encoded image is bytes along one axis: got {} {}", name(file.dtype),
                shape_text(file.shape));
  const Channels channels = format == "Grayscale" ? Channels::Grey : Channels::Rgb;
  const HostArray picture = with_8_bits(parse_picture(file.bytes, "its input", channels));
  return {Value(format == "BGR" ? reversed_colours(picture) : picture)};
}

}  // namespace

std::span<const Operator> image_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "AffineGrid", 20, affine_grid},
      Operator{kOnnx, "GridSample", 16, grid_sample},
      Operator{kOnnx, "ImageDecoder", 20, decode_image},
      Operator{kOnnx, "NonMaxSuppression", 10, non_max_suppression},
      Operator{kOnnx, "Resize", 10, resize_10},
      Operator{kOnnx, "Resize", 11, resize},
      Operator{kOnnx, "RoiAlign", 10, roi_align},
      Operator{kOnnx, "Upsample", 1, upsample},
  };
  return kRows;
}

}  // namespace weft::onnx
