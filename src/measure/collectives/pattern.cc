#include "measure/collectives/pattern.h"

#include <algorithm>
#include <cstring>

namespace lockstep::collective_bench {
namespace {

constexpr int kRankValues = 8;
constexpr size_t kIndexValues = 7;

double RankPart(int rank) { return rank % kRankValues + 1; }
double IndexPart(size_t index) { return static_cast<double>(index % kIndexValues + 1); }

/// What a reduction makes of all ranks' parts; the index's part is common to them and above 0.
double ReducedRankPart(Reduction reduction, int size) {
  double sum = 0;
  for (int rank = 0; rank < size; ++rank) sum += RankPart(rank);
  switch (reduction) {
    case Reduction::kSum: return sum;
    case Reduction::kMin: return 1;
    case Reduction::kMax: return std::min(size, kRankValues);
  }
  return sum;
}

template <typename T>
T As(double value) {
  // uint8 sums wrap around, as they do in the reduction.
  return static_cast<T>(static_cast<int64_t>(value));
}

template <typename T>
void Fill(int rank, size_t first, std::span<std::byte> bytes) {
  for (size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
    const T value = As<T>(PatternValue(rank, first + i));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

double Expected(const Call& call, int rank, int size, double reduced, size_t i) {
  switch (call.operation) {
    case Operation::kAllReduce:
    case Operation::kReduce: return reduced * IndexPart(i);
    case Operation::kReduceScatter: return reduced * IndexPart(static_cast<size_t>(rank) * call.count + i);
    case Operation::kAllGather: return PatternValue(static_cast<int>(i / call.count), i % call.count);
    case Operation::kBroadcast: return PatternValue(call.root, i);
    case Operation::kAllToAll:
      return PatternValue(static_cast<int>(i / call.count), static_cast<size_t>(rank) * call.count + i % call.count);
    case Operation::kSendReceive: return PatternValue((rank + size - 1) % size, i);
  }
  return 0;
}

template <typename T>
uint64_t Count(const Call& call, int rank, int size, size_t first, std::span<const std::byte> bytes) {
  const double reduced = ReducedRankPart(call.reduction, size);
  uint64_t wrong = 0;
  for (size_t i = 0; i * sizeof(T) < bytes.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    if (value != As<T>(Expected(call, rank, size, reduced, first + i))) ++wrong;
  }
  return wrong;
}

}  // namespace

double PatternValue(int rank, size_t index) { return RankPart(rank) * IndexPart(index); }

void FillSend(const Call& call, int rank, size_t first, std::span<std::byte> bytes) {
  switch (call.type) {
    case DataType::kUint8: return Fill<uint8_t>(rank, first, bytes);
    case DataType::kInt32: return Fill<int32_t>(rank, first, bytes);
    case DataType::kInt64: return Fill<int64_t>(rank, first, bytes);
    case DataType::kFloat32: return Fill<float>(rank, first, bytes);
    case DataType::kFloat64: return Fill<double>(rank, first, bytes);
  }
}

uint64_t CountWrong(const Call& call, int rank, int size, size_t first, std::span<const std::byte> bytes) {
  if (call.operation == Operation::kReduce && rank != call.root) return 0;
  switch (call.type) {
    case DataType::kUint8: return Count<uint8_t>(call, rank, size, first, bytes);
    case DataType::kInt32: return Count<int32_t>(call, rank, size, first, bytes);
    case DataType::kInt64: return Count<int64_t>(call, rank, size, first, bytes);
    case DataType::kFloat32: return Count<float>(call, rank, size, first, bytes);
    case DataType::kFloat64: return Count<double>(call, rank, size, first, bytes);
  }
  return 0;
}

}  // namespace lockstep::collective_bench
