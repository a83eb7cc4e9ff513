#include "node/agent/host/process_sensor.h"

#include <unistd.h>

#include <map>
#include <utility>

#include "base/proc_stat.h"
#include "node/agent/host/host_text.h"
#include "node/agent/sensors/rank_label.h"
#include "node/agent/sensors/small_file.h"

namespace lockstep::agent {
const MetricSpecs& ProcessMetricSpecs() {
  static const MetricSpecs specs = {
      {"lockstep_rank_cpu_seconds_total", "counter", "job_id,rank,host",
       "CPU time of the rank's process, user and system, of all its threads."},
      {"lockstep_rank_resident_memory_bytes", "gauge", "job_id,rank,host", "Resident memory of the rank's process."},
      {"lockstep_rank_threads", "gauge", "job_id,rank,host", "Threads of the rank's process."},
      {"lockstep_rank_io_read_bytes_total", "counter", "job_id,rank,host",
       "Bytes that the rank's process had read from storage."},
      {"lockstep_rank_io_written_bytes_total", "counter", "job_id,rank,host",
       "Bytes that the rank's process had written to storage."},
  };
  return specs;
}

ProcessSensor::ProcessSensor(std::string host, FindProcesses find, std::string proc)
    : host_(std::move(host)), find_(std::move(find)), proc_(std::move(proc)) {}

std::vector<ProcessSensor::Watched> ProcessSensor::FindRanks() const {
  std::map<std::pair<std::string, std::string>, Watched> ranks;
  for (const proc::JobProcess& process : find_()) {
    const std::string job = JobLabel(process.details.job_id, process.pid);
    const std::string rank = RankLabel(process.details.rank, process.pid);
    Watched& held = ranks[{job, rank}];
    const std::pair worth(process.details.start_ticks, process.pid);
    if (held.pid != 0 && std::pair(held.start_ticks, held.pid) <= worth) continue;
    held = {process.pid, process.details.start_ticks, {{"job_id", job}, {"rank", rank}, {"host", host_}}};
  }
  std::vector<Watched> all;
  for (auto& [key, watched] : ranks) all.push_back(std::move(watched));
  return all;
}

Result<Reading> ProcessSensor::Look() {
  const std::vector<Watched> ranks = FindRanks();
  static const double kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const double kPageBytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
  MetricFamilies out(ProcessMetricSpecs());
  for (const Watched& watched : ranks) {
    SmallFiles files;
    const std::string folder = proc_ + "/" + std::to_string(watched.pid) + "/";
    const auto stat = files.Text(folder + "stat");
    const auto usage = stat ? ParseProcStat(*stat) : std::nullopt;
    if (!usage || usage->start_ticks != watched.start_ticks) continue;  // It has ended.
    const auto add = [&](const char* name, double value) { out.Add(name, watched.labels, value); };
    add("lockstep_rank_cpu_seconds_total", static_cast<double>(usage->cpu_ticks) / kTicksPerSecond);
    const auto statm = files.Text(folder + "statm");
    if (const auto pages = statm ? ParseResidentPages(*statm) : std::nullopt) {
      add("lockstep_rank_resident_memory_bytes", static_cast<double>(*pages) * kPageBytes);
    }
    add("lockstep_rank_threads", static_cast<double>(usage->thread_count));
    const auto io = files.Text(folder + "io");
    if (!io) continue;
    if (const auto bytes = ValueOfLine(*io, "read_bytes")) {
      add("lockstep_rank_io_read_bytes_total", static_cast<double>(*bytes));
    }
    if (const auto bytes = ValueOfLine(*io, "write_bytes")) {
      add("lockstep_rank_io_written_bytes_total", static_cast<double>(*bytes));
    }
  }
  return Reading{!ranks.empty(), out.Take()};
}

}  // namespace lockstep::agent
