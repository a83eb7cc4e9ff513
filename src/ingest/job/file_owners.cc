#include "ingest/job/file_owners.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace lockstep::ingest {
namespace {

bool IsSpanTrace(const TraceFile& file) {
  const std::string name = file.DisplayName();
  return name.ends_with(".spans") || name.find(".spans.") != std::string::npos;
}

/// The processes that see both; absent: all.
std::optional<std::vector<uint32_t>> Common(const std::optional<std::vector<uint32_t>>& a,
                                            const std::optional<std::vector<uint32_t>>& b) {
  if (!a) return b;
  if (!b) return a;
  std::vector<uint32_t> common;
  std::set_intersection(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(common));
  return common;
}

}  // namespace

std::vector<SeenFile> UniteFiles(const std::vector<TraceFile>& root,
                                 const std::vector<std::vector<TraceFile>>& differing,
                                 const std::vector<bool>& differs) {
  std::vector<SeenFile> files;
  for (const TraceFile& file : root) files.push_back({file});
  if (std::none_of(differs.begin(), differs.end(), [](bool d) { return d; })) return files;

  const auto key = [](const TraceFile& file) {
    return std::tuple(file.path, file.member, file.member_idx, file.size_bytes, file.identity);
  };
  std::map<decltype(key(files[0].file)), size_t> known;
  for (uint32_t i = 0; i < files.size(); ++i) known.emplace(key(files[i].file), i);
  for (uint32_t process = 0; process < differs.size(); ++process) {
    const std::vector<TraceFile>& own = differs[process] ? differing[process] : root;
    for (uint32_t i = 0; i < own.size(); ++i) {
      const auto [found, is_new] = known.emplace(key(own[i]), files.size());
      if (is_new) files.push_back({own[i]});
      files[found->second].seen_by.emplace_back(process, i);
    }
  }
  std::stable_sort(files.begin(), files.end(),
                   [](const SeenFile& a, const SeenFile& b) { return InOrderOfName(a.file, b.file); });
  return files;
}

std::vector<std::pair<uint32_t, uint32_t>> ChooseReaders(const std::vector<SeenFile>& files, size_t process_count) {
  struct Job {
    std::vector<size_t> files;
    uint64_t bytes = 0;
    std::optional<std::vector<uint32_t>> seen_by;  ///< Absent: by all.
  };
  std::set<int32_t> ranks_with_spans;
  for (const SeenFile& seen : files) {
    if (seen.file.facts.rank && IsSpanTrace(seen.file)) ranks_with_spans.insert(*seen.file.facts.rank);
  }
  std::vector<Job> jobs;
  std::map<std::tuple<std::string, uint64_t, FileIdentity>, size_t> job_of_archive;
  std::map<int32_t, size_t> job_of_rank;
  for (size_t i = 0; i < files.size(); ++i) {
    const TraceFile& file = files[i].file;
    std::optional<std::vector<uint32_t>> seen_by;
    if (!files[i].seen_by.empty()) {
      seen_by.emplace();
      for (const auto& seen : files[i].seen_by) seen_by->push_back(seen.first);
    }
    size_t job = jobs.size();
    if (file.in_order_only) {
      // A process that sees one member of an archive sees all of them.
      job = job_of_archive.try_emplace({file.path, 0, file.identity}, job).first->second;
    } else if (file.facts.rank && ranks_with_spans.contains(*file.facts.rank)) {
      const size_t of_rank = job_of_rank.try_emplace(*file.facts.rank, job).first->second;
      if (of_rank < jobs.size()) {
        const auto common = Common(jobs[of_rank].seen_by, seen_by);
        if (!common || !common->empty()) {
          job = of_rank;
          seen_by = common;
        }
      }
    }
    if (job == jobs.size()) jobs.emplace_back();
    jobs[job].files.push_back(i);
    jobs[job].bytes += file.size_bytes;
    jobs[job].seen_by = std::move(seen_by);
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.bytes > b.bytes; });

  std::vector<uint64_t> load(process_count, 0);
  std::vector<std::pair<uint32_t, uint32_t>> readers(files.size());
  std::vector<uint32_t> everybody(process_count);
  std::iota(everybody.begin(), everybody.end(), 0u);
  for (const Job& job : jobs) {
    const std::vector<uint32_t>& of = job.seen_by ? *job.seen_by : everybody;
    const uint32_t reader =
        *std::min_element(of.begin(), of.end(), [&](uint32_t a, uint32_t b) { return load[a] < load[b]; });
    load[reader] += job.bytes + 1;
    for (const size_t i : job.files) {
      uint32_t index = static_cast<uint32_t>(i);
      for (const auto& [process, own_index] : files[i].seen_by) {
        if (process == reader) index = own_index;
      }
      readers[i] = {reader, index};
    }
  }
  return readers;
}

}  // namespace lockstep::ingest
