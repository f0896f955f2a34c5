// PictureFolder: a directory with a folder of pictures for each class, as a data set.
//
//   PictureFolder set("flowers/train", {.height = 224, .width = 224});
//   DataLoader loader = set.loader({.batch = 64, .shuffle = true});
//   for (const Batch& batch : loader.epoch(0)) step(batch[0], batch[1]);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/io/data_loader.h"
#include "weft/io/pictures.h"

namespace weft {

struct PictureOptions {
  int64_t height = 0, width = 0;      // every picture is resized to this; 0: all must have one size
  Channels channels = Channels::Rgb;  // not AsItIs
};

class PictureFolder {
 public:
  // Folders in the order of their names are the classes 0, 1, ...; of their files those count that
  // end in .png, .jpg or .jpeg, in the order of their names, and are looked into only when they are
  // fetched. An Error where there is no class or no picture.
  explicit PictureFolder(const std::string& directory, const PictureOptions& options = {},
                         CallSite at = CallSite::here());

  int64_t size() const;
  const std::vector<std::string>& classes() const;
  const std::string& path(int64_t picture) const;
  int32_t label(int64_t picture) const;

  // u8 (n, channels, height, width) and i32 (n,): any thread. What cannot be read is an Error that
  // names the file.
  std::vector<HostArray> fetch(const std::vector<int64_t>& pictures) const;
  // Batches of those, fetched ahead; needs the folder no more.
  DataLoader loader(const LoaderOptions& options = {}, CallSite at = CallSite::here()) const;

 private:
  struct Set;
  std::shared_ptr<const Set> set_;
};

}  // namespace weft
