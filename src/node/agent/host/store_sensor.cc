#include "node/agent/host/store_sensor.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace lockstep::agent {

const MetricSpecs& StoreMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_store_free_bytes", "gauge", "host", "What users can still write where the folder for traces is."},
      {"lockstep_store_disk_bytes", "gauge", "host", "Size of that file system."},
  };
  return specs;
}

Result<Reading> StoreSensor::Look() {
  struct statvfs space = {};
  std::filesystem::path folder = folder_;
  while (::statvfs(folder.c_str(), &space) != 0) {
    const int error = errno;
    if (error != ENOENT || !folder.has_relative_path()) {
      return Error{ErrorCode::kIo, std::strerror(error), folder.string()};
    }
    folder = folder.parent_path();
  }
  MetricFamilies out(StoreMetricSpecs());
  const auto add = [&](const char* name, uint64_t blocks) {
    out.Add(name, {{"host", host_}}, static_cast<double>(blocks) * static_cast<double>(space.f_frsize));
  };
  add("lockstep_store_free_bytes", space.f_bavail);
  add("lockstep_store_disk_bytes", space.f_blocks);
  return Reading{true, out.Take()};
}

}  // namespace lockstep::agent
