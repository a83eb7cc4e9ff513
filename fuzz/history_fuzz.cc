// The daemon's history. By the first byte: frames behind each other, each with its length in one byte or two before it;
// the whole file; the JSON of an answer, replayed as looks.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "base/now.h"
#include "base/temporary_folder.h"
#include "fuzz.h"
#include "node/agent/history/history_file.h"
#include "node/live/history.h"

namespace {

using namespace lockstep;
using namespace lockstep::agent;

void Frames(std::string_view text) {
  HistoryFrameState state;
  std::vector<HistorySample> samples;
  std::vector<control::HistoryEvent> events;
  HistoryFrameReader reader;
  reader.sample = [&](size_t idx) {
    FUZZ_CHECK(idx < state.series.size());
    const HistoryFrameState::Series& series = state.series[idx];
    const auto& figures = FiguresOf(series.kind);
    FUZZ_CHECK((series.present >> figures.size()) == 0);
    HistorySample sample{series.kind, series.labels, {}};
    for (size_t i = 0; i < figures.size(); ++i) {
      if ((series.present >> i & 1) != 0) sample.values.at(i) = series.values.at(i);
    }
    samples.push_back(std::move(sample));
  };
  reader.event = [&](control::HistoryEvent event) { events.push_back(std::move(event)); };
  while (text.size() > 2) {
    const size_t length = static_cast<unsigned char>(text[0]) | static_cast<size_t>(text[1] & 0x1f) << 8;
    const std::string_view frame = text.substr(2, length);
    text.remove_prefix(std::min(2 + length, text.size()));
    FrameTime(frame, state.time_ms);
    if (!DecodeFrame(frame, reader, &state)) return;
    FUZZ_CHECK(samples.size() + events.size() <= 8192);
    FUZZ_CHECK(state.series.size() <= kMostBlockSeries);
    // Written anew and read again it is the same, in as many frames as it takes.
    HistoryFrameState writing, reading;
    std::span<const HistorySample> samples_left(samples);
    std::span<const control::HistoryEvent> events_left(events);
    size_t sample_idx = 0;
    size_t event_idx = 0;
    HistoryFrameReader same;
    same.sample = [&](size_t idx) {
      const HistorySample& expected = samples[sample_idx++];
      FUZZ_CHECK(reading.series[idx].labels == expected.labels);
      for (size_t i = 0; i < kMostFigures; ++i) {
        FUZZ_CHECK(expected.values.at(i).has_value() == ((reading.series[idx].present >> i & 1) != 0));
        FUZZ_CHECK(!expected.values.at(i) || *expected.values.at(i) == reading.series[idx].values.at(i));
      }
    };
    same.event = [&](const control::HistoryEvent& event) { FUZZ_CHECK(event.kind == events[event_idx++].kind); };
    while (!samples_left.empty() || !events_left.empty()) {
      const std::string again = EncodeFrame(state.time_ms, &samples_left, &events_left, &writing);
      FUZZ_CHECK(again.size() <= kMostFrameBytes);
      FUZZ_CHECK(DecodeFrame(again, same, &reading));
    }
    FUZZ_CHECK(sample_idx == samples.size() && event_idx == events.size());
    samples.clear();
    events.clear();
  }
}

void File(std::string text) {
  // Zeros stand for the check of the tables of this build, behind magic and size.
  const uint32_t fingerprint = FiguresFingerprint();
  constexpr size_t kAt = 12;
  if (text.size() > kAt + sizeof(fingerprint) && text.compare(kAt, sizeof(fingerprint), std::string(4, '\0')) == 0) {
    std::memcpy(text.data() + kAt, &fingerprint, sizeof(fingerprint));
  }
  static const TemporaryFolder folder("history_fuzz");
  HistoryFile::Options options;
  options.path = folder.File("history");
  options.limit_bytes = HistoryFile::kLeastBytes;
  options.keep_ms = {900'000, 21'600'000};
  const int fd = ::open(options.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  FUZZ_CHECK(fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(fd);
  const auto file = HistoryFile::Open(options, 1'790'000'000'000, nullptr);
  FUZZ_CHECK(file.has_value());
  for (int pass = 0; pass < 2; ++pass) {
    size_t count = 0;
    HistoryView::Visitor visitor;
    visitor.sample = [&](int64_t time_ms, const HistoryFrameState::Series&) {
      ++count;
      FUZZ_CHECK(time_ms >= 0);
    };
    for (const HistoryTier tier : {HistoryTier::kFine, HistoryTier::kCoarse}) {
      (*file)->View().Read(tier, 0, INT64_MAX, visitor);
      FUZZ_CHECK((*file)->Append(tier, 1'790'000'000'000 + pass, {HistorySample{}}, {}).has_value());
    }
    FUZZ_CHECK(pass == 0 || count >= 2);
    FUZZ_CHECK((*file)->bytes() <= options.limit_bytes);
  }
}

void Answer(std::string_view text) {
  live::NodePast past;
  auto history = control::ReadHistory(text);
  if (!history) return;
  past.history = std::move(*history);
  past.answered_ns = SteadyNow();
  live::JobTracker tracker(10'000'000'000, true);
  size_t looks = 0;
  int64_t before_ns = INT64_MIN;
  live::History({past}).Replay(1'000'000'000, past.answered_ns,
                               [&](std::vector<live::NodeLook> seen, int64_t taken_ns, int64_t unix_ns) {
                                 FUZZ_CHECK(taken_ns > before_ns);
                                 before_ns = taken_ns;
                                 if (++looks < 200) tracker.Recall(std::move(seen), taken_ns, unix_ns);
                               });
  FUZZ_CHECK(looks <= 10'001);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: Frames(text); break;
    case 1: File(std::string(text)); break;
    default: Answer(text); break;
  }
  return 0;
}
