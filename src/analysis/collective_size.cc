#include "analysis/collective_size.h"

#include <limits>
#include <string>

namespace lockstep::analysis {
namespace {

struct ElementSize {
  std::string_view name;  // lower case, without "c10::"
  int64_t bytes;
};

constexpr ElementSize kElementSizes[] = {
    {"float", 4},
    {"float32", 4},
    {"double", 8},
    {"float64", 8},
    {"half", 2},
    {"float16", 2},
    {"bfloat16", 2},
    {"int", 4},
    {"int32", 4},
    {"long", 8},
    {"long int", 8},
    {"int64", 8},
    {"long long", 8},
    {"short", 2},
    {"short int", 2},
    {"int16", 2},
    {"char", 1},
    {"signed char", 1},
    {"int8", 1},
    {"byte", 1},
    {"unsigned char", 1},
    {"uint8", 1},
    {"bool", 1},
    {"uint16", 2},
    {"unsigned short", 2},
    {"uint32", 4},
    {"unsigned int", 4},
    {"uint64", 8},
    {"unsigned long", 8},
    {"complexhalf", 4},
    {"complexfloat", 8},
    {"complex64", 8},
    {"complex<float>", 8},
    {"complexdouble", 16},
    {"complex128", 16},
    {"complex<half>", 4},
    {"qint8", 1},
    {"complex<double>", 16},
    {"complex<c10::half>", 4},
    {"quint8", 1},
    {"qint32", 4},
};

std::optional<int64_t> Product(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b || *a < 0 || *b < 0) return std::nullopt;
  if (*b != 0 && *a > std::numeric_limits<int64_t>::max() / *b) return std::nullopt;
  return *a * *b;
}

std::optional<int64_t> Positive(std::optional<int64_t> value) { return value && *value > 0 ? value : std::nullopt; }

}  // namespace

std::optional<int64_t> ElementBytes(std::string_view dtype) {
  std::string lower;
  for (const char c : dtype.substr(0, 32)) lower.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  std::string_view name = lower;
  if (name.starts_with("c10::")) name.remove_prefix(5);
  if (name.starts_with("float8_")) return 1;
  for (const ElementSize& size : kElementSizes) {
    if (size.name == name) return size.bytes;
  }
  return std::nullopt;
}

std::optional<int64_t> CollectiveBytes(CollectiveKind kind, const CollectiveBuffers& buffers) {
  const std::optional<int64_t> in = Positive(buffers.in_elements);
  const std::optional<int64_t> out = Positive(buffers.out_elements);
  std::optional<int64_t> members;
  if (buffers.group_size) members = *buffers.group_size;
  std::optional<int64_t> elements;
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllToAll:  // The buffer of a rank already holds one chunk for every member.
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive:
    case CollectiveKind::kSendReceive: elements = in ? in : out; break;
    case CollectiveKind::kAllGather: elements = out ? out : Product(in, members); break;
    case CollectiveKind::kReduceScatter: elements = in ? in : Product(out, members); break;
    case CollectiveKind::kGather: elements = Product(in, members); break;
    case CollectiveKind::kScatter: elements = Product(out, members); break;
    case CollectiveKind::kBarrier:
    case CollectiveKind::kOther: break;
  }
  return Product(elements, buffers.element_bytes);
}

std::optional<double> BusBandwidthFactor(CollectiveKind kind, int64_t group_size) {
  if (group_size < 2) return std::nullopt;
  const double n = static_cast<double>(group_size);
  switch (kind) {
    case CollectiveKind::kAllReduce: return 2 * (n - 1) / n;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter: return (n - 1) / n;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: return 1;
    case CollectiveKind::kSendReceive:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kOther: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace lockstep::analysis
