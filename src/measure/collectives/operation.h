#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/collective_kind.h"

namespace lockstep::collective_bench {

/// What can be measured.
enum class Operation : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSendReceive,  ///< A ring: every rank sends to the next and receives from the one before.
};
inline constexpr std::array kOperations = {Operation::kAllReduce,  Operation::kAllGather, Operation::kReduceScatter,
                                           Operation::kBroadcast,  Operation::kReduce,    Operation::kAllToAll,
                                           Operation::kSendReceive};
/// "all_reduce", ..., "send_recv".
const char* OperationName(Operation operation);
std::optional<Operation> ParseOperation(std::string_view name);
analysis::CollectiveKind KindOf(Operation operation);
bool HasReduction(Operation operation);
bool HasRoot(Operation operation);
/// Whether the size is that of all ranks' chunks together (all_gather, reduce_scatter, all_to_all).
bool IsInChunks(Operation operation);

enum class DataType : uint8_t { kUint8, kInt32, kInt64, kFloat32, kFloat64 };
inline constexpr std::array kDataTypes = {DataType::kUint8, DataType::kInt32, DataType::kInt64, DataType::kFloat32,
                                          DataType::kFloat64};
const char* DataTypeName(DataType type);  ///< "uint8", "float32".
std::optional<DataType> ParseDataType(std::string_view name);
size_t BytesOf(DataType type);

enum class Reduction : uint8_t { kSum, kMin, kMax };
const char* ReductionName(Reduction reduction);
std::optional<Reduction> ParseReduction(std::string_view name);

/// One call, the same on all ranks.
struct Call {
  Operation operation = Operation::kAllReduce;
  DataType type = DataType::kFloat32;
  Reduction reduction = Reduction::kSum;
  int root = 0;
  /// Elements of a rank's chunk where the operation has chunks, else of its buffer.
  size_t count = 0;
  bool in_place = false;
};

/// Elements that a rank of `size` reads and writes. Reduce writes at its root only.
size_t SendElements(const Call& call, int size);
size_t ReceiveElements(const Call& call, int size);

/// The call for a message of about `bytes`, of ranks whose share is a whole multiple of 16 bytes, but at least one
/// element: nccl-tests' convention. Source: docs/metrics.md#collective-bench.
Call CallOfSize(Operation operation, DataType type, int size, int64_t bytes);
/// Size of the call in that convention.
int64_t BytesOf(const Call& call, int size);

}  // namespace lockstep::collective_bench
