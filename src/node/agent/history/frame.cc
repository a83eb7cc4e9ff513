#include "node/agent/history/frame.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/nanoseconds.h"

namespace lockstep::agent {
namespace {

// A frame: its time less the one before it, then entries, each behind a tag.
//   1 series: kind, labels. It has the next index.
//   2 sample: series, figures that are there (bits), those of them that differ from the series' last (bits), the
//     differences.
//   3 event: kind, labels, thousandths of its count.
// Numbers are varints, differences zigzag.
enum Tag : uint8_t { kSeries = 1, kSample = 2, kEvent = 3 };
constexpr size_t kMostLabels = 16;
constexpr size_t kMostTextBytes = 256;
constexpr double kCountScale = 1000;

void PutNumber(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

uint64_t Zigzag(int64_t value) { return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63); }
int64_t Unzigzag(uint64_t value) { return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1)); }

// Of hostile bytes sums overflow: as unsigned numbers they may.
int64_t Plus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t Minus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

void PutText(std::string_view text, std::string* out) {
  text = text.substr(0, kMostTextBytes);
  PutNumber(text.size(), out);
  out->append(text);
}

void PutLabels(const HistoryLabels& labels, std::string* out) {
  PutNumber(std::min(labels.size(), kMostLabels), out);
  size_t count = 0;
  for (const auto& [name, value] : labels) {
    if (count++ == kMostLabels) break;
    PutText(name, out);
    PutText(value, out);
  }
}

void PutSample(const HistorySample& sample, HistoryFrameState* state, std::string* out) {
  const auto [place, is_new] = state->places.try_emplace(FrameKey(sample.kind, sample.labels), state->series.size());
  if (is_new) {
    state->series.push_back({sample.kind, sample.labels, 0, {}});
    out->push_back(kSeries);
    out->push_back(static_cast<char>(sample.kind));
    PutLabels(sample.labels, out);
  }
  HistoryFrameState::Series& series = state->series[place->second];
  uint64_t present = 0;
  uint64_t changed = 0;
  for (size_t i = 0; i < kMostFigures; ++i) {
    if (!sample.values.at(i)) continue;
    present |= uint64_t{1} << i;
    if (*sample.values.at(i) != series.values.at(i)) changed |= uint64_t{1} << i;
  }
  out->push_back(kSample);
  PutNumber(place->second, out);
  PutNumber(present, out);
  PutNumber(changed, out);
  for (size_t i = 0; i < kMostFigures; ++i) {
    if ((changed >> i & 1) == 0) continue;
    PutNumber(Zigzag(Minus(*sample.values.at(i), series.values.at(i))), out);
    series.values.at(i) = *sample.values.at(i);
  }
  series.present = present;
}

/// Takes a frame apart; whatever it lacks makes it bad.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  bool is_bad() const { return is_bad_; }
  bool is_over() const { return rest_.empty() || is_bad_; }
  uint8_t Byte() {
    if (rest_.empty()) {
      is_bad_ = true;
      return 0;
    }
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  uint64_t Number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    is_bad_ = true;
    return 0;
  }
  std::string Text() {
    const uint64_t length = Number();
    if (length > kMostTextBytes || length > rest_.size()) {
      is_bad_ = true;
      return {};
    }
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }
  HistoryLabels Labels() {
    HistoryLabels labels;
    const uint64_t count = Number();
    if (count > kMostLabels) is_bad_ = true;
    for (uint64_t i = 0; i < count && !is_bad_; ++i) {
      std::string name = Text();
      labels[std::move(name)] = Text();
    }
    return labels;
  }

 private:
  std::string_view rest_;
  bool is_bad_ = false;
};

bool TakeSeries(Bytes* bytes, HistoryFrameState* state) {
  const uint8_t kind = bytes->Byte();
  HistoryLabels labels = bytes->Labels();
  if (bytes->is_bad() || kind >= kHistoryKinds || state->series.size() == kMostBlockSeries) return false;
  state->series.push_back({static_cast<HistoryKind>(kind), std::move(labels), 0, {}});
  return true;
}

std::optional<size_t> TakeSample(Bytes* bytes, HistoryFrameState* state) {
  const uint64_t idx = bytes->Number();
  const uint64_t present = bytes->Number();
  const uint64_t changed = bytes->Number();
  if (bytes->is_bad() || idx >= state->series.size()) return std::nullopt;
  HistoryFrameState::Series& series = state->series[idx];
  const uint64_t known = (uint64_t{1} << FiguresOf(series.kind).size()) - 1;
  if ((present & ~known) != 0 || (changed & ~present) != 0) return std::nullopt;
  series.present = present;
  for (uint64_t rest = changed; rest != 0; rest &= rest - 1) {
    int64_t& value = series.values.at(static_cast<size_t>(std::countr_zero(rest)));
    value = Plus(value, Unzigzag(bytes->Number()));
  }
  if (bytes->is_bad()) return std::nullopt;
  return idx;
}

}  // namespace

std::string FrameKey(HistoryKind kind, const HistoryLabels& labels) {
  std::string key(1, static_cast<char>(kind));
  for (const auto& [name, value] : labels) {
    key.append(name).push_back('\0');
    key.append(value).push_back('\0');
  }
  return key;
}

std::string EncodeFrame(int64_t time_ms, std::span<const HistorySample>* samples,
                        std::span<const control::HistoryEvent>* events, HistoryFrameState* state) {
  // What one entry can take at most, so that none makes a frame larger than it may be.
  constexpr size_t kRoom = 2 * kMostLabels * (kMostTextBytes + 2) + kMostFigures * 10 + 64;
  static_assert(kRoom < kMostFrameBytes);
  std::string frame;
  PutNumber(Zigzag(Minus(time_ms, state->time_ms)), &frame);
  state->time_ms = time_ms;
  while (!samples->empty() && frame.size() + kRoom <= kMostFrameBytes && state->series.size() < kMostBlockSeries) {
    PutSample(samples->front(), state, &frame);
    *samples = samples->subspan(1);
  }
  while (!events->empty() && frame.size() + kRoom <= kMostFrameBytes) {
    frame.push_back(kEvent);
    PutText(events->front().kind, &frame);
    PutLabels(events->front().labels, &frame);
    PutNumber(Zigzag(std::llround(std::clamp(events->front().count, -1e12, 1e12) * kCountScale)), &frame);
    *events = events->subspan(1);
  }
  return frame;
}

std::optional<int64_t> FrameTime(std::string_view frame, int64_t before_ms) {
  Bytes bytes(frame);
  const int64_t time_ms = Plus(before_ms, Unzigzag(bytes.Number()));
  return bytes.is_bad() ? std::nullopt : std::optional(time_ms);
}

bool DecodeFrame(std::string_view frame, const HistoryFrameReader& reader, HistoryFrameState* state) {
  Bytes bytes(frame);
  state->time_ms = Plus(state->time_ms, Unzigzag(bytes.Number()));
  // Nanoseconds of it are asked for.
  constexpr int64_t kMostMs = INT64_MAX / kMillisecondNs;
  if (bytes.is_bad() || state->time_ms < 0 || state->time_ms > kMostMs) return false;
  while (!bytes.is_over()) {
    switch (bytes.Byte()) {
      case kSeries:
        if (!TakeSeries(&bytes, state)) return false;
        break;
      case kSample: {
        const std::optional<size_t> idx = TakeSample(&bytes, state);
        if (!idx) return false;
        if (reader.sample) reader.sample(*idx);
        break;
      }
      case kEvent: {
        control::HistoryEvent event;
        event.unix_ns = state->time_ms * kMillisecondNs;
        event.kind = bytes.Text();
        event.labels = bytes.Labels();
        event.count = static_cast<double>(Unzigzag(bytes.Number())) / kCountScale;
        if (bytes.is_bad()) return false;
        if (reader.event) reader.event(std::move(event));
        break;
      }
      default: return false;
    }
  }
  return !bytes.is_bad();
}

}  // namespace lockstep::agent
