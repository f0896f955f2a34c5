#include "weft/io/cifar.h"

#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {

namespace {

constexpr int64_t kChannels = 3, kSide = 32;
constexpr size_t kImageBytes = kChannels * kSide * kSide;

// A record is its labels, one byte each, then an image.
struct Form {
  std::vector<int> label_limits;  // coarse before fine
  std::vector<const char*> train, test;
};

const Form& form_of(Cifar kind) {
  static const Form kForms[] = {
      {{10},
       {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
        "data_batch_5.bin"},
       {"test_batch.bin"}},
      {{20, 100}, {"train.bin"}, {"test.bin"}},
  };
  return kForms[static_cast<size_t>(kind)];
}

struct Columns {
  std::vector<std::byte> images;
  std::vector<std::vector<std::byte>> labels;
};

void append_records(Columns& columns, std::span<const std::byte> data, const Form& form,
                    std::string_view what) {
  const size_t labels = form.label_limits.size(), record = labels + kImageBytes;
  if (data.empty() || data.size() % record != 0) {
    fail_runtime("cifar.length",
                 "{}: {} bytes are no whole number of records of {} label bytes and {} of image; "
                 "the file is cut short, or of the other CIFAR",
                 what, data.size(), labels, kImageBytes);
  }
  columns.labels.resize(labels);
  for (size_t at = 0; at < data.size(); at += record) {
    for (size_t i = 0; i < labels; ++i) {
      const int label = std::to_integer<int>(data[at + i]);
      if (label >= form.label_limits[i]) {
        fail_runtime("cifar.label", "{}: the label at offset {} is {}; there are {} classes", what,
                     at + i, label, form.label_limits[i]);
      }
      columns.labels[i].push_back(data[at + i]);
    }
    const auto image = data.subspan(at + labels, kImageBytes);
    columns.images.insert(columns.images.end(), image.begin(), image.end());
  }
}

CifarSet set_of(Columns columns) {
  const auto n = static_cast<int64_t>(columns.labels[0].size());
  CifarSet set;
  set.images = HostArray::owned(DType::U8, {n, kChannels, kSide, kSide}, std::move(columns.images));
  set.labels = HostArray::owned(DType::U8, {n}, std::move(columns.labels.back()));
  if (columns.labels.size() > 1) {
    set.coarse_labels = HostArray::owned(DType::U8, {n}, std::move(columns.labels[0]));
  }
  return set;
}

}  // namespace

CifarSet parse_cifar(std::span<const std::byte> data, Cifar kind, std::string_view what) {
  Columns columns;
  append_records(columns, data, form_of(kind), what);
  return set_of(std::move(columns));
}

CifarSet read_cifar(const std::string& directory, Cifar kind, bool train) {
  const Form& form = form_of(kind);
  Columns columns;
  for (const char* leaf : train ? form.train : form.test) {
    const MappedFile file(directory + "/" + leaf);
    append_records(columns, file.bytes(), form, file.path());
  }
  return set_of(std::move(columns));
}

}  // namespace weft
