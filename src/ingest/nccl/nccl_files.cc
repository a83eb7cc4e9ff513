#include "ingest/nccl/nccl_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <tuple>

#include "ingest/bytes/byte_source.h"
#include "ingest/bytes/input_files.h"
#include "ingest/nccl/nccl_log.h"
#include "ingest/nccl/problems.h"
#include "ingest/nccl/ras_problems.h"
#include "ingest/nccl/ras_report.h"
#include "ingest/nccl/topology.h"
#include "ingest/nccl/words.h"

namespace lockstep::ingest {
namespace {

namespace fs = std::filesystem;
using evidence::NcclEvidence;

constexpr uint64_t kFileLimit = uint64_t{1} << 30;

/// By path, each once.
Result<std::vector<InputFile>> FindFiles(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(std::vector<InputFile> files, FindInputFiles(paths, [](const fs::path&) { return true; }));
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return std::tuple(a.path, !a.named) < std::tuple(b.path, !b.named); });
  files.erase(std::unique(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path == b.path; }),
              files.end());
  return files;
}

struct FileText {
  std::string text;
  std::string cut;  ///< Why the rest is not here; "" = it is whole.
};

Result<FileText> ReadText(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> source, OpenFile(path, {}));
  FileText file;
  constexpr size_t kStep = size_t{4} << 20;
  while (true) {
    const size_t before = file.text.size();
    if (before >= kFileLimit) {
      file.cut = "only its first GiB was read";
      return file;
    }
    file.text.resize(before + kStep);
    Result<size_t> read = source->Read(std::span<char>(file.text.data() + before, kStep));
    if (!read) {
      file.text.resize(before);
      if (before == 0) return std::move(read).error();
      file.cut = read.error().ToString() + "; what came before was read";
      return file;
    }
    file.text.resize(before + *read);
    if (*read == 0) return file;
  }
}

/// The rank in "rank3.log", "log_rank_12.txt"; a pid, as NCCL_DEBUG_FILE's names end in, is none.
std::optional<int32_t> RankOfName(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const size_t at = name.rfind("rank");
  if (at == std::string::npos) return {};
  Words words(std::string_view(name).substr(at + 4));
  for (const char* separator : {"_", "-", "."}) {
    if (words.Skip(separator)) break;
  }
  if (words.empty() || std::isdigit(static_cast<unsigned char>(words.rest().front())) == 0) return {};
  return ToInt32(words.TakeNumber());
}

}  // namespace

Result<NcclEvidence> ReadNcclFiles(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(const std::vector<InputFile> files, FindFiles(paths));
  NcclEvidence evidence;
  std::vector<evidence::NcclJob> logs;
  const auto add_problem = [&](const std::string& file, std::string message, bool skipped) {
    evidence.problems.push_back({.file = file, .rank = {}, .message = std::move(message), .skipped = skipped});
  };
  for (const InputFile& file : files) {
    Result<FileText> read = ReadText(file.path);
    if (!read) {
      add_problem(file.path, read.error().message, true);
      continue;
    }
    const std::string& text = read->text;
    if (!read->cut.empty()) add_problem(file.path, read->cut, false);
    if (LooksLikeNcclTopology(text)) {
      Result<evidence::NcclTopology> topology = ReadNcclTopology(text, file.path);
      if (topology) {
        evidence.topologies.push_back(std::move(*topology));
      } else {
        add_problem(file.path, topology.error().message, true);
      }
    } else if (LooksLikeNcclGraphs(text)) {
      Result<evidence::NcclGraphs> graphs = ReadNcclGraphs(text, file.path);
      if (graphs) {
        evidence.graphs.push_back(std::move(*graphs));
      } else {
        add_problem(file.path, graphs.error().message, true);
      }
    } else if (LooksLikeRasReport(text)) {
      Result<evidence::RasReport> report = ReadRasReport(text);
      if (report) {
        report->source = file.path;
        evidence.ras.push_back(std::move(*report));
      } else {
        add_problem(file.path, report.error().message, true);
      }
    } else {
      evidence::NcclJob log = ReadNcclLog(text, file.path, RankOfName(file.path));
      if (log.lines.nccl + log.lines.unknown > 0) {
        logs.push_back(std::move(log));
      } else if (file.named) {
        add_problem(file.path, "has no line of NCCL's, no topology and no answer of RAS", true);
      } else {
        evidence.other_files.push_back(file.path);
      }
    }
  }
  if (logs.empty() && evidence.topologies.empty() && evidence.graphs.empty() && evidence.ras.empty()) {
    return Error{.code = ErrorCode::kNotFound,
                 .message =
                     "no output of NCCL found; run with NCCL_DEBUG=INFO and keep the output, or set "
                     "NCCL_DEBUG_FILE=nccl.%h.%p.log",
                 .file = paths.size() == 1 ? paths.front() : ""};
  }
  evidence.job = MergeNcclLogs(std::move(logs));
  evidence.findings = FindNcclProblems(evidence.job);
  for (evidence::NcclLogFinding& finding : FindTopologyProblems(evidence.topologies)) {
    evidence.findings.push_back(std::move(finding));
  }
  for (evidence::NcclLogFinding& finding : FindRasProblems(evidence.ras)) {
    evidence.findings.push_back(std::move(finding));
  }
  std::stable_sort(evidence.findings.begin(), evidence.findings.end(),
                   [](const auto& a, const auto& b) { return SeverityOrder(a.severity) < SeverityOrder(b.severity); });
  return evidence;
}

}  // namespace lockstep::ingest
