#include "present/export/tensorboard/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <tfevents.pb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/crc.hpp>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/ascii.h"
#include "base/unique_fd.h"

namespace lockstep::tensorboard {
namespace {

constexpr size_t kBinCount = 30;  // as many as TensorBoard draws

using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

void AppendLittleEndian(uint64_t value, size_t byte_count, std::string* bytes) {
  for (size_t i = 0; i < byte_count; ++i) *bytes += static_cast<char>((value >> (8 * i)) & 0xff);
}

// The host's name as part of a file's name.
std::string HostName() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string text(name.data());
  for (char& c : text) {
    const bool plain = IsAlphanumeric(c) || c == '-';
    if (!plain) c = '-';
  }
  return text;
}

Error FileError(const std::string& path, const char* what, int error_number) {
  return {.code = error_number == EACCES || error_number == EPERM ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
          .message = fmt::format("{}: {}; give --logdir a folder with room that you may write to", what,
                                 std::strerror(error_number)),
          .file = path};
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError(path, "cannot be written", errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// Two files of one second and process differ by the number.
std::string UniqueName() {
  static std::atomic<uint32_t> next_number = 0;
  return fmt::format("{}.{}.{}.{}", std::time(nullptr), HostName(), ::getpid(), next_number++);
}

Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FileError(folder, "cannot be made", error.value());
  return {};
}

std::string FirstRecord(double wall_time_s) {
  lockstep::tfevents::Event event;
  event.set_wall_time(wall_time_s);
  event.set_file_version("brain.Event:2");
  return FrameRecord(event.SerializeAsString());
}

void Describe(const char* plugin, std::string_view description, lockstep::tfevents::Summary::Value* entry) {
  entry->mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
  entry->mutable_metadata()->set_summary_description(std::string(description));
}

void FillBins(const std::vector<double>& values, lockstep::tfevents::HistogramProto* histogram) {
  const double low = histogram->min();
  const double high = histogram->max();
  const double width = (high - low) / static_cast<double>(kBinCount);
  if (!(width > 0) || !std::isfinite(width)) {  // All alike, or too far apart to be cut.
    histogram->add_bucket_limit(high);
    histogram->add_bucket(static_cast<double>(values.size()));
    return;
  }
  std::array<double, kBinCount> counts = {};
  for (const double value : values) {
    const auto bin = static_cast<size_t>((value - low) / width);
    counts[std::min(bin, kBinCount - 1)] += 1;
  }
  for (size_t i = 0; i < kBinCount; ++i) {
    histogram->add_bucket_limit(i + 1 == kBinCount ? high : low + width * static_cast<double>(i + 1));
    histogram->add_bucket(counts[i]);
  }
}

}  // namespace

uint32_t MaskedCrc(std::string_view bytes) {
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t value = crc.checksum();
  return ((value >> 15) | (value << 17)) + 0xA282EAD8u;
}

std::string FrameRecord(std::string_view bytes) {
  std::string record;
  record.reserve(bytes.size() + 16);
  AppendLittleEndian(bytes.size(), 8, &record);
  AppendLittleEndian(MaskedCrc(record), 4, &record);
  record.append(bytes);
  AppendLittleEndian(MaskedCrc(bytes), 4, &record);
  return record;
}

EventFile::EventFile(double wall_time_s) : bytes_(FirstRecord(wall_time_s)) {}

void EventFile::AddScalar(std::string_view tag, std::string_view description, int64_t step, double wall_time_s,
                          double value) {
  const auto number = static_cast<float>(value);
  if (!std::isfinite(number)) return;
  tfevents::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  tfevents::Summary::Value* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  if (described_.emplace(tag).second) Describe("scalars", description, entry);
  entry->set_simple_value(number);
  bytes_ += FrameRecord(event.SerializeAsString());
  ++scalar_count_;
}

void EventFile::AddHistogram(std::string_view tag, std::string_view description, int64_t step, double wall_time_s,
                             const std::vector<double>& values) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  if (finite.empty()) return;
  tfevents::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  tfevents::Summary::Value* entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  if (described_.emplace(tag).second) Describe("histograms", description, entry);
  tfevents::HistogramProto* histogram = entry->mutable_histo();
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  histogram->set_min(*low);
  histogram->set_max(*high);
  histogram->set_num(static_cast<double>(finite.size()));
  double sum = 0;
  double squares = 0;
  for (const double value : finite) {
    sum += value;
    squares += value * value;
  }
  histogram->set_sum(sum);
  histogram->set_sum_squares(squares);
  FillBins(finite, histogram);
  bytes_ += FrameRecord(event.SerializeAsString());
  ++histogram_count_;
}

Result<std::string> EventFile::Save(const std::string& folder) const {
  RETURN_IF_ERROR(MakeFolder(folder));
  const std::string unique = UniqueName();
  // TensorBoard reads whatever has "tfevents" in its name: the unfinished file has not.
  const std::string partial = fmt::format("{}/.unfinished.{}", folder, unique);
  const std::string path = fmt::format("{}/events.out.tfevents.{}", folder, unique);
  const UniqueFd fd(::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) return FileError(partial, "cannot be made", errno);
  Status status = WriteAll(fd.get(), bytes_, path);
  // link, not rename: it fails where the name is taken.
  if (status && ::link(partial.c_str(), path.c_str()) != 0) {
    const bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
    if (!no_links || ::access(path.c_str(), F_OK) == 0 || ::rename(partial.c_str(), path.c_str()) != 0)
      status = FileError(path, "cannot be given its name", errno);
  }
  ::unlink(partial.c_str());
  if (!status) return std::move(status).error();
  return path;
}

Result<EventLog> EventLog::Create(const std::string& folder, double wall_time_s) {
  RETURN_IF_ERROR(MakeFolder(folder));
  EventLog log(fmt::format("{}/events.out.tfevents.{}", folder, UniqueName()));
  const UniqueFd fd(::open(log.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) return FileError(log.path_, "cannot be made", errno);
  RETURN_IF_ERROR(log.Write(FirstRecord(wall_time_s)));
  return log;
}

Status EventLog::Append(int64_t step, double wall_time_s, const std::vector<ScalarValue>& values) {
  tfevents::Event event;
  event.set_wall_time(wall_time_s);
  event.set_step(step);
  std::vector<std::string_view> new_tags;
  for (const ScalarValue& scalar : values) {
    const auto number = static_cast<float>(scalar.value);
    if (!std::isfinite(number)) continue;
    tfevents::Summary::Value* entry = event.mutable_summary()->add_value();
    entry->set_tag(scalar.tag);
    entry->set_simple_value(number);
    if (described_.contains(scalar.tag)) continue;
    Describe("scalars", scalar.description, entry);
    new_tags.push_back(scalar.tag);
  }
  const int count = event.summary().value_size();
  if (count == 0) return {};
  RETURN_IF_ERROR(Write(FrameRecord(event.SerializeAsString())));
  described_.insert(new_tags.begin(), new_tags.end());
  scalar_count_ += static_cast<uint64_t>(count);
  return {};
}

Status EventLog::Write(std::string_view bytes) {
  const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd.valid()) return FileError(path_, "cannot be opened any more", errno);
  Status status = WriteAll(fd.get(), bytes, path_);
  if (!status) {
    // Half a record would make readers lose all that comes after it.
    [[maybe_unused]] const int cut = ::ftruncate(fd.get(), static_cast<off_t>(byte_count_));
    return status;
  }
  byte_count_ += bytes.size();
  return {};
}

bool HoldsEvents(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) return true;
  }
  return false;
}

}  // namespace lockstep::tensorboard
