#include "inside/launch/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <set>

#include "base/json_value.h"
#include "base/letter_case.h"

namespace lockstep::launch {
namespace {

constexpr int kShareInPercent = 80;

bool IsName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// "triton_poi_fused_add_0", "triton_per_fused_native_layer_norm_12": counted up by the compiler.
bool IsCountedUp(std::string_view function) {
  if (!function.starts_with("triton_")) return false;
  const size_t underscore = function.rfind('_');
  return underscore + 1 < function.size() &&
         function.find_first_not_of("0123456789", underscore + 1) == std::string_view::npos;
}

std::string Escaped(std::string_view function) {
  std::string escaped;
  for (const char c : function) {
    if (std::string_view(".[]{}()*+?^$|\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

Error Corrupt(std::string message) { return Error{ErrorCode::kCorruptData, std::move(message)}; }

struct Row {
  std::string function;
  int32_t rank;
  int64_t total_ns;
  int64_t count;
};

// Nullopt: none that is wanted.
Result<std::optional<Row>> ReadRow(JsonValue value) {
  if (!value.IsObject()) return Corrupt("data.kernels holds something that is not a kernel");
  const std::string_view name = value["name"].Text().value_or("");
  const int64_t rank = value["rank"].Int().value_or(-1);
  const int64_t total_ns = value["total_ns"].Int().value_or(-1);
  const int64_t count = value["count"].Int().value_or(-1);
  if (name.empty() || rank < 0 || rank > std::numeric_limits<int32_t>::max() || total_ns < 0 || count < 0)
    return Corrupt("a row of data.kernels lacks rank, name, count or total_ns");
  if (value["kind"].Text() != "compute" || WaitsForOtherRanks(name)) return std::optional<Row>();
  return std::optional<Row>({FunctionName(name), static_cast<int32_t>(rank), total_ns, count});
}

int64_t Sum(int64_t left, int64_t right) {
  int64_t sum = 0;
  return __builtin_add_overflow(left, right, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

}  // namespace

bool WaitsForOtherRanks(std::string_view name) {
  const std::string lower = Lowered(name);
  return lower.find("nccl") != std::string::npos || lower.find("nvshmem") != std::string::npos ||
         lower.find("rccl") != std::string::npos;
}

std::string FunctionName(std::string_view demangled) {
  // To the first '<' or '(' that opens template arguments or parameters; "(anonymous namespace)" and "{lambda(...)}"
  // are parts of a name.
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  constexpr std::string_view kUnnamed = "<unnamed>";
  size_t end = 0;
  while (end < demangled.size()) {
    const std::string_view rest = demangled.substr(end);
    if (rest.starts_with(kAnonymous)) {
      end += kAnonymous.size();
    } else if (rest.starts_with(kUnnamed)) {
      end += kUnnamed.size();
    } else if (rest[0] == '<' || rest[0] == '(') {
      // Of a class: "Tile<4>::run(int)" is run.
      const char close = rest[0] == '<' ? '>' : ')';
      int depth = 0;
      size_t at = end;
      for (; at < demangled.size(); ++at) {
        if (demangled[at] == rest[0]) ++depth;
        if (demangled[at] == close && --depth == 0) break;
      }
      if (at + 2 < demangled.size() && demangled.substr(at + 1).starts_with("::")) {
        end = at + 3;
      } else {
        break;
      }
    } else {
      ++end;
    }
  }
  size_t begin = end;
  while (begin > 0 && IsName(demangled[begin - 1])) --begin;
  return std::string(begin == end ? demangled.substr(0, end == 0 ? demangled.size() : end)
                                  : demangled.substr(begin, end - begin));
}

Result<std::vector<KernelTotal>> ReadKernelTotals(std::string_view json) {
  const Result<JsonTree> tree = ParseJson(json);
  if (!tree || !tree->root().IsObject()) return Corrupt("not JSON of 'lockstep analyze --json'");
  const JsonValue data = tree->root()["data"];
  if (!data.IsObject()) return Corrupt("it has no 'data': not JSON of 'lockstep analyze --json'");
  const JsonValue kernels = data["kernels"];
  if (!kernels.IsArray()) return Corrupt("it has no 'data.kernels': no JSON of 'lockstep analyze --json'");

  std::map<std::string, KernelTotal> totals;
  std::map<std::string, std::map<int32_t, int64_t>> counts;
  for (const JsonValue value : kernels.elements()) {
    ASSIGN_OR_RETURN(const std::optional<Row> row, ReadRow(value));
    if (!row) continue;
    KernelTotal& total = totals[row->function];
    total.function = row->function;
    total.total_ns = Sum(total.total_ns, row->total_ns);
    total.ns_of_rank[row->rank] = Sum(total.ns_of_rank[row->rank], row->total_ns);
    int64_t& count = counts[row->function][row->rank];
    count = Sum(count, row->count);
  }
  if (totals.empty())
    return Error{ErrorCode::kFailedPrecondition,
                 "the analysis has no kernels that compute (a CPU job, or a recording without kernels)"};
  std::vector<KernelTotal> sorted;
  for (auto& [function, total] : totals) {
    const auto least = std::ranges::min_element(counts[function], {}, [](const auto& entry) { return entry.second; });
    total.count_per_rank = least->second;
    sorted.push_back(std::move(total));
  }
  std::ranges::stable_sort(
      sorted, [](const KernelTotal& left, const KernelTotal& right) { return left.total_ns > right.total_ns; });
  return sorted;
}

std::vector<KernelTotal> Heaviest(const std::vector<KernelTotal>& kernels, size_t most) {
  double all = 0;
  for (const KernelTotal& kernel : kernels) all += static_cast<double>(kernel.total_ns);
  std::vector<KernelTotal> chosen;
  double sum = 0;
  for (const KernelTotal& kernel : kernels) {
    if (chosen.size() >= most || (!chosen.empty() && sum * 100 >= all * kShareInPercent)) break;
    chosen.push_back(kernel);
    sum += static_cast<double>(kernel.total_ns);
  }
  return chosen;
}

Result<std::string> KernelPattern(const std::vector<std::string>& functions) {
  std::set<std::string> seen;
  std::string pattern;
  for (const std::string& function : functions) {
    if (function.empty()) return Error{ErrorCode::kInvalidArgument, "a kernel without a name"};
    if (WaitsForOtherRanks(function)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: replayed by ncu, it would wait forever for kernels of other ranks, which do not "
                               "run at that time; choose compute kernels",
                               function)};
    }
    const std::string part =
        IsCountedUp(function) ? Escaped(function.substr(0, function.rfind('_') + 1)) + "[0-9]+" : Escaped(function);
    if (!seen.insert(part).second) continue;
    pattern += (pattern.empty() ? "" : "|") + part;
  }
  if (pattern.empty()) return Error{ErrorCode::kInvalidArgument, "no kernel is named"};
  return "regex:^(" + pattern + ")$";
}

}  // namespace lockstep::launch
