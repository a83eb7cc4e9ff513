#include "ingest/kernel_profile/kernel_profile_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/subprocess.h"
#include "ingest/bytes/byte_source.h"
#include "ingest/bytes/input_files.h"
#include "ingest/bytes/trace_files.h"
#include "ingest/kernel_profile/ncu_csv.h"
#include "ingest/kernel_profile/stats_csv.h"

namespace lockstep::ingest {
namespace {

namespace fs = std::filesystem;
using model::KernelProfiles;
using model::Severity;

constexpr size_t kFileLimit = size_t{1} << 30;
constexpr size_t kHead = 64;
constexpr size_t kTableHead = size_t{256} << 10;  // Lines that a program printed may come before.
constexpr int64_t kNcuDeadlineNs = 600'000'000'000;
constexpr std::string_view kNcuReport("NVR\0", 4);

bool MayBeTable(const fs::path& path) {
  std::string name = path.filename().string();
  for (const char* compression : {".gz", ".zst"}) {
    if (name.ends_with(compression)) name.resize(name.size() - std::string_view(compression).size());
  }
  for (const char* ending : {".csv", ".tsv", ".txt", ".log", ".ncu-rep", ".ncu-repz"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

/// "a/esmm2.details.csv" -> "a/esmm2": two pages of one report are of one name but for the page's.
std::string ReportOf(const std::string& file) {
  for (const char* page : {".raw.", ".details.", "_raw.", "_details."}) {
    if (const size_t at = file.rfind(page); at != std::string::npos) return file.substr(0, at);
  }
  return file;
}

template <typename T>
void FillFrom(const std::optional<T>& other, std::optional<T>* field) {
  if (!*field) *field = other;
}

/// A launch that stands on two pages of its report becomes one: the raw page has the metrics, the other the rules.
void JoinPages(std::vector<model::KernelLaunch>* launches) {
  std::map<std::tuple<std::string, uint64_t, std::string>, size_t> place;
  std::vector<model::KernelLaunch> joined;
  for (model::KernelLaunch& launch : *launches) {
    const std::string report = ReportOf(launch.file);
    const auto [slot, is_new] = place.emplace(std::tuple(report, launch.id, launch.kernel), joined.size());
    if (is_new || report == launch.file || joined[slot->second].file == launch.file) {
      joined.push_back(std::move(launch));
      continue;
    }
    model::KernelLaunch& first = joined[slot->second];
    if (first.missing_metrics.size() > launch.missing_metrics.size())
      std::swap(first, launch);  // the raw page is exact
    FillFrom(launch.duration_ns, &first.duration_ns);
    FillFrom(launch.compute_ratio, &first.compute_ratio);
    FillFrom(launch.memory_ratio, &first.memory_ratio);
    FillFrom(launch.dram_ratio, &first.dram_ratio);
    FillFrom(launch.occupancy_ratio, &first.occupancy_ratio);
    FillFrom(launch.dram_bytes_per_s, &first.dram_bytes_per_s);
    FillFrom(launch.dram_peak_bytes_per_s, &first.dram_peak_bytes_per_s);
    if (first.rules.empty()) first.rules = std::move(launch.rules);
    first.measured_nothing = first.measured_nothing && launch.measured_nothing;
  }
  *launches = std::move(joined);
}

class Reader {
 public:
  explicit Reader(KernelProfiles* profiles) : profiles_(*profiles) {}

  void Read(const InputFile& file) {
    const std::optional<int32_t> rank = ReadNameFacts(file.path).rank;
    Result<std::string> text = ReadText(file.path, rank);
    if (!text) {
      Note("kernel_profile_unreadable", Severity::kError, file.path, rank, text.error().message,
           "the other files were used");
      return;
    }
    if (text->substr(0, kNcuReport.size()) == kNcuReport) {
      text = ConvertReport(file.path, rank);
      if (!text) return;
    }
    if (LooksLikeNcuCsv(*text)) {
      ReadNcuCsv(*text, file.path, rank, &profiles_);
      ++table_count_;
    } else if (LooksLikeStatsSum(*text)) {
      ReadStatsSum(*text, file.path, rank, &profiles_);
      ++table_count_;
    } else if (file.named) {
      Note("kernel_profile_unreadable", Severity::kError, file.path, rank,
           "holds no table of ncu --csv and no summary of nsys stats",
           "ncu --import REPORT --csv --page raw, or nsys stats --format csv, writes one");
    }
  }

  /// As Read, for a file that need not be a table. Out: whether it is one.
  bool ReadTable(const InputFile& file) {
    const std::optional<int32_t> rank = ReadNameFacts(file.path).rank;
    Result<std::string> text = ReadHead(file.path);
    if (!text) return false;
    if (text->starts_with(kNcuReport)) {
      text = ImportReport(file.path);
      if (!text || !LooksLikeNcuCsv(*text)) return false;
    } else {
      if (!LooksLikeNcuCsv(*text) && !LooksLikeStatsSum(*text)) return false;
      if (text->size() == kTableHead) text = ReadText(file.path, rank);
      if (!text) return false;
    }
    if (LooksLikeNcuCsv(*text)) {
      ReadNcuCsv(*text, file.path, rank, &profiles_);
    } else {
      ReadStatsSum(*text, file.path, rank, &profiles_);
    }
    ++table_count_;
    return true;
  }

  size_t table_count() const { return table_count_; }

 private:
  void Note(const char* code, Severity severity, const std::string& file, std::optional<int32_t> rank,
            std::string message, const char* advice) {
    profiles_.ledger.Add({.code = code,
                          .severity = severity,
                          .source = file,
                          .rank = rank,
                          .message = std::move(message),
                          .advice = advice});
  }

  static Result<std::string> ReadHead(const std::string& path) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenFile(path, {}));
    std::string text(kTableHead, '\0');
    ASSIGN_OR_RETURN(const size_t read, source->Read(std::span<char>(text)));
    text.resize(read);
    return text;
  }

  /// Of a report of ncu's own only the beginning.
  Result<std::string> ReadText(const std::string& path, std::optional<int32_t> rank) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenFile(path, {}));
    std::string text;
    size_t step = kHead;
    while (true) {
      const size_t before = text.size();
      text.resize(before + step);
      Result<size_t> read = source->Read(std::span<char>(text.data() + before, step));
      text.resize(before + read.value_or(0));
      if (!read) {
        if (before == 0) return std::move(read).error();
        Note("kernel_profile_cut", Severity::kWarning, path, rank, read.error().message, "what came before was read");
        return text;
      }
      if (*read == 0 || std::string_view(text).substr(0, kNcuReport.size()) == kNcuReport) return text;
      if (text.size() >= kFileLimit) {
        Note("kernel_profile_cut", Severity::kWarning, path, rank, "only its first GiB was read",
             "split the table, or let ncu select launches");
        return text;
      }
      step = size_t{4} << 20;
    }
  }

  /// The report's table, printed by the machine's ncu. Its error says why not.
  static Result<std::string> ImportReport(const std::string& path) {
    const CommandOptions options{.timeout_ns = kNcuDeadlineNs, .output_bytes_limit = kFileLimit};
    Result<CommandOutput> done = RunCommand({"ncu", "--import", path, "--csv", "--page", "raw"}, options);
    if (done && done->exit_status == 0) return std::move(done->output);
    std::string reason =
        done ? fmt::format("ncu could not read it (exit status {}): {}", done->exit_status,
                           (done->error.empty() ? done->output : done->error).substr(0, 300))
             : fmt::format("a report of Nsight Compute's, which only ncu reads: {}", done.error().message);
    return Error{.code = ErrorCode::kNotFound, .message = std::move(reason), .file = path};
  }

  Result<std::string> ConvertReport(const std::string& path, std::optional<int32_t> rank) {
    Result<std::string> text = ImportReport(path);
    if (text) return text;
    const std::string reason = text.error().message;
    Note("no_ncu", Severity::kError, path, rank, reason,
         "on a machine with an ncu at least as new as the one that wrote it: ncu --import REPORT --csv --page raw > "
         "REPORT.csv");
    return text;
  }

  KernelProfiles& profiles_;
  size_t table_count_ = 0;
};

}  // namespace

Result<KernelProfiles> ReadKernelProfiles(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const std::vector<InputFile> files, FindInputFiles(paths, MayBeTable));
  KernelProfiles profiles;
  Reader reader(&profiles);
  for (const InputFile& file : files) reader.Read(file);
  JoinPages(&profiles.launches);
  if (reader.table_count() > 0) return profiles;
  std::string why;
  for (const model::LedgerEntry& entry : profiles.ledger.entries()) {
    why += fmt::format("\n  {}: {}\n    {}", entry.source, entry.message, entry.advice);
  }
  return Error{.code = ErrorCode::kNotFound,
               .message = "no table of ncu --csv and no summary of nsys stats in what was given" + why};
}

std::shared_ptr<const KernelProfiles> ReadKernelTables(const std::vector<InputFile>& files,
                                                       std::set<std::string>* taken) {
  const auto profiles = std::make_shared<KernelProfiles>();
  Reader reader(profiles.get());
  std::map<fs::path, bool> read;  // One that is named and lies in a folder that is named counts once.
  for (const InputFile& file : files) {
    std::error_code unresolved;
    const auto [known, is_new] = read.try_emplace(fs::canonical(file.path, unresolved), false);
    if (is_new) known->second = reader.ReadTable(file);
    if (known->second) taken->insert(file.path);
  }
  if (reader.table_count() == 0) return nullptr;
  JoinPages(&profiles->launches);
  return profiles;
}

}  // namespace lockstep::ingest
