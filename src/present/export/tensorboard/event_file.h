#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep::tensorboard {

/// CRC-32C as TensorBoard masks it: rotated right by 15, plus 0xA282EAD8. Source: docs/formats/tfevents.md.
uint32_t MaskedCrc(std::string_view bytes);

/// One record of an event file: length, its checksum, the bytes, their checksum; integers little-endian.
std::string FrameRecord(std::string_view bytes);

/// Events of one folder ("run" in TensorBoard's words), in memory until they are saved. Not thread-safe.
class EventFile {
 public:
  /// The first record, which names the version, has this time.
  explicit EventFile(double wall_time_s);

  /// `description` (Markdown) is written with the first value of a tag. Values that are not finite are left out: not
  /// measured is not 0. A scalar is a 32-bit float in this format.
  void AddScalar(std::string_view tag, std::string_view description, int64_t step, double wall_time_s, double value);
  /// At most 30 bins of equal width from the least to the largest; nothing is written without values.
  void AddHistogram(std::string_view tag, std::string_view description, int64_t step, double wall_time_s,
                    const std::vector<double>& values);

  uint64_t scalar_count() const { return scalar_count_; }
  uint64_t histogram_count() const { return histogram_count_; }

  /// Writes a new file "events.out.tfevents.SECONDS.HOST.PID.NUMBER" into `folder` (made when missing); never replaces
  /// one. The file has this name only when it is whole. Returns its path. Errors: kIo, kPermissionDenied.
  Result<std::string> Save(const std::string& folder) const;

 private:
  std::string bytes_;
  std::set<std::string, std::less<>> described_;
  uint64_t scalar_count_ = 0;
  uint64_t histogram_count_ = 0;
};

/// One value of a look: a tag with its description (Markdown) and what it shows.
struct ScalarValue {
  std::string tag;
  std::string_view description;
  double value = 0;
};

/// An event file that grows while others read it. Each Append() is one write() of whole records, so that a reader sees
/// all of it or, for a moment, a record that is not complete, which TensorBoard's reader comes back for. The file is
/// open only while it is written: there may be more of them than a process may have open. Not thread-safe.
class EventLog {
 public:
  /// Makes a new file, named as EventFile::Save names them, in `folder` (made when missing), with the first record.
  /// Errors: kIo, kPermissionDenied.
  static Result<EventLog> Create(const std::string& folder, double wall_time_s);

  /// One event with these values; those that are not finite are left out, and nothing is written where none is left.
  /// An error leaves the file as it was before.
  Status Append(int64_t step, double wall_time_s, const std::vector<ScalarValue>& values);

  const std::string& path() const { return path_; }
  uint64_t byte_count() const { return byte_count_; }
  uint64_t scalar_count() const { return scalar_count_; }

 private:
  explicit EventLog(std::string path) : path_(std::move(path)) {}
  Status Write(std::string_view bytes);

  std::string path_;
  std::set<std::string, std::less<>> described_;
  uint64_t byte_count_ = 0;
  uint64_t scalar_count_ = 0;
};

/// Whether the folder holds an event file: its name has "tfevents" in it, as TensorBoard tells them.
bool HoldsEvents(const std::string& folder);

}  // namespace lockstep::tensorboard
