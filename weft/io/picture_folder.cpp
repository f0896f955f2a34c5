#include "weft/io/picture_folder.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

struct Picture {
  std::string path;
  int32_t label;
};

bool is_picture_name(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kEndings[] = {".png", ".jpg", ".jpeg", ".bmp",  ".pbm", ".pgm",
                                           ".ppm", ".pnm", ".webp", ".tiff", ".tif", ".jp2"};
  return std::ranges::find(kEndings, ending) != std::end(kEndings);
}

/// The folders, or the pictures, in a directory, by name.
std::vector<fs::path> inside(const fs::path& directory, bool folders) {
  check_path(directory.native());
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unseen;  // a link to nowhere is neither
    const bool wanted = folders ? entry->is_directory(unseen)
                                : entry->is_regular_file(unseen) && is_picture_name(entry->path());
    if (wanted) found.push_back(entry->path());
  }
  if (error)
    fail_runtime("picture_folder", "{}: cannot be listed: {}", directory.string(), error.message());
  std::sort(found.begin(), found.end());
  return found;
}

/// (height, width, channels) to (channels, height, width).
void put_planes(const HostArray& picture, std::byte* to) {
  const auto channels = static_cast<size_t>(picture.shape[2]);
  const size_t pixels = picture.bytes.size() / channels;
  for (size_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < pixels; ++i) to[c * pixels + i] = picture.bytes[i * channels + c];
}

}  // namespace

struct PictureFolder::Set {
  std::vector<std::string> classes;
  std::vector<Picture> pictures;
  PictureOptions options;

  const Picture& at(int64_t i) const {
    if (i < 0 || static_cast<size_t>(i) >= pictures.size())
      fail_index("picture_folder", "there is no picture {}: the set has {}", i, pictures.size());
    return pictures[static_cast<size_t>(i)];
  }
  HostArray read(const Picture& picture) const {
    const HostArray found = with_8_bits(read_picture(picture.path, options.channels));
    return options.height > 0 ? resized(found, options.height, options.width) : found;
  }
  std::vector<HostArray> fetch(const std::vector<int64_t>& numbers) const;
};

std::vector<HostArray> PictureFolder::Set::fetch(const std::vector<int64_t>& numbers) const {
  std::vector<std::byte> pixels, labels(numbers.size() * sizeof(int32_t));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Picture& picture = at(numbers[i]);
    const HostArray one = read(picture);
    if (shape.empty()) {
      shape = one.shape;
      pixels.resize(numbers.size() * one.bytes.size());
    }
    if (one.shape != shape)
      fail_runtime("picture_folder", "{}: is {} by {} pixels, others {} by {}; give a size",
                   picture.path, one.shape[0], one.shape[1], shape[0], shape[1]);
    put_planes(one, pixels.data() + i * one.bytes.size());
    std::memcpy(&labels[i * sizeof(int32_t)], &picture.label, sizeof(int32_t));
  }
  const auto count = static_cast<int64_t>(numbers.size());
  if (shape.empty())
    shape = {options.height, options.width, static_cast<int64_t>(options.channels)};
  return {HostArray::owned(DType::U8, {count, shape[2], shape[0], shape[1]}, std::move(pixels)),
          HostArray::owned(DType::I32, {count}, std::move(labels))};
}

PictureFolder::PictureFolder(const std::string& directory, const PictureOptions& options,
                             CallSite at) {
  const CallSiteScope site(at);
  const bool is_sized = options.height > 0 && options.width > 0;
  if (!is_sized && (options.height != 0 || options.width != 0))
    fail("picture_folder", "a size of {} by {} pixels", options.height, options.width);
  if (options.channels == Channels::AsItIs)
    fail("picture_folder", "pictures of one batch have the same channels: say which");
  auto set = std::make_shared<Set>();
  set->options = options;
  for (const fs::path& folder : inside(directory, true)) {
    for (const fs::path& file : inside(folder, false))
      set->pictures.push_back({file.string(), static_cast<int32_t>(set->classes.size())});
    set->classes.push_back(folder.filename().string());
  }
  if (set->pictures.empty())
    fail_runtime(
        "picture_folder",
        "{}: {} classes with no picture; it should hold a folder of pictures (.png, .jpg, ..) for "
        "each class",
        directory, set->classes.size());
  set_ = std::move(set);
}

int64_t PictureFolder::size() const { return static_cast<int64_t>(set_->pictures.size()); }
const std::vector<std::string>& PictureFolder::classes() const { return set_->classes; }
const std::string& PictureFolder::path(int64_t picture) const { return set_->at(picture).path; }
int32_t PictureFolder::label(int64_t picture) const { return set_->at(picture).label; }

std::vector<HostArray> PictureFolder::fetch(const std::vector<int64_t>& pictures) const {
  return set_->fetch(pictures);
}

DataLoader PictureFolder::loader(const LoaderOptions& options, CallSite at) const {
  return {size(), [set = set_](const std::vector<int64_t>& rows) { return set->fetch(rows); },
          options, at};
}

}  // namespace weft
