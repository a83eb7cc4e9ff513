#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/collectives.h"
#include "present/export/timeline/archive.h"
#include "present/export/timeline/output_file.h"
#include "present/export/timeline/rank_writer.h"
#include "present/export/timeline/timeline.h"
#include "present/export/timeline/writers.h"

namespace lockstep::timeline {
namespace {

struct Ending {
  std::string_view text;
  OutputKind kind;
};
constexpr Ending kEndings[] = {
    {".pftrace", {Format::kPerfetto, false}},
    {".perfetto-trace", {Format::kPerfetto, false}},
    {".pb", {Format::kPerfetto, false}},
    {".pftrace.gz", {Format::kPerfetto, true}},
    {".perfetto-trace.gz", {Format::kPerfetto, true}},
    {".pb.gz", {Format::kPerfetto, true}},
    {".json", {Format::kChromeJson, false}},
    {".json.gz", {Format::kChromeJson, true}},
    {".tar", {Format::kArchive, false}},
};

Status WriteOneFile(const OutputFile& file, const OutputKind& kind, const std::string& path,
                    const TimelineContent& content, Summary* summary) {
  const std::unique_ptr<ByteSink> sink = kind.gzip ? GzipSink(file.fd(), path) : PlainSink(file.fd(), path);
  const std::unique_ptr<EventWriter> writer = kind.format == Format::kChromeJson
                                                  ? MakeChromeWriter(content.run().names, sink.get())
                                                  : MakePerfettoWriter(content.run().names, sink.get());
  content.Begin(writer.get());
  for (const size_t rank_index : content.rank_indices()) content.WriteRank(rank_index, writer.get(), summary);
  writer->Finish();
  return sink->Close();
}

}  // namespace

Result<OutputKind> KindOfOutput(const std::string& path) {
  const Ending* best = nullptr;
  for (const Ending& ending : kEndings) {
    if (path.size() > ending.text.size() && path.ends_with(ending.text)) best = &ending;
  }
  if (best != nullptr) return best->kind;
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .message = fmt::format("{}: its ending is not a known format; use .pftrace (Perfetto, compact), .json or "
                             ".json.gz (Chrome's format), .tar (one file per rank), or .pftrace.gz",
                             path)};
}

Result<Summary> WriteTimeline(const model::Run& run, const analysis::Collectives& collectives, const std::string& path,
                              const OutputKind& kind, const Options& options) {
  ASSIGN_OR_RETURN(TimelineContent content, TimelineContent::Create(run, collectives, options));
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  Summary summary = content.EmptySummary();
  if (kind.format == Format::kArchive) {
    RETURN_IF_ERROR(WriteArchive(file, path, content, &summary));
  } else {
    RETURN_IF_ERROR(WriteOneFile(file, kind, path, content, &summary));
  }
  summary.file_bytes = file.size_bytes();
  RETURN_IF_ERROR(file.Commit());
  if (options.on_progress) options.on_progress(1.0);
  return summary;
}

}  // namespace lockstep::timeline
