#include "ingest/torch_trace/damage.h"

#include <iterator>
#include <utility>

namespace lockstep::ingest {
namespace {

struct Wording {
  const char* code;
  model::Severity severity;
  const char* message;
  const char* advice;
};

/// Parallel to DamageKind.
constexpr Wording kWordings[] = {
    {"truncated_file", model::Severity::kError, "the file ends inside the trace; everything before was read",
     "the job was probably killed while writing; capture again, or check the disk's free space"},
    {"bad_event", model::Severity::kError, "an event is not JSON and was skipped",
     "the file is damaged at this byte; capture again if many events are missing"},
    {"oversized_event", model::Severity::kError, "one event is larger than the limit and was skipped",
     "raise the limit if the event is real"},
    {"invalid_escape", model::Severity::kWarning, "an invalid escape in a string was kept as text",
     "older profilers do not escape names; harmless"},
    {"control_character", model::Severity::kWarning, "a raw control character in a string was replaced by a space",
     "older profilers do not escape names; harmless"},
    {"invalid_utf8", model::Severity::kWarning, "a string is not UTF-8; the bytes were replaced by U+FFFD",
     "names may look odd; times are not affected"},
    {"unescaped_quote", model::Severity::kWarning, "a quote inside a string was not escaped; it was taken as text",
     "older profilers do not escape names; harmless"},
    {"non_finite_number", model::Severity::kWarning, "NaN or Infinity where a number belongs was taken as absent",
     "the profiler wrote no number here"},
    {"integer_overflow", model::Severity::kWarning,
     "an integer is larger than 64 bits or its field and was taken as absent", "the value is not used"},
    {"wrong_type", model::Severity::kWarning, "a value has the wrong type and was taken as absent",
     "another program may have rewritten the file"},
    {"missing_key", model::Severity::kWarning, "an event lacks its time, duration or name and was skipped",
     "another program may have rewritten the file"},
    {"negative_duration", model::Severity::kWarning, "a negative duration was taken as 0",
     "the profiler's clock conversion failed for this event"},
    {"trailing_data", model::Severity::kWarning, "there is text after the end of the trace; it was ignored",
     "two files may have been written into one"},
    {"bad_metadata", model::Severity::kWarning, "a metadata value of the trace is not JSON and was ignored",
     "rank, devices or groups may be missing"},
    {"damaged_stream", model::Severity::kError, "the compressed data is damaged; everything before was read",
     "copy the file again, or capture again"},
    {"bad_packet", model::Severity::kError, "bytes that are not Perfetto packet were skipped",
     "the file is damaged at this byte; write it again"},
    {"lost_packets", model::Severity::kWarning, "the recorder lost packets here and says so",
     "give it a larger buffer; it is not known what is missing"},
    {"missing_state", model::Severity::kWarning, "a packet refers to names that were lost; it was skipped",
     "the recorder's buffer wrapped around; give it a larger one"},
    {"unmatched_end", model::Severity::kWarning, "the end of a slice that has not begun was ignored",
     "the slice began before the trace"},
    {"unfinished_slice", model::Severity::kWarning, "a slice has no end; it was taken to end with its track",
     "the slice was still open when the trace ended"},
    {"unknown_clock", model::Severity::kWarning, "an event's clock is not related to the trace's; it was skipped",
     "the recorder wrote no clock snapshot"},
    {"unreadable_packet", model::Severity::kError, "compressed packets are not read",
     "decompress the trace with trace_processor first"},
};
static_assert(std::size(kWordings) == static_cast<size_t>(DamageKind::kCount));

}  // namespace

void Damage::Add(DamageKind kind, uint64_t byte_offset, std::string detail) {
  Seen& seen = kinds_[static_cast<size_t>(kind)];
  if (seen.count++ == 0) {
    seen.first_offset = byte_offset;
    seen.detail = std::move(detail);
  }
}

void Damage::MoveTo(Damage* other) {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i].count == 0) continue;
    Seen& target = other->kinds_[i];
    if (target.count == 0)
      target = kinds_[i];
    else
      target.count += kinds_[i].count;
    kinds_[i] = {};
  }
}

void Damage::WriteTo(const std::string& source, model::Ledger* ledger) const {
  for (size_t i = 0; i < kinds_.size(); ++i) {
    const Seen& seen = kinds_[i];
    if (seen.count == 0) continue;
    const Wording& wording = kWordings[i];
    std::string message = wording.message;
    if (!seen.detail.empty()) message += " (" + seen.detail + ")";
    ledger->Add({.code = wording.code,
                 .severity = wording.severity,
                 .source = source,
                 .byte_offset = seen.first_offset,
                 .count = seen.count,
                 .message = std::move(message),
                 .advice = wording.advice});
  }
}

}  // namespace lockstep::ingest
