// A line of profile.jsonl, whatever is in it: what is read can be written and is read as the same again, and a job's
// past takes it.
#include <string>

#include "analysis/profile_history/capture_record.h"
#include "analysis/profile_history/job_history.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  const std::string line(reinterpret_cast<const char*>(data), size);
  const Result<profile_history::CaptureRecord> record = profile_history::ReadRecord(line);
  if (!record) return 0;
  FUZZ_CHECK(record->figures.size() <= profile_history::kMostFigures);
  const std::string written = profile_history::WriteRecord(*record);
  FUZZ_CHECK(written.find('\n') == std::string::npos);
  const Result<profile_history::CaptureRecord> again = profile_history::ReadRecord(written);
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(profile_history::WriteRecord(*again) == written);
  profile_history::JobHistory history;
  for (int i = 0; i < 12; ++i) history.Observe(*record);
  FUZZ_CHECK(history.regression_count() == 0);  // The same again and again.
  return 0;
}
