#include "inside/launch/outcome.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/timespec.h"

namespace lockstep::launch {
namespace {

namespace fs = std::filesystem;

// Files "STEM.ENDING" and "STEM.1.ENDING" (one of several ranges) that were written since then.
std::vector<std::string> Written(const fs::path& output, std::string_view ending, int64_t start_unix_ns) {
  std::vector<std::string> names;
  std::error_code error;
  const std::string stem = output.filename().string();
  for (const auto& entry : fs::directory_iterator(output.has_parent_path() ? output.parent_path() : ".", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(stem) || !name.ends_with(ending) || name.size() < stem.size() + ending.size()) continue;
    const std::string between = name.substr(stem.size(), name.size() - stem.size() - ending.size());
    if (!between.empty() && (between[0] != '.' || between.find_first_not_of("0123456789", 1) != std::string::npos))
      continue;
    struct stat status = {};
    if (::stat(entry.path().c_str(), &status) != 0) continue;
    // Network file systems stamp by their server's clock.
    constexpr int64_t kClockMargin_ns = 60'000'000'000;
    if (Nanoseconds(status.st_mtim) + kClockMargin_ns < start_unix_ns) continue;
    names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string RangeNeverOpened(const NsysRequest& request) {
  if (request.range == CaptureRange::kNvtx) {
    return fmt::format(
        "no report was written: no NVTX range '{0}' was opened; is the name exact (name@domain; a prefix does not "
        "match), and does this rank reach it? nsys does not report this as an error",
        request.nvtx_range);
  }
  return "no report was written: the program never called cudaProfilerStart; does this rank reach that step, and is "
         "torch.cuda.profiler.start() (or the framework's flag) on? nsys does not report this as an error";
}

}  // namespace

Outcome FindNsysOutcome(const std::string& output, const NsysRequest& request, const std::string& tool,
                        int64_t start_unix_ns) {
  Outcome outcome;
  outcome.files = Written(output, ".nsys-rep", start_unix_ns);
  for (std::string& name : Written(output, ".sqlite", start_unix_ns)) outcome.files.push_back(std::move(name));
  const std::vector<std::string> raw = Written(output, ".qdstrm", start_unix_ns);
  const bool has_report =
      std::ranges::any_of(outcome.files, [](const std::string& name) { return name.ends_with(".nsys-rep"); });
  if (!raw.empty() && !has_report) {
    outcome.problems.push_back(
        fmt::format("only the raw recording {0} was written: this node's nsys ({1}) has no host part (QdstrmImporter). "
                    "Where the whole package of the same version is: QdstrmImporter -i {0}",
                    fmt::join(raw, ", "), tool));
    outcome.files.insert(outcome.files.end(), raw.begin(), raw.end());
  } else if (!has_report && request.range != CaptureRange::kWhole) {
    outcome.problems.push_back(RangeNeverOpened(request));
  } else if (!has_report && request.delay_s) {
    outcome.problems.push_back(fmt::format(
        "no report was written: the job may have ended before its {} s of delay were over", *request.delay_s));
  } else if (!has_report) {
    outcome.problems.push_back(
        "no report was written: see nsys's message above; a report that could not be moved is in TMPDIR as "
        "nsys-report-*.nsys-rep or .qdstrm");
  }
  if (has_report && request.exports_sqlite &&
      std::ranges::none_of(outcome.files, [](const std::string& name) { return name.ends_with(".sqlite"); })) {
    outcome.problems.push_back(
        "the report was not exported: SQLite needs file locks, which network file systems may not give; export it "
        "where there is a local disk: nsys export -t sqlite FILE");
  }
  return outcome;
}

Outcome FindNcuOutcome(const std::string& output, bool kernels, int64_t start_unix_ns) {
  Outcome outcome;
  outcome.files = Written(output, ".ncu-rep", start_unix_ns);
  for (std::string& name : Written(output, ".ncu-repz", start_unix_ns)) outcome.files.push_back(std::move(name));
  if (outcome.files.empty()) {
    outcome.problems.push_back(
        kernels ? "no report was written: none of the kernels was launched in what was profiled (names change with the "
                  "compiler's version; --skip passes over the first launches), or ncu was refused the counters "
                  "(ERR_NVGPUCTRPERM), which it says above"
                : "no report was written: no kernel was launched, or ncu was refused the counters (ERR_NVGPUCTRPERM), "
                  "which it says above");
  }
  return outcome;
}

}  // namespace lockstep::launch
