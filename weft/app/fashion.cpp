#include "weft/app/fashion.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/thread_pool.h"
#include "weft/io/idx.h"

namespace weft {

namespace {

// The files are gzipped in Debian's package; an unpacked copy is as good.
std::string find_file(const std::string& directory, const std::string& leaf) {
  for (const char* suffix : {".gz", ""}) {
    std::string path = directory + "/" + leaf + suffix;
    if (file_exists(path)) return path;
  }
  fail_runtime("data.missing",
               "{}/{}.gz does not exist; install Debian's package with `apt-get install "
               "dataset-fashion-mnist`, or give the directory of the four IDX files with --data",
               directory, leaf);
}

void keep_first(HostArray& array, int64_t limit) {
  if (limit <= 0 || limit >= array.shape[0]) return;
  const auto row = static_cast<int64_t>(array.bytes.size()) / array.shape[0];
  array.shape[0] = limit;
  array.bytes = array.bytes.first(static_cast<size_t>(row * limit));
}

void check_images(const HostArray& images, const std::string& path) {
  const std::vector<int64_t>& shape = images.shape;
  const bool right = images.dtype == DType::U8 && shape.size() == 3 && shape[0] > 0 &&
                     shape[1] == kFashionSide && shape[2] == kFashionSide;
  if (right) return;
  fail_runtime("data.shape", "{}: holds {} {}; images must be u8 (n, 28, 28)", path,
               name(images.dtype), shape_text(shape));
}

void check_labels(const HostArray& labels, int64_t images, const std::string& path) {
  if (labels.dtype != DType::U8 || labels.shape != std::vector<int64_t>{images}) {
    fail_runtime("data.shape", "{}: holds {} {}; there are {} images, so labels must be u8 ({},)",
                 path, name(labels.dtype), shape_text(labels.shape), images, images);
  }
  for (size_t i = 0; i < labels.bytes.size(); ++i) {
    const int label = std::to_integer<int>(labels.bytes[i]);
    if (label < kFashionClasses) continue;
    fail_runtime("data.label", "{}: label {} is {}; classes are 0 to {}", path, i, label,
                 kFashionClasses - 1);
  }
}

ImageSet load_set(const std::string& directory, const std::string& part, int64_t limit,
                  Context& context) {
  const std::string image_path = find_file(directory, part + "-images-idx3-ubyte");
  const std::string label_path = find_file(directory, part + "-labels-idx1-ubyte");
  ImageSet set{read_idx(image_path, context), read_idx(label_path, context)};
  check_images(set.images, image_path);
  check_labels(set.labels, set.images.shape[0], label_path);
  keep_first(set.images, limit);
  keep_first(set.labels, limit);
  return set;
}

}  // namespace

FashionData load_fashion(const std::string& directory, int64_t limit, Context& context) {
  FashionData data;
  // Files that have to be inflated take a fifth of a second.
  context.thread_pool().parallel_for(2, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      (i == 0 ? data.train : data.test) =
          load_set(directory, i == 0 ? "train" : "t10k", limit, context);
  });
  return data;
}

Tensor FashionNet::operator()(const Tensor& images) {
  Tensor x = conv2(conv1(images).relu()).relu();
  x = norm1(x).max_pool2d();
  x = conv4(conv3(x).relu()).relu();
  x = norm2(x).max_pool2d();
  return head(x.flatten(1));
}

void FashionNet::visit(StateVisitor& v) {
  v("conv1", conv1);
  v("conv2", conv2);
  v("norm1", norm1);
  v("conv3", conv3);
  v("conv4", conv4);
  v("norm2", norm2);
  v("head", head);
}

}  // namespace weft
