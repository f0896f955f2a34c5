// AppendFile: a file that several processes may add to, each block whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace weft {

class AppendFile {
 public:
  // Made where it is missing, with its folders, for this user alone. An Error where that cannot be.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Behind what anybody has added. An Error where the system does not take all of it.
  void append(std::span<const std::byte> data);
  uint64_t size() const;  // with what others have added
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace weft
