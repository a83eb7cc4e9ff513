#include "ingest/torch_trace/collective_args.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "ingest/torch_trace/decimal.h"
#include "ingest/torch_trace/trace_category.h"

namespace lockstep::ingest {
namespace {

std::optional<int64_t> Integer(const Field& field) {
  if (field.kind != ValueKind::kNumber && field.kind != ValueKind::kString) return std::nullopt;
  return ParseInt64(field.raw);
}

std::optional<int32_t> SmallInteger(const Field& field) {
  const auto value = Integer(field);
  if (!value || *value < INT32_MIN || *value > INT32_MAX) return std::nullopt;
  return static_cast<int32_t>(*value);
}

/// First string of a list such as ["float", ""], without quotes; empty when there is none.
std::string_view FirstString(std::string_view list) {
  const size_t open = list.find('"');
  if (open == std::string_view::npos) return {};
  const size_t close = list.find('"', open + 1);
  return close == std::string_view::npos ? std::string_view{} : list.substr(open + 1, close - open - 1);
}

/// Text of a value that producers write as a string ("[0, 1]") or as a list ([0, 1]).
std::string_view Text(const Field& field) { return field.raw; }

/// The first two elements of a list of lists, as written; empty where there are fewer.
std::pair<std::string_view, std::string_view> FirstTwo(std::string_view list) {
  std::string_view found[2];
  size_t count = 0;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < list.size() && count < 2; ++i) {
    if (list[i] == '[' && ++depth == 2) begin = i;
    if (list[i] == ']' && depth-- == 2) found[count++] = list.substr(begin, i + 1 - begin);
  }
  return {found[0], found[1]};
}

/// "c10d::alltoall_base_" and "c10d::alltoall_" take what they write first, then what they read (PyTorch's
/// Functions.hpp / Ops.cpp); c10d's other operators have their tensors in other orders.
void ReadAllToAllOperator(std::string_view dims, model::CollectiveRecord* record) {
  const auto [out, in] = FirstTwo(dims);
  if (out.empty() || in.empty()) return;
  record->out_elements = CountElements("[" + std::string(out) + "]");
  record->in_elements = CountElements("[" + std::string(in) + "]");
}

}  // namespace

std::optional<int64_t> CountElements(std::string_view dims) {
  int64_t total = 0;
  int64_t product = 1;
  int depth = 0;
  bool leaf = false;  // Inside a list that has numbers or nothing, not lists.
  for (size_t i = 0; i < dims.size();) {
    const char c = dims[i];
    if (c == '[') {
      ++depth;
      product = 1;
      leaf = true;
      ++i;
    } else if (c == ']') {
      if (leaf && depth >= 2 && __builtin_add_overflow(total, product, &total)) return std::nullopt;
      leaf = false;
      if (--depth < 0) return std::nullopt;
      ++i;
    } else if (IsDigit(c) || c == '-') {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(dims.data() + i, dims.data() + dims.size(), value);
      if (error != std::errc() || value < 0 || __builtin_mul_overflow(product, value, &product)) return std::nullopt;
      i = static_cast<size_t>(end - dims.data());
    } else if (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t') {
      ++i;
    } else {
      return std::nullopt;
    }
  }
  if (depth != 0) return std::nullopt;
  return total;
}

bool ReadCollectiveArgs(const std::vector<Field>& fields, model::Category category, std::string_view event_name,
                        const std::function<NameId(std::string_view)>& intern, model::CollectiveRecord* record) {
  using Source = model::CollectiveRecord::Source;
  bool has_collective_name = false;
  for (const Field& field : fields) {
    if (!field.in_args) continue;
    const std::string_view key = field.key;
    if (key == "Collective name") {
      has_collective_name = true;
      record->collective_name = intern(Text(field));
    } else if (key == "dtype") {
      record->dtype = intern(Text(field));
    } else if (key == "In msg nelems") {
      record->in_elements = Integer(field);
    } else if (key == "Out msg nelems") {
      record->out_elements = Integer(field);
    } else if (key == "Group size") {
      record->group_size = SmallInteger(field);
    } else if (key == "Process Group Name") {
      record->group_name = intern(Text(field));
    } else if (key == "Process Group Description") {
      record->group_description = intern(Text(field));
    } else if (key == "Process Group Ranks") {
      record->group_ranks = intern(Text(field));
    } else if (key == "Seq") {
      record->sequence = Integer(field);
    } else if (key == "Comms Id") {
      if (field.kind == ValueKind::kNumber || field.kind == ValueKind::kString)
        record->communicator_id = ParseUint64(field.raw);
    } else if (key == "Src Rank") {
      record->source_rank = SmallInteger(field);
    } else if (key == "Dst Rank") {
      record->destination_rank = SmallInteger(field);
    }
  }
  if (LaneOf(category) == model::Lane::kDevice) {
    record->source = Source::kKernel;
    return has_collective_name;
  }
  if (LaneOf(category) != model::Lane::kOperators) return false;
  if (event_name == "record_param_comms") {
    record->source = Source::kParamComms;
    return true;
  }
  if (!IsCollectiveRangeName(event_name)) return false;
  record->source = Source::kAnnotation;
  const bool is_all_to_all = event_name.starts_with("c10d::alltoall");
  for (const Field& field : fields) {
    if (!field.in_args) continue;
    if (field.key == "Input Dims" && is_all_to_all) ReadAllToAllOperator(field.raw, record);
    if (field.key == "Input Dims" && !record->in_elements) record->in_elements = CountElements(field.raw);
    if (field.key == "Input type" && record->dtype.value == 0) record->dtype = intern(FirstString(field.raw));
  }
  return true;
}

}  // namespace lockstep::ingest
