#include "measure/collectives/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/split.h"
#include "base/text_scan.h"

namespace lockstep::collective_bench {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 42;
constexpr int kMostIterations = 1'000'000;

Error Misused(std::string message) { return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)}; }

template <typename T>
std::optional<T> Number(std::string_view text) {
  return WholeNumber<T>(text);
}

template <typename Visit>
void EachPart(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::string_view part = TakePart(&list, ',');
    visit(part);
  }
}

}  // namespace

Result<int64_t> ParseBytes(std::string_view text) {
  std::string_view digits = text;
  int64_t unit = 1;
  for (const std::string_view ending : {"iB", "B"}) {
    if (digits.ends_with(ending)) {
      digits.remove_suffix(ending.size());
      break;
    }
  }
  constexpr std::string_view kUnits = "KMGT";
  if (!digits.empty()) {
    const size_t which = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
    if (which != std::string_view::npos) {
      unit = int64_t{1} << (10 * (which + 1));
      digits.remove_suffix(1);
    }
  }
  const auto number = Number<int64_t>(digits);
  if (!number || *number <= 0 || *number > kMostBytes / unit) {
    return Misused(fmt::format("'{}' is not a size; write 8, 64K, 16M or 1G", text));
  }
  return *number * unit;
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", bytes, kUnits[unit]);
}

Result<std::vector<int64_t>> Sweep(int64_t least, int64_t most, double factor) {
  if (least > most) return Misused("the smallest size is above the largest");
  if (!(factor > 1) || !std::isfinite(factor)) return Misused("the factor between sizes must be above 1");
  std::vector<int64_t> sizes;
  for (auto at = static_cast<double>(least); at <= static_cast<double>(most); at *= factor) {
    const auto size = static_cast<int64_t>(std::llround(at));
    if (sizes.empty() || size > sizes.back()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::string> ToWords(const Plan& plan) {
  std::string operations;
  for (const Operation operation : plan.operations) {
    operations += fmt::format("{}{}", operations.empty() ? "" : ",", OperationName(operation));
  }
  std::string sizes;
  for (const int64_t size : plan.sizes_bytes) sizes += fmt::format("{}{}", sizes.empty() ? "" : ",", size);
  return {"operations=" + operations,
          "sizes=" + sizes,
          fmt::format("type={}", DataTypeName(plan.type)),
          fmt::format("reduction={}", ReductionName(plan.reduction)),
          fmt::format("root={}", plan.root),
          fmt::format("iterations={}", plan.iterations),
          fmt::format("warmup={}", plan.warmup),
          fmt::format("check={}", plan.check ? 1 : 0),
          fmt::format("in_place={}", plan.in_place ? 1 : 0),
          fmt::format("pairs={}", plan.pairs ? 1 : 0)};
}

Result<Plan> FromWords(const std::vector<std::string>& words) {
  Plan plan;
  plan.operations.clear();
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string_view key = std::string_view(word).substr(0, equals);
    const std::string_view value =
        equals == std::string::npos ? std::string_view() : std::string_view(word).substr(equals + 1);
    bool good = true;
    const auto number = Number<int>(value);
    const auto take = [&](int* into, int least, int most) {
      good = number && *number >= least && *number <= most;
      if (good) *into = *number;
    };
    const auto take_bool = [&](bool* into) {
      good = value == "0" || value == "1";
      *into = value == "1";
    };
    if (key == "operations") {
      EachPart(value, [&](std::string_view part) {
        const auto operation = ParseOperation(part);
        good = good && operation;
        if (operation) plan.operations.push_back(*operation);
      });
    } else if (key == "sizes") {
      EachPart(value, [&](std::string_view part) {
        const auto size = Number<int64_t>(part);
        good = good && size && *size > 0 && *size <= kMostBytes;
        if (size) plan.sizes_bytes.push_back(*size);
      });
    } else if (key == "type") {
      const auto type = ParseDataType(value);
      good = type.has_value();
      plan.type = type.value_or(plan.type);
    } else if (key == "reduction") {
      const auto reduction = ParseReduction(value);
      good = reduction.has_value();
      plan.reduction = reduction.value_or(plan.reduction);
    } else if (key == "root") {
      take(&plan.root, 0, INT32_MAX);
    } else if (key == "iterations") {
      take(&plan.iterations, 1, kMostIterations);
    } else if (key == "warmup") {
      take(&plan.warmup, 0, kMostIterations);
    } else if (key == "check") {
      take_bool(&plan.check);
    } else if (key == "in_place") {
      take_bool(&plan.in_place);
    } else if (key == "pairs") {
      take_bool(&plan.pairs);
    } else {
      good = false;
    }
    if (!good) return Misused(fmt::format("'{}' is not part of a plan", word));
  }
  if (plan.operations.empty() && !plan.pairs) return Misused("the plan names no operation");
  if (!plan.operations.empty() && plan.sizes_bytes.empty()) return Misused("the plan names no size");
  return plan;
}

}  // namespace lockstep::collective_bench
