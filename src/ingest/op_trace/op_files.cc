#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text_scan.h"
#include "ingest/op_trace/op_trace.h"

namespace lockstep::ingest {
namespace {

constexpr size_t kHeadBytes = size_t{4} << 10;
constexpr uint64_t kMaxJsonBytes = uint64_t{64} << 20;  // A stage's iteration takes about 1.3 KB.

Result<std::string> ReadUpTo(ByteSource& source, uint64_t limit) {
  std::string text;
  std::string window(64 << 10, '\0');
  while (text.size() < limit) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(window.size(), limit - text.size()));
    ASSIGN_OR_RETURN(const size_t got, source.Read({window.data(), wanted}));
    if (got == 0) break;
    text.append(window, 0, got);
  }
  return text;
}

/// N of "pp_rank_N.json".
std::optional<int32_t> StageOfName(const TraceFile& file) {
  const std::string& path = file.in_archive ? file.member : file.path;
  const std::string_view name = std::string_view(path).substr(path.find_last_of('/') + 1);
  TextCursor cursor(name);
  std::optional<int32_t> stage;
  while (cursor.SkipPast("rank_")) stage = cursor.Number<int32_t>();
  return stage && *stage >= 0 && *stage < 1 << 20 ? stage : std::nullopt;
}

void Note(const TraceFile& file, const char* code, model::Severity severity, std::string message, std::string advice,
          model::Ledger* ledger) {
  model::LedgerEntry entry;
  entry.code = code;
  entry.severity = severity;
  entry.source = file.DisplayName();
  entry.message = std::move(message);
  entry.advice = std::move(advice);
  ledger->Add(std::move(entry));
}

/// What of one pipeline has been read.
struct Pipeline {
  OperationContent content;
  PrimusConfig config;
  std::set<int32_t> stages;
  std::optional<Error> first_error;
};

void TakePrimusFile(const TraceFile& file, std::string text, OperationFormat format, Pipeline* pipeline) {
  model::Ledger* const ledger = &pipeline->content.ledger;
  Status status;
  if (format == OperationFormat::kPrimusConfig) {
    Result<PrimusConfig> config = ReadPrimusConfig(std::move(text), file.DisplayName());
    if (config) pipeline->config = *config;
    if (!config) status = std::move(config).error();
  } else {
    const int32_t next = pipeline->stages.empty() ? 0 : *pipeline->stages.rbegin() + 1;
    const int32_t stage = StageOfName(file).value_or(next);
    if (!pipeline->stages.insert(stage).second) {
      Note(file, "duplicate_rank", model::Severity::kWarning,
           fmt::format("a file of pipeline rank {} was read already", stage), "give one folder per job", ledger);
      return;
    }
    status = ReadPrimusRank(std::move(text), stage, file.DisplayName(), &pipeline->content);
  }
  if (status) return;
  if (!pipeline->first_error) pipeline->first_error = status.error();
  Note(file, "not_a_trace", model::Severity::kError, status.error().message, "", ledger);
}

Result<OperationContent> ReadPipeline(const std::vector<TraceFile>& files, const ByteLimits& limits) {
  Pipeline pipeline;
  TraceOpener opener(limits);
  for (const TraceFile& file : files) {
    auto source = opener.Open(file);
    Result<std::string> text = source ? ReadUpTo(**source, kMaxJsonBytes) : std::move(source).error();
    if (!text) {
      if (!pipeline.first_error) pipeline.first_error = text.error();
      Note(file, "unreadable_file", model::Severity::kError, text.error().message, "", &pipeline.content.ledger);
      continue;
    }
    const OperationFormat format = SniffOperations(std::string_view(*text).substr(0, kHeadBytes));
    if (format == OperationFormat::kPrimusRank || format == OperationFormat::kPrimusConfig) {
      TakePrimusFile(file, *std::move(text), format, &pipeline);
    } else {
      Note(file, "not_a_trace", model::Severity::kError, "is not a file of the pipeline that lies beside it",
           "give the traces of one job", &pipeline.content.ledger);
    }
  }
  if (pipeline.content.trace.operations.empty()) {
    if (pipeline.first_error) return *std::move(pipeline.first_error);
    return Error{.code = ErrorCode::kCorruptData,
                 .message = "is a pipeline's configuration without its ranks; give the folder with pp_rank_*.json",
                 .file = files.front().DisplayName()};
  }
  pipeline.content.trace.micro_batch_count = pipeline.config.micro_batch_count;
  const int32_t expected = std::max(pipeline.config.stage_count.value_or(0), *pipeline.stages.rbegin() + 1);
  for (int32_t stage = 0; stage < expected && pipeline.stages.size() < static_cast<size_t>(expected); ++stage) {
    if (pipeline.stages.count(stage) > 0) continue;
    Note(files.front(), "missing_rank", model::Severity::kError,
         fmt::format("no trace of pipeline rank {} of {}", stage, expected), "add its file; bubbles count without it",
         &pipeline.content.ledger);
    break;
  }
  SortOperations(&pipeline.content.trace);
  return std::move(pipeline.content);
}

}  // namespace

Result<bool> AreOperationTraces(const std::vector<TraceFile>& files, const ByteLimits& limits) {
  if (files.empty()) return false;
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenTraceFile(files.front(), limits));
  ASSIGN_OR_RETURN(const std::string head, ReadUpTo(*source, kHeadBytes));
  return SniffOperations(head) != OperationFormat::kNone;
}

Result<OperationContent> ReadOperations(const std::vector<TraceFile>& files, const ByteLimits& limits) {
  if (files.empty()) return Error{.code = ErrorCode::kInvalidArgument, .message = "no file to read"};
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> first, OpenTraceFile(files.front(), limits));
  ASSIGN_OR_RETURN(const std::string head, ReadUpTo(*first, kHeadBytes));
  if (SniffOperations(head) != OperationFormat::kStudyTable) return ReadPipeline(files, limits);
  if (files.size() > 1) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .message = fmt::format("is an operation trace, which holds a whole job, and {} other files were given; "
                               "analyze one job at a time",
                               files.size() - 1),
        .file = files.front().DisplayName()};
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenTraceFile(files.front(), limits));
  return ReadOperationTable(*source, files.front().DisplayName());
}

}  // namespace lockstep::ingest
