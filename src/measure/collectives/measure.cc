#include "measure/collectives/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include "analysis/collective_size.h"
#include "base/archive.h"
#include "base/median.h"
#include "base/now.h"
#include "measure/collectives/pattern.h"

namespace lockstep::collective_bench {
namespace {

// What the host has at once of a buffer; a multiple of every element.
constexpr size_t kPieceBytes = size_t{16} << 20;

/// Memory of the backend, for as long as this lives.
class Buffer {
 public:
  static Result<Buffer> Make(Backend* backend, size_t bytes) {
    ASSIGN_OR_RETURN(void* const memory, backend->Allocate(bytes));
    return Buffer(backend, memory);
  }
  Buffer(Buffer&& other) noexcept : backend_(other.backend_), memory_(std::exchange(other.memory_, nullptr)) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (memory_ != nullptr) backend_->Free(memory_);
  }
  std::byte* get() const { return static_cast<std::byte*>(memory_); }

 private:
  Buffer(Backend* backend, void* memory) : backend_(backend), memory_(memory) {}
  Backend* backend_;
  void* memory_;
};

/// What one rank found.
struct OwnTiming {
  std::vector<int64_t> iterations_ns;
  int64_t total_ns = 0;
  std::optional<uint64_t> wrong_count = {};
};

double Quantile(const std::vector<int64_t>& sorted, double share) {
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
  return static_cast<double>(sorted[at]);
}

class Measurement {
 public:
  Measurement(Backend* backend, const Plan& plan)
      : backend_(backend),
        plan_(plan),
        rank_(static_cast<int>(backend->communicator().process())),
        size_(static_cast<int>(backend->communicator().process_count())) {}

  Result<Row> Measure(Operation operation, int64_t bytes) {
    Call call = CallOfSize(operation, plan_.type, size_, bytes);
    call.reduction = plan_.reduction;
    call.root = plan_.root;
    Row row;
    row.operation = operation;
    row.bytes = BytesOf(call, size_);
    row.count = call.count;
    if (!backend_->Has(operation, false) && !backend_->Has(operation, true)) {
      row.skipped = backend_->WhyNot(operation);
      return row;
    }
    if (const size_t most = backend_->max_count(call);
        std::max(SendElements(call, size_), ReceiveElements(call, size_)) > most) {
      row.skipped = fmt::format("more than {} elements in one call, which the backend does not take", most);
      return row;
    }
    for (const bool in_place : {false, true}) {
      if (!backend_->Has(operation, in_place)) continue;
      // Where it has but one form, that is measured.
      if (in_place && !plan_.in_place && backend_->Has(operation, false)) continue;
      call.in_place = in_place;
      ASSIGN_OR_RETURN(OwnTiming own, Time(call, &row.skipped));
      if (!row.skipped.empty()) return row;
      (in_place ? row.in_place : row.out_of_place) = Combine(call, std::move(own));
    }
    return row;
  }

  std::vector<RankFacts> Ranks() {
    std::array<char, 256> host = {};
    ::gethostname(host.data(), host.size() - 1);
    ArchiveWriter writer;
    writer(std::string(host.data()), static_cast<int64_t>(::getpid()), backend_->device());
    std::vector<RankFacts> ranks;
    for (const std::string& bytes : backend_->communicator().Gather(writer.TakeBytes())) {
      RankFacts& facts = ranks.emplace_back();
      ArchiveReader reader(bytes);
      reader(facts.host, facts.pid, facts.device);
    }
    return ranks;
  }

  Result<std::vector<Pair>> Pairs(const std::vector<RankFacts>& ranks) {
    const auto made = Buffer::Make(backend_, static_cast<size_t>(kPairBytes));
    if (!AllSay(made.has_value())) {
      Error error = made ? Error{.code = ErrorCode::kLimitExceeded, .message = "another rank has no memory for pairs"}
                         : made.error();
      if (!made) error.rank = rank_;  // Each says its own.
      return error;
    }
    const Buffer& buffer = *made;
    std::vector<std::byte> filler(static_cast<size_t>(kPairBytes), std::byte{1});
    RETURN_IF_ERROR(backend_->CopyIn(buffer.get(), filler.data(), filler.size()));
    std::vector<Pair> pairs;
    for (int a = 0; a < size_; ++a) {
      for (int b = a + 1; b < size_; ++b) {
        RETURN_IF_ERROR(backend_->Barrier());
        Pair pair;
        pair.a = a;
        pair.b = b;
        if (rank_ == a || rank_ == b) RETURN_IF_ERROR(MeasurePair(buffer.get(), &pair));
        ArchiveWriter writer;
        writer(pair.latency_ns, pair.bytes_per_s, pair.back_bytes_per_s);
        const std::vector<std::string> told = backend_->communicator().Gather(writer.TakeBytes());
        if (told.empty()) continue;
        ArchiveReader reader(told[static_cast<size_t>(a)]);
        reader(pair.latency_ns, pair.bytes_per_s, pair.back_bytes_per_s);
        pair.same_host = ranks[static_cast<size_t>(a)].host == ranks[static_cast<size_t>(b)].host;
        pairs.push_back(pair);
      }
    }
    MarkSlowPairs(&pairs);
    return pairs;
  }

 private:
  /// Whether all ranks could do what this one did; a rank alone cannot leave a collective.
  bool AllSay(bool good) {
    std::string word(1, good ? '1' : '0');
    const std::vector<std::string> words = backend_->communicator().Gather(word);
    word = std::all_of(words.begin(), words.end(), [](const std::string& one) { return one == "1"; }) ? "1" : "0";
    backend_->communicator().Broadcast(&word);
    return word == "1";
  }

  Status Fill(std::byte* memory, size_t bytes, std::byte value) {
    const std::vector<std::byte> piece(std::min(bytes, kPieceBytes), value);
    for (size_t at = 0; at < bytes; at += piece.size()) {
      RETURN_IF_ERROR(backend_->CopyIn(memory + at, piece.data(), std::min(piece.size(), bytes - at)));
    }
    return {};
  }

  Result<OwnTiming> Time(const Call& call, std::string* skipped) {
    const size_t element = BytesOf(call.type);
    const size_t send_bytes = SendElements(call, size_) * element;
    const size_t receive_bytes = ReceiveElements(call, size_) * element;
    const size_t whole = std::max(send_bytes, receive_bytes);
    auto receive = Buffer::Make(backend_, whole);
    auto send = call.in_place ? Result<Buffer>(Error{}) : Buffer::Make(backend_, send_bytes);
    if (!AllSay(receive.has_value() && (call.in_place || send.has_value()))) {
      *skipped = "not enough memory on a rank";
      return OwnTiming{};
    }
    std::byte* const to = receive->get();
    std::byte* const from = call.in_place ? to : send->get();
    const size_t send_at = call.in_place ? backend_->InPlaceSendOffset(call) * element : 0;
    const size_t receive_at = call.in_place ? backend_->InPlaceReceiveOffset(call) * element : 0;

    OwnTiming own;
    if (plan_.check) {
      RETURN_IF_ERROR(Fill(to, whole, std::byte{0xEE}));
      // In pieces: the host need not hold what the devices hold.
      std::vector<std::byte> piece(std::min(whole, kPieceBytes));
      for (size_t at = 0; at < send_bytes; at += piece.size()) {
        const size_t length = std::min(piece.size(), send_bytes - at);
        FillSend(call, rank_, at / element, std::span(piece).first(length));
        RETURN_IF_ERROR(backend_->CopyIn(from + send_at + at, piece.data(), length));
      }
      RETURN_IF_ERROR(backend_->Run(call, from, to));
      RETURN_IF_ERROR(backend_->Wait());
      own.wrong_count = 0;
      for (size_t at = 0; at < receive_bytes; at += piece.size()) {
        const size_t length = std::min(piece.size(), receive_bytes - at);
        RETURN_IF_ERROR(backend_->CopyOut(piece.data(), to + receive_at + at, length));
        *own.wrong_count += CountWrong(call, rank_, size_, at / element, std::span(piece).first(length));
      }
    }
    // Zeros stay zeros however often they are added up; the pages are written, so that they are memory of their own.
    RETURN_IF_ERROR(Fill(to, whole, std::byte{0}));
    if (!call.in_place) RETURN_IF_ERROR(Fill(from, send_bytes, std::byte{0}));
    for (int i = 0; i < plan_.warmup; ++i) RETURN_IF_ERROR(backend_->Run(call, from, to));
    RETURN_IF_ERROR(backend_->Wait());
    own.iterations_ns.reserve(static_cast<size_t>(plan_.iterations));
    RETURN_IF_ERROR(backend_->Barrier());
    const int64_t begin_ns = SteadyNow();
    int64_t last_ns = begin_ns;
    for (int i = 0; i < plan_.iterations; ++i) {
      RETURN_IF_ERROR(backend_->Run(call, from, to));
      const int64_t now_ns = SteadyNow();
      own.iterations_ns.push_back(now_ns - last_ns);
      last_ns = now_ns;
    }
    RETURN_IF_ERROR(backend_->Wait());
    own.total_ns = SteadyNow() - begin_ns;
    return own;
  }

  std::optional<Timing> Combine(const Call& call, OwnTiming own) {
    ArchiveWriter writer;
    writer(own.iterations_ns, own.total_ns, own.wrong_count);
    const std::vector<std::string> told = backend_->communicator().Gather(writer.TakeBytes());
    if (told.empty()) return std::nullopt;
    Timing timing;
    std::vector<int64_t> all;
    for (size_t rank = 0; rank < told.size(); ++rank) {
      OwnTiming one;
      ArchiveReader reader(told[rank]);
      reader(one.iterations_ns, one.total_ns, one.wrong_count);
      const double mean_ns = static_cast<double>(one.total_ns) / plan_.iterations;
      timing.mean_ns += mean_ns / static_cast<double>(told.size());
      if (rank == 0 || mean_ns < timing.fastest_ns) {
        timing.fastest_ns = mean_ns;
        timing.fastest_rank = static_cast<int>(rank);
      }
      if (rank == 0 || mean_ns > timing.slowest_ns) {
        timing.slowest_ns = mean_ns;
        timing.slowest_rank = static_cast<int>(rank);
      }
      all.insert(all.end(), one.iterations_ns.begin(), one.iterations_ns.end());
      if (one.wrong_count) timing.wrong_count = timing.wrong_count.value_or(0) + *one.wrong_count;
      if (one.wrong_count.value_or(0) > 0) timing.wrong_ranks.push_back(static_cast<int>(rank));
    }
    if (!backend_->is_queued()) {
      std::sort(all.begin(), all.end());
      timing.median_ns = Quantile(all, 0.5);
      timing.p99_ns = Quantile(all, 0.99);
    }
    if (timing.mean_ns > 0) {
      timing.algbw_bytes_per_s = static_cast<double>(BytesOf(call, size_)) / timing.mean_ns * 1e9;
      if (const auto factor = analysis::BusBandwidthFactor(KindOf(call.operation), size_)) {
        timing.busbw_bytes_per_s = *timing.algbw_bytes_per_s * *factor;
      }
    }
    return timing;
  }

  Status MeasurePair(std::byte* memory, Pair* pair) {
    constexpr int kRoundTrips = 60;
    constexpr int kWarmups = 10;
    constexpr int kTransfers = 8;
    std::vector<int64_t> halves;
    for (int i = 0; i < kRoundTrips + kWarmups; ++i) {
      const int64_t begin_ns = SteadyNow();
      RETURN_IF_ERROR(backend_->Transfer(pair->a, pair->b, memory, 8));
      RETURN_IF_ERROR(backend_->Transfer(pair->b, pair->a, memory, 8));
      if (i >= kWarmups) halves.push_back((SteadyNow() - begin_ns) / 2);
    }
    std::sort(halves.begin(), halves.end());
    pair->latency_ns = Quantile(halves, 0.5);
    const auto rate = [&](int from, int to, double* bytes_per_s) -> Status {
      std::vector<int64_t> times;
      for (int i = 0; i <= kTransfers; ++i) {
        const int64_t begin_ns = SteadyNow();
        RETURN_IF_ERROR(backend_->Transfer(from, to, memory, static_cast<size_t>(kPairBytes)));
        // Eight bytes back: the sender alone does not know when they have arrived.
        RETURN_IF_ERROR(backend_->Transfer(to, from, memory, 8));
        if (i > 0) times.push_back(SteadyNow() - begin_ns);
      }
      std::sort(times.begin(), times.end());
      const double time_ns = std::max(Quantile(times, 0.5) - pair->latency_ns, 1.0);
      *bytes_per_s = static_cast<double>(kPairBytes) / time_ns * 1e9;
      return {};
    };
    RETURN_IF_ERROR(rate(pair->a, pair->b, &pair->bytes_per_s));
    return rate(pair->b, pair->a, &pair->back_bytes_per_s);
  }

  Backend* const backend_;
  const Plan& plan_;
  const int rank_;
  const int size_;
};

double SlowerOf(const Pair& pair) { return std::min(pair.bytes_per_s, pair.back_bytes_per_s); }

}  // namespace

void MarkSlowPairs(std::vector<Pair>* pairs) {
  constexpr size_t kLeastPairs = 3;  // Of two nobody can say which is the slow one.
  constexpr double kSlowRatio = 0.5;
  for (const bool same_host : {false, true}) {
    std::vector<double> rates;
    for (const Pair& pair : *pairs) {
      if (pair.same_host == same_host) rates.push_back(SlowerOf(pair));
    }
    if (rates.size() < kLeastPairs) continue;
    const double median = UpperMedian(&rates);
    for (Pair& pair : *pairs) {
      if (pair.same_host == same_host) pair.is_slow = SlowerOf(pair) < kSlowRatio * median;
    }
  }
}

Result<Results> Measure(Backend* backend, const Plan& plan, const std::function<void(const Row&)>& on_row) {
  const auto size = static_cast<int>(backend->communicator().process_count());
  if (plan.root >= size) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = fmt::format("root {} is not a rank of {}", plan.root, size)};
  }
  Results results;
  results.backend = backend->name();
  results.plan = plan;
  Measurement measurement(backend, plan);
  results.ranks = measurement.Ranks();
  for (const Operation operation : plan.operations) {
    for (const int64_t bytes : plan.sizes_bytes) {
      ASSIGN_OR_RETURN(Row row, measurement.Measure(operation, bytes));
      if (!backend->communicator().is_root()) continue;
      if (on_row) on_row(row);
      results.rows.push_back(std::move(row));
    }
  }
  if (plan.pairs && size > 1) {
    ASSIGN_OR_RETURN(results.pairs, measurement.Pairs(results.ranks));
  }
  return results;
}

}  // namespace lockstep::collective_bench
