#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ingest/nccl/log_reader.h"
#include "ingest/nccl/nccl_log.h"

namespace lockstep::ingest {
namespace {

using evidence::NcclCommunicator;
using evidence::NcclJob;
using evidence::NcclMember;
using evidence::NcclPlace;
using evidence::NcclProcess;

/// Puts one file's job into the whole: indices shift, equal processes become one.
class Merger {
 public:
  Merger() { job_.texts.emplace_back(); }

  void Add(NcclJob log) {
    const auto file_shift = static_cast<uint32_t>(job_.files.size());
    for (std::string& file : log.files) job_.files.push_back(std::move(file));
    std::vector<uint32_t> texts(log.texts.size());
    for (size_t i = 1; i < log.texts.size(); ++i) texts[i] = Intern(std::move(log.texts[i]));
    const auto shift = [&](NcclPlace& place) { place.file += file_shift; };

    std::vector<uint32_t> processes;
    for (NcclProcess& process : log.processes) {
      shift(process.version_place);
      shift(process.network_place);
      shift(process.bootstrap_place);
      shift(process.gpu_direct_place);
      for (evidence::NcclSetting& setting : process.settings) shift(setting.place);
      processes.push_back(AddProcess(std::move(process)));
    }
    for (NcclMember& member : log.members) {
      member.process = processes[member.process];
      for (NcclPlace* place : {&member.started, &member.completed, &member.destroyed, &member.aborted,
                               &member.init_timing, &member.channel_counts_place}) {
        shift(*place);
      }
      for (evidence::NcclConnection& connection : member.connections) {
        connection.detail = texts[connection.detail];
        shift(connection.place);
      }
      for (evidence::NcclOperation& operation : member.operations) {
        operation.name = texts[operation.name];
        operation.file += file_shift;
      }
      AddMember(std::move(member));
    }
    for (evidence::NcclError& error : log.errors) {
      error.process = processes[error.process];
      shift(error.place);
      job_.errors.push_back(std::move(error));
    }
    for (evidence::NcclCallResult& result : log.call_results) {
      result.process = processes[result.process];
      shift(result.place);
      job_.call_results.push_back(std::move(result));
    }
    for (const auto& [key, count] : log.tunings) job_.tunings[key] += count;
    for (const auto& [key, count] : log.kinds) job_.kinds[key] += count;
    job_.lines.nccl += log.lines.nccl;
    job_.lines.unknown += log.lines.unknown;
    job_.lines.other += log.lines.other;
    job_.lines.cut += log.lines.cut;
    for (std::string& sample : log.unknown_samples) {
      if (job_.unknown_samples.size() < kMostUnknownSamples) job_.unknown_samples.push_back(std::move(sample));
    }
  }

  NcclJob Take() { return std::move(job_); }

 private:
  uint32_t Intern(std::string text) {
    const auto [found, inserted] = texts_.try_emplace(text, static_cast<uint32_t>(job_.texts.size()));
    if (inserted) job_.texts.push_back(std::move(text));
    return found->second;
  }

  uint32_t AddProcess(NcclProcess process) {
    const auto key = std::tuple(process.host, process.pid, process.launcher_rank.value_or(-1));
    const auto [found, inserted] = processes_.try_emplace(key, static_cast<uint32_t>(job_.processes.size()));
    if (inserted) {
      job_.processes.push_back(std::move(process));
      return found->second;
    }
    NcclProcess& known = job_.processes[found->second];
    if (known.version.empty())
      std::tie(known.version, known.version_place) = std::tie(process.version, process.version_place);
    if (known.driver_version.empty()) known.driver_version = process.driver_version;
    if (!process.network.empty())
      std::tie(known.network, known.network_place) = std::tie(process.network, process.network_place);
    if (known.bootstrap.name.empty())
      std::tie(known.bootstrap, known.bootstrap_place) = std::tie(process.bootstrap, process.bootstrap_place);
    if (known.sockets.empty()) known.sockets = process.sockets;
    if (known.adapters.empty()) known.adapters = process.adapters;
    known.no_adapter_found |= process.no_adapter_found;
    if (!known.gpu_direct)
      std::tie(known.gpu_direct, known.gpu_direct_place) = std::tie(process.gpu_direct, process.gpu_direct_place);
    if (!known.nvls) known.nvls = process.nvls;
    for (evidence::NcclSetting& setting : process.settings) {
      const auto same = [&](const evidence::NcclSetting& other) {
        return other.name == setting.name && other.value == setting.value;
      };
      if (std::none_of(known.settings.begin(), known.settings.end(), same))
        known.settings.push_back(std::move(setting));
    }
    for (std::string& plugin : process.plugins) {
      if (std::find(known.plugins.begin(), known.plugins.end(), plugin) == known.plugins.end())
        known.plugins.push_back(std::move(plugin));
    }
    known.affinity.merge(process.affinity);
    known.ended |= process.ended;
    known.line_count += process.line_count;
    return found->second;
  }

  /// One process may write to two files, as where output and NCCL_DEBUG_FILE are both kept.
  void AddMember(NcclMember member) {
    if (member.pointer != 0 && !member.id.empty()) {
      const auto key = std::tuple(member.process, member.pointer, member.id, member.rank);
      const auto [found, inserted] = members_.try_emplace(key, job_.members.size());
      if (!inserted) {
        NcclMember& known = job_.members[found->second];
        if (!known.started.seen()) known.started = member.started;
        if (!known.completed.seen()) known.completed = member.completed;
        if (!known.destroyed.seen()) known.destroyed = member.destroyed;
        if (!known.aborted.seen()) known.aborted = member.aborted;
        if (known.operations.empty()) known.operations = std::move(member.operations);
        if (known.connections.empty()) known.connections = std::move(member.connections);
        if (known.rings.empty()) known.rings = std::move(member.rings);
        if (known.trees.empty()) known.trees = std::move(member.trees);
        return;
      }
    }
    job_.members.push_back(std::move(member));
  }

  NcclJob job_;
  std::map<std::string, uint32_t> texts_;
  std::map<std::tuple<std::string, int64_t, int32_t>, uint32_t> processes_;
  std::map<std::tuple<uint32_t, uint64_t, std::string, int32_t>, size_t> members_;
};

/// Joins members to communicators.
void JoinCommunicators(NcclJob& job) {
  std::map<std::pair<uint32_t, uint64_t>, const NcclMember*> by_pointer;
  for (const NcclMember& member : job.members) {
    if (member.pointer != 0) by_pointer.try_emplace({member.process, member.pointer}, &member);
  }
  // A split prints no id since 2.24: parent, number and colour are as good.
  const auto id_of = [&](const NcclMember& member) -> std::string {
    if (!member.id.empty() || member.parent == 0 || !member.split_color) return member.id;
    const auto parent = by_pointer.find({member.process, member.parent});
    if (parent == by_pointer.end() || parent->second->id.empty()) return "";
    return parent->second->id + " split " + std::to_string(member.split_count.value_or(0)) + " color " +
           std::to_string(*member.split_color);
  };

  // Up to 2.16 only the end of the creation gives the size: a process that has not finished gets the size of the
  // others.
  std::set<int32_t> sizes;
  for (const NcclMember& member : job.members) {
    if (member.rank_count > 0) sizes.insert(member.rank_count);
    for (const auto& [channel, ring] : member.rings) sizes.insert(static_cast<int32_t>(ring.size()));
  }
  for (NcclMember& member : job.members) {
    if (sizes.size() == 1 && member.rank_count < 0 && member.rank >= 0 && member.rank < *sizes.begin() &&
        !member.trees.empty()) {
      member.rank_count = *sizes.begin();
    }
  }

  std::map<std::pair<int32_t, std::string>, size_t> by_id;
  std::map<std::tuple<uint32_t, int32_t, int32_t>, size_t> seen_of_size;  // Process, rank, size -> so many before.
  std::map<std::tuple<int32_t, size_t, size_t>, size_t> by_order;         // Size, order, which -> communicator.
  std::map<std::tuple<int32_t, size_t, int32_t>, size_t> taken;           // Size, order, rank -> places taken.
  const auto create = [&](const NcclMember& member, std::string id) {
    NcclCommunicator& communicator = job.communicators.emplace_back();
    communicator.id = std::move(id);
    communicator.rank_count = member.rank_count;
  };

  std::vector<uint32_t> order(job.members.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key_of = [&](uint32_t idx) {
    const NcclProcess& process = job.processes[job.members[idx].process];
    return std::tuple(process.host, process.pid, process.launcher_rank.value_or(-1), idx);
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key_of(a) < key_of(b); });

  for (const uint32_t idx : order) {
    NcclMember& member = job.members[idx];
    const NcclProcess& process = job.processes[member.process];
    if (member.rank < 0 && member.rank_count > 1 && process.launcher_rank.value_or(INT32_MAX) < member.rank_count) {
      member.rank = *process.launcher_rank;  // Only COLL was logged; right for the job's own communicator.
    }
    if (member.rank_count <= 0) continue;
    size_t communicator = 0;
    if (std::string id = id_of(member); !id.empty()) {
      const auto [found, inserted] = by_id.try_emplace({member.rank_count, id}, job.communicators.size());
      if (inserted) create(member, std::move(id));
      communicator = found->second;
    } else {
      // The nth of its size in its process; where other members of that rank have the place, the next like it.
      const size_t nth = seen_of_size[{member.process, member.rank, member.rank_count}]++;
      const size_t which = member.rank < 0 ? 0 : taken[{member.rank_count, nth, member.rank}]++;
      const auto [found, inserted] = by_order.try_emplace({member.rank_count, nth, which}, job.communicators.size());
      if (inserted) create(member, "");
      communicator = found->second;
    }
    job.communicators[communicator].members.push_back(idx);
  }
  for (NcclCommunicator& communicator : job.communicators) {
    std::stable_sort(communicator.members.begin(), communicator.members.end(),
                     [&](uint32_t a, uint32_t b) { return job.members[a].rank < job.members[b].rank; });
  }
  std::stable_sort(job.communicators.begin(), job.communicators.end(), [](const auto& a, const auto& b) {
    return std::tuple(-a.rank_count, a.id) < std::tuple(-b.rank_count, b.id);
  });
}

/// A process's rank in the job: in the one communicator that is larger than all others, else the launcher's.
void TellRanks(NcclJob& job) {
  for (NcclProcess& process : job.processes) process.rank = process.launcher_rank;
  if (job.communicators.empty()) return;
  const NcclCommunicator& largest = job.communicators.front();
  // Others of its size have the same processes at the same places, as when a job makes its communicator twice.
  const bool is_one = std::all_of(job.communicators.begin(), job.communicators.end(), [&](const auto& other) {
    if (other.rank_count < largest.rank_count) return true;
    return std::equal(other.members.begin(), other.members.end(), largest.members.begin(), largest.members.end(),
                      [&](uint32_t a, uint32_t b) {
                        return job.members[a].process == job.members[b].process &&
                               job.members[a].rank == job.members[b].rank;
                      });
  });
  if (!is_one) return;
  std::vector<bool> told(job.processes.size(), false);
  for (const uint32_t idx : largest.members) {
    const NcclMember& member = job.members[idx];
    // A process that drives several devices has several ranks; its first stands for it.
    if (member.rank < 0 || told[member.process]) continue;
    told[member.process] = true;
    job.processes[member.process].rank = member.rank;
  }
}

}  // namespace

NcclJob MergeNcclLogs(std::vector<NcclJob> logs) {
  std::stable_sort(logs.begin(), logs.end(), [](const NcclJob& a, const NcclJob& b) { return a.files < b.files; });
  Merger merger;
  for (NcclJob& log : logs) merger.Add(std::move(log));
  NcclJob job = merger.Take();
  JoinCommunicators(job);
  TellRanks(job);
  for (NcclProcess& process : job.processes) {
    std::sort(process.settings.begin(), process.settings.end(),
              [](const auto& a, const auto& b) { return std::tie(a.name, a.value) < std::tie(b.name, b.value); });
  }
  return job;
}

}  // namespace lockstep::ingest
