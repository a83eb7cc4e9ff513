#include "ingest/job/file_ingest.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "ingest/bytes/prefetch_source.h"
#include "ingest/job/any_trace.h"
#include "ingest/job/name_merge.h"

namespace lockstep::ingest {
namespace {

// Files that one worker reads one after another: mostly one; the members of a compressed tar, in the archive's order.
std::vector<std::vector<size_t>> GroupIntoJobs(const std::vector<TraceFile>& files) {
  std::vector<std::vector<size_t>> jobs;
  std::map<std::string, size_t> job_of_archive;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].in_order_only) {
      const auto [found, is_new] = job_of_archive.try_emplace(files[i].path, jobs.size());
      if (!is_new) {
        jobs[found->second].push_back(i);
        continue;
      }
    }
    jobs.push_back({i});
  }
  for (std::vector<size_t>& job : jobs) {
    std::sort(job.begin(), job.end(), [&](size_t a, size_t b) { return files[a].member_idx < files[b].member_idx; });
  }
  return jobs;
}

class FileIngest {
 public:
  FileIngest(const std::vector<TraceFile>& files, const IngestOptions& options, ProgressMeter* meter,
             model::NameTable* names)
      : files_(files),
        options_(options),
        meter_(meter),
        jobs_(GroupIntoJobs(files)),
        outcomes_(files.size()),
        finished_(files.size(), false),
        names_(names) {}

  std::vector<FileOutcome> Run(uint32_t thread_count) {
    const auto worker_count = std::min<size_t>(std::max<uint32_t>(thread_count, 1), jobs_.size());
    spare_threads_ = static_cast<int64_t>(thread_count) - static_cast<int64_t>(worker_count);
    {
      std::vector<std::jthread> workers;
      for (size_t i = 1; i < worker_count; ++i) workers.emplace_back([this] { Work(); });
      Work();
    }
    return std::move(outcomes_);
  }

 private:
  void Work() {
    TraceOpener opener(options_.limits);
    for (size_t job = next_job_++; job < jobs_.size(); job = next_job_++) {
      for (const size_t file_idx : jobs_[job]) {
        outcomes_[file_idx] = ReadFile(opener, files_[file_idx]);
        Finish(file_idx);
      }
    }
  }

  FileOutcome ReadFile(TraceOpener& opener, const TraceFile& file) {
    FileOutcome outcome;
    bool prefetch = false;
    try {
      auto opened = opener.Open(file);
      if (!opened) {
        outcome.source_failed = true;
        outcome.error = std::move(opened).error();
        meter_->AddBytes(file.size_bytes, 0);
      } else {
        std::unique_ptr<ByteSource> source = std::move(*opened);
        const bool is_plain = source->compression() == Compression::kNone && !file.in_archive;
        // Reading plain bytes ahead would cost the copy that it saves.
        prefetch = source->compression() != Compression::kNone && TakeSpareThread();
        if (prefetch) source = Prefetch(std::move(source));
        MeteredSource metered(std::move(source), file.size_bytes, meter_);
        TraceReaderOptions reader = options_.reader;
        reader.on_events = [this](uint64_t event_count) { meter_->AddEvents(event_count); };
        reader.cancelled = [this] { return meter_->cancelled(); };
        auto contents = ReadAnyTrace(metered, is_plain ? file.path : std::string(), file.DisplayName(), reader);
        outcome.source_failed = metered.failed();
        if (contents) {
          outcome.contents = std::move(*contents);
        } else {
          outcome.error = std::move(contents).error();
        }
      }
    } catch (const std::bad_alloc&) {
      outcome.contents.clear();
      outcome.source_failed = true;
      outcome.error = Error{.code = ErrorCode::kLimitExceeded,
                            .message = "does not fit into memory; analyse fewer ranks at a time"};
    } catch (const std::exception& failure) {
      outcome.contents.clear();
      outcome.source_failed = true;
      outcome.error = Error{.code = ErrorCode::kIo, .message = std::string("cannot be read: ") + failure.what()};
    }
    if (prefetch) ++spare_threads_;
    meter_->FinishFile();
    return outcome;
  }

  bool TakeSpareThread() {
    int64_t spare = spare_threads_;
    while (spare > 0 && !spare_threads_.compare_exchange_weak(spare, spare - 1)) {
    }
    return spare > 0;
  }

  // Merges the names of this file and of those that waited for it. Interning is in order and under the lock; renaming
  // columns is the long part and is not.
  void Finish(size_t file_idx) {
    std::vector<std::pair<size_t, std::vector<NameId>>> merged;
    {
      const MutexLock lock(mutex_);
      finished_[file_idx] = true;
      for (; next_merge_ < finished_.size() && finished_[next_merge_]; ++next_merge_) {
        std::vector<TraceContent>& contents = outcomes_[next_merge_].contents;
        // A file with several ranks has one table for all.
        if (!contents.empty()) {
          merged.emplace_back(next_merge_, MergeNames(contents.front().names, names_));
          contents.front().names = model::NameTable();
        }
        outcomes_[next_merge_].name_count = names_->size();
      }
    }
    for (const auto& [idx, new_ids] : merged) {
      for (TraceContent& content : outcomes_[idx].contents) RenameIds(new_ids, &content.trace);
    }
  }

  // Constant after construction.
  const std::vector<TraceFile>& files_;
  const IngestOptions& options_;
  ProgressMeter* const meter_;
  const std::vector<std::vector<size_t>> jobs_;

  std::atomic<size_t> next_job_ = 0;
  std::atomic<int64_t> spare_threads_ = 0;

  // An outcome belongs to the thread that reads the file until it is marked finished, then to the one that merges it.
  std::vector<FileOutcome> outcomes_;
  Mutex mutex_;
  std::vector<bool> finished_ LOCKSTEP_GUARDED_BY(mutex_);
  size_t next_merge_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  model::NameTable* const names_ LOCKSTEP_PT_GUARDED_BY(mutex_);
};

}  // namespace

std::vector<FileOutcome> IngestFiles(const std::vector<TraceFile>& files, const IngestOptions& options,
                                     uint32_t thread_count, ProgressMeter* meter, model::NameTable* names) {
  return FileIngest(files, options, meter, names).Run(thread_count);
}

}  // namespace lockstep::ingest
