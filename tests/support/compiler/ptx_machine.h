// PtxMachine: PTX without a GPU. Runs text as weft/render/ptx.h writes it, thread by thread; what
// an instruction does is written from NVIDIA's manual.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/device/device.h"

namespace weft::testing {

namespace ptx {

struct Entry;

using Size = std::array<uint32_t, 3>;

}  // namespace ptx

class PtxMachine {
 public:
  /// An InternalError names the line that it does not understand.
  explicit PtxMachine(std::string_view module);
  ~PtxMachine();

  /// Parameters as words, in order. Threads of a block run one after the other, up to the next
  /// place where they wait for each other; registers and shared memory begin as rubbish.
  void launch(std::string_view entry, std::span<const uint64_t> params, ptx::Size grid,
              ptx::Size block) const;

 private:
  std::map<std::string, std::unique_ptr<ptx::Entry>, std::less<>> entries_;
};

/// The device of this name; "PTX" is such a machine, with the host's memory.
class OpenedDevice {
 public:
  OpenedDevice(Context& context, std::string_view name);
  operator Device&() const { return *device_; }  // NOLINT: it is one

 private:
  std::unique_ptr<Device> own_;
  Device* device_;
};

}  // namespace weft::testing
