#include "weft/viz/session.h"

#include "weft/viz/session_data.h"

namespace weft::viz {

Session::Session(std::unique_ptr<const Data> data) : data_(std::move(data)) {}
Session::~Session() = default;

std::unique_ptr<const Session> Session::open(const std::string& path) {
  auto data = std::make_unique<Data>();
  data->path = path;
  data->file = std::make_unique<MappedFile>(path);
  data->version = data->file->version();
  data->bytes = data->file->bytes();
  return std::unique_ptr<const Session>(new Session(read_data(std::move(data))));
}

std::unique_ptr<const Session> Session::read(std::span<const std::byte> bytes, std::string what) {
  auto data = std::make_unique<Data>();
  data->path = std::move(what);
  data->copy.assign(bytes.begin(), bytes.end());
  data->bytes = data->copy;
  return std::unique_ptr<const Session>(new Session(read_data(std::move(data))));
}

bool Session::stale() const { return data_->file && data_->file->version() != data_->version; }

const std::string& Session::path() const { return data_->path; }

}  // namespace weft::viz
