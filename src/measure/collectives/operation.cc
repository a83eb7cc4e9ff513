#include "measure/collectives/operation.h"

#include <algorithm>

namespace lockstep::collective_bench {

const char* OperationName(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce: return "all_reduce";
    case Operation::kAllGather: return "all_gather";
    case Operation::kReduceScatter: return "reduce_scatter";
    case Operation::kBroadcast: return "broadcast";
    case Operation::kReduce: return "reduce";
    case Operation::kAllToAll: return "all_to_all";
    case Operation::kSendReceive: return "send_recv";
  }
  return "";
}

std::optional<Operation> ParseOperation(std::string_view name) {
  for (const Operation operation : kOperations) {
    if (name == OperationName(operation)) return operation;
  }
  return std::nullopt;
}

analysis::CollectiveKind KindOf(Operation operation) {
  using analysis::CollectiveKind;
  switch (operation) {
    case Operation::kAllReduce: return CollectiveKind::kAllReduce;
    case Operation::kAllGather: return CollectiveKind::kAllGather;
    case Operation::kReduceScatter: return CollectiveKind::kReduceScatter;
    case Operation::kBroadcast: return CollectiveKind::kBroadcast;
    case Operation::kReduce: return CollectiveKind::kReduce;
    case Operation::kAllToAll: return CollectiveKind::kAllToAll;
    case Operation::kSendReceive: return CollectiveKind::kSend;
  }
  return CollectiveKind::kOther;
}

bool HasReduction(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kReduceScatter ||
         operation == Operation::kReduce;
}

bool HasRoot(Operation operation) { return operation == Operation::kBroadcast || operation == Operation::kReduce; }

bool IsInChunks(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kReduceScatter ||
         operation == Operation::kAllToAll;
}

const char* DataTypeName(DataType type) {
  switch (type) {
    case DataType::kUint8: return "uint8";
    case DataType::kInt32: return "int32";
    case DataType::kInt64: return "int64";
    case DataType::kFloat32: return "float32";
    case DataType::kFloat64: return "float64";
  }
  return "";
}

std::optional<DataType> ParseDataType(std::string_view name) {
  for (const DataType type : kDataTypes) {
    if (name == DataTypeName(type)) return type;
  }
  return std::nullopt;
}

size_t BytesOf(DataType type) {
  switch (type) {
    case DataType::kUint8: return 1;
    case DataType::kInt32:
    case DataType::kFloat32: return 4;
    case DataType::kInt64:
    case DataType::kFloat64: return 8;
  }
  return 1;
}

const char* ReductionName(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum: return "sum";
    case Reduction::kMin: return "min";
    case Reduction::kMax: return "max";
  }
  return "";
}

std::optional<Reduction> ParseReduction(std::string_view name) {
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMin, Reduction::kMax}) {
    if (name == ReductionName(reduction)) return reduction;
  }
  return std::nullopt;
}

size_t SendElements(const Call& call, int size) {
  const bool all = call.operation == Operation::kReduceScatter || call.operation == Operation::kAllToAll;
  return all ? call.count * static_cast<size_t>(size) : call.count;
}

size_t ReceiveElements(const Call& call, int size) {
  const bool all = call.operation == Operation::kAllGather || call.operation == Operation::kAllToAll;
  return all ? call.count * static_cast<size_t>(size) : call.count;
}

Call CallOfSize(Operation operation, DataType type, int size, int64_t bytes) {
  constexpr int64_t kAlignBytes = 16;
  Call call;
  call.operation = operation;
  call.type = type;
  const int64_t share = IsInChunks(operation) ? bytes / size : bytes;
  const auto element = static_cast<int64_t>(BytesOf(type));
  const int64_t aligned = share >= kAlignBytes ? share / kAlignBytes * kAlignBytes : share;
  call.count = static_cast<size_t>(std::max<int64_t>(aligned / element, 1));
  return call;
}

int64_t BytesOf(const Call& call, int size) {
  const auto share = static_cast<int64_t>(call.count * BytesOf(call.type));
  return IsInChunks(call.operation) ? share * size : share;
}

}  // namespace lockstep::collective_bench
