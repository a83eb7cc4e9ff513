// A log with lines of NCCL's, whole and in two files. Every line is counted once, what is joined refers to what is
// there, every finding can be shown.
#include <algorithm>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "ingest/nccl/nccl_log.h"

namespace {

using namespace lockstep;
using evidence::NcclJob;

void Check(const NcclJob& job) {
  for (const evidence::NcclMember& member : job.members) {
    FUZZ_CHECK(member.process < job.processes.size());
    for (const auto& connection : member.connections) FUZZ_CHECK(connection.detail < job.texts.size());
    for (const auto& operation : member.operations) {
      FUZZ_CHECK(operation.name < job.texts.size() && operation.file < job.files.size());
    }
  }
  for (const evidence::NcclError& error : job.errors) {
    FUZZ_CHECK(error.process < job.processes.size() && error.place.file < job.files.size());
    FUZZ_CHECK(error.place.seen() && !error.kind.empty());
  }
  for (const evidence::NcclCommunicator& communicator : job.communicators) {
    FUZZ_CHECK(communicator.rank_count > 0 && !communicator.members.empty());
    for (const uint32_t member : communicator.members) FUZZ_CHECK(member < job.members.size());
  }
  for (const evidence::NcclLogFinding& finding : ingest::FindNcclProblems(job)) {
    FUZZ_CHECK(!finding.kind.empty() && !finding.text.empty());
    FUZZ_CHECK(std::is_sorted(finding.ranks.begin(), finding.ranks.end()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ingest::LooksLikeNcclLog(text);
  NcclJob log = ingest::ReadNcclLog(text, "a.log");
  const auto line_count =
      static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')) + (!text.empty() && text.back() != '\n');
  FUZZ_CHECK(log.lines.nccl + log.lines.unknown + log.lines.other == line_count);
  std::vector<NcclJob> logs;
  logs.push_back(std::move(log));
  Check(ingest::MergeNcclLogs(std::move(logs)));
  const size_t cut = text.find('\n', size / 2);
  const size_t half = cut == std::string_view::npos ? size : cut + 1;
  logs.clear();
  logs.push_back(ingest::ReadNcclLog(text.substr(half), "b.log", 1));
  logs.push_back(ingest::ReadNcclLog(text.substr(0, half), "a.log", 0));
  const NcclJob joined = ingest::MergeNcclLogs(std::move(logs));
  FUZZ_CHECK(joined.lines.nccl + joined.lines.unknown + joined.lines.other == line_count);
  Check(joined);
  return 0;
}
