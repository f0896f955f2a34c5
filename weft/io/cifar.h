// CIFAR-10 and CIFAR-100: small colour images with labels, in their binary form
// (https://www.cs.toronto.edu/~kriz/cifar.html).
#pragma once

#include <string>
#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

enum class Cifar : uint8_t { Ten, Hundred };

struct CifarSet {
  HostArray images;         // u8 (n, 3, 32, 32): red, green, blue, row by row
  HostArray labels;         // u8 (n,), below 10 or 100
  HostArray coarse_labels;  // u8 (n,), below 20: of CIFAR-100 only
};

// The training or the test images of a directory of data_batch_1.bin to data_batch_5.bin and
// test_batch.bin, or of train.bin and test.bin.
CifarSet read_cifar(const std::string& directory, Cifar kind, bool train);

// One file's content. The result has memory of its own.
CifarSet parse_cifar(std::span<const std::byte> data, Cifar kind, std::string_view what);

}  // namespace weft
