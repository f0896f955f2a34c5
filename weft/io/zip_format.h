// The numbers of the zip format (APPNOTE.TXT 6.3.10, 4.3 to 4.5) that its reader and writer share.
#pragma once

#include <cstdint>

namespace weft::zip {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator = 0x07064b50, kDescriptorMark = 0x08074b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                   kLocatorBytes = 20;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kEncrypted = 1, kDescriptor = 1 << 3, kUtf8 = 1 << 11;
constexpr uint16_t kKnownFlags = 6 | kDescriptor | kUtf8;       // 6: how hard deflate tried
constexpr uint64_t kMany16 = UINT16_MAX, kMany32 = UINT32_MAX;  // "see the zip64 field"
constexpr uint16_t kWide = 1;                                   // the id of that field
constexpr uint16_t kPadding = 0x4246;                 // an id that PyTorch uses to align data
constexpr uint16_t kMadeByUnix = 3, kLinkMode = 0xa;  // of the upper 16 bits of the attributes
constexpr uint16_t kVersion64 = 45;
constexpr uint16_t kFirstDay = 0x21;  // 1980-01-01

}  // namespace weft::zip
