#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "present/query/functions.h"

namespace lockstep::query {
namespace {

// What an aggregate has seen so far: an array in SQLite's memory. All zero at first, as SQLite hands it out.
template <typename T>
struct Values {
  static_assert(std::is_trivially_copyable_v<T>);
  T* data;
  uint64_t count;
  uint64_t capacity;
  double parameter;
  bool failed;

  bool Add(const T& value) {
    if (count == capacity) {
      const uint64_t wanted = capacity == 0 ? 64 : capacity + capacity / 2;
      auto* grown = static_cast<T*>(sqlite3_realloc64(data, wanted * sizeof(T)));
      if (grown == nullptr) return false;
      data = grown;
      capacity = wanted;
    }
    data[count++] = value;
    return true;
  }
};

template <typename T>
Values<T>* StateOf(sqlite3_context* context) {
  return static_cast<Values<T>*>(sqlite3_aggregate_context(context, sizeof(Values<T>)));
}

template <typename T>
void AddOrFail(sqlite3_context* context, Values<T>* values, const T& value) {
  if (values->Add(value)) return;
  values->failed = true;
  sqlite3_result_error_nomem(context);
}

// Calls `finish` with the values when there are any, and frees them; NULL when there are none.
template <typename T, typename Finish>
void Finally(sqlite3_context* context, Finish finish) {
  auto* values = static_cast<Values<T>*>(sqlite3_aggregate_context(context, 0));
  if (values != nullptr && values->failed) {
    sqlite3_result_error_nomem(context);
  } else if (values == nullptr || values->count == 0) {
    sqlite3_result_null(context);
  } else {
    finish(*values);
  }
  if (values == nullptr) return;
  sqlite3_free(values->data);
  values->data = nullptr;
}

void PercentileStep(sqlite3_context* context, int count, sqlite3_value** arguments) {
  auto* values = StateOf<double>(context);
  if (values == nullptr) return sqlite3_result_error_nomem(context);
  const double percent = count < 2 ? 50 : sqlite3_value_double(arguments[1]);
  if (!(percent >= 0 && percent <= 100))
    return sqlite3_result_error(context, "percentile(x, p): p must be from 0 to 100", -1);
  const int type = sqlite3_value_numeric_type(arguments[0]);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  if (values->count == 0) values->parameter = percent;
  AddOrFail(context, values, sqlite3_value_double(arguments[0]));
}

void PercentileFinal(sqlite3_context* context) {
  Finally<double>(context, [&](Values<double>& values) {
    const double place = values.parameter / 100 * static_cast<double>(values.count - 1);
    const auto below = static_cast<uint64_t>(place);
    std::nth_element(values.data, values.data + below, values.data + values.count);
    double result = values.data[below];
    if (const double rest = place - static_cast<double>(below); rest > 0) {
      const double above = *std::min_element(values.data + below + 1, values.data + values.count);
      result += rest * (above - result);
    }
    sqlite3_result_double(context, result);
  });
}

void DeviationFinal(sqlite3_context* context) {
  Finally<double>(context, [&](Values<double>& values) {
    double mean = 0;
    for (uint64_t i = 0; i < values.count; ++i) mean += values.data[i] / static_cast<double>(values.count);
    double squares = 0;
    for (uint64_t i = 0; i < values.count; ++i) squares += (values.data[i] - mean) * (values.data[i] - mean);
    sqlite3_result_double(context, values.count < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.count - 1)));
  });
}

struct Side {
  int64_t start;
  int64_t end;
  int side;
};

void UnionStep(sqlite3_context* context, int count, sqlite3_value** arguments) {
  auto* values = StateOf<Side>(context);
  if (values == nullptr) return sqlite3_result_error_nomem(context);
  for (int i = 0; i < count; ++i) {
    if (sqlite3_value_type(arguments[i]) == SQLITE_NULL) return;
  }
  const Side side{sqlite3_value_int64(arguments[0]), sqlite3_value_int64(arguments[1]),
                  count > 2 && sqlite3_value_double(arguments[2]) != 0 ? 1 : 0};
  AddOrFail(context, values, side);
}

// Goes through the starts in order. Between two starts a side runs up to its furthest end so far, so what all sides
// asked for share is the stretch from the earlier start to the smallest of those ends.
int64_t SharedLength(Values<Side>& values, int side_count) {
  std::sort(values.data, values.data + values.count, [](const Side& a, const Side& b) { return a.start < b.start; });
  constexpr int64_t kNever = std::numeric_limits<int64_t>::min();
  int64_t ends[2] = {kNever, kNever};
  uint64_t length = 0;  // unsigned: a sum of lengths within the range of int64_t cannot wrap it
  for (uint64_t i = 0; i < values.count; ++i) {
    const Side& one = values.data[i];
    int64_t& end = ends[side_count == 1 ? 0 : one.side];
    end = std::max(end, one.end);
    const int64_t until = i + 1 < values.count ? values.data[i + 1].start : std::numeric_limits<int64_t>::max();
    const int64_t shared = std::min(until, side_count == 1 ? ends[0] : std::min(ends[0], ends[1]));
    if (shared > one.start) length += static_cast<uint64_t>(shared) - static_cast<uint64_t>(one.start);
  }
  return length > static_cast<uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<int64_t>(length);
}

void UnionFinal(sqlite3_context* context) {
  Finally<Side>(context, [&](Values<Side>& values) { sqlite3_result_int64(context, SharedLength(values, 1)); });
}

void IntersectFinal(sqlite3_context* context) {
  Finally<Side>(context, [&](Values<Side>& values) { sqlite3_result_int64(context, SharedLength(values, 2)); });
}

}  // namespace

int RegisterAggregates(sqlite3* connection) {
  struct Aggregate {
    const char* name;
    int arguments;
    void (*step)(sqlite3_context*, int, sqlite3_value**);
    void (*final)(sqlite3_context*);
  };
  constexpr Aggregate kAggregates[] = {{"percentile", 2, PercentileStep, PercentileFinal},
                                       {"median", 1, PercentileStep, PercentileFinal},
                                       {"stddev", 1, PercentileStep, DeviationFinal},
                                       {"union_ns", 2, UnionStep, UnionFinal},
                                       {"intersect_ns", 3, UnionStep, IntersectFinal}};
  for (const Aggregate& aggregate : kAggregates) {
    const int code = sqlite3_create_function_v2(connection, aggregate.name, aggregate.arguments,
                                                SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, nullptr, nullptr,
                                                aggregate.step, aggregate.final, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

}  // namespace lockstep::query
