#include "present/query/functions.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "present/report/format.h"
#include "present/report/kernel_name.h"

namespace lockstep::query {
namespace {

constexpr FunctionSpec kFunctions[] = {
    {"overlap_ns", "(start1, end1, start2, end2)", false,
     "Length of what two intervals share; 0 when they do not meet."},
    {"format_ns", "(ns)", false, "A duration for people: `45.6 ms`."},
    {"format_bytes", "(bytes)", false, "A size for people: `12.3 MiB`."},
    {"format_rate", "(bytes_per_s)", false, "A rate for people: `12.3 GB/s`."},
    {"short_name", "(name [, width])", false,
     "A kernel's name without parameter list and `void`; with a width, shortened to that many columns."},
    {"union_ns", "(start, end)", true, "Length of the union of the intervals: time that several share counts once."},
    {"intersect_ns", "(start, end, side)", true,
     "Time in which intervals of both sides run: those where `side` is true and those where it is false; NULL takes no "
     "part."},
    {"percentile", "(x, p)", true, "The p-th percentile, p from 0 to 100, linear between values; NULLs are left out."},
    {"median", "(x)", true, "percentile(x, 50)."},
    {"stddev", "(x)", true, "Sample standard deviation (n - 1); 0 for one value."},
};

bool AnyNull(int count, sqlite3_value** values) {
  return std::any_of(values, values + count, [](sqlite3_value* v) { return sqlite3_value_type(v) == SQLITE_NULL; });
}

void ResultText(sqlite3_context* context, const std::string& text) {
  sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

// A text function: NULL stays NULL, and nothing thrown gets out.
template <typename Body>
void TextOf(sqlite3_context* context, int count, sqlite3_value** values, Body body) {
  if (AnyNull(count, values)) return sqlite3_result_null(context);
  try {
    ResultText(context, body());
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  } catch (const std::exception& error) {
    sqlite3_result_error(context, error.what(), -1);
  }
}

void Overlap(sqlite3_context* context, int count, sqlite3_value** values) {
  if (AnyNull(count, values)) return sqlite3_result_null(context);
  const int64_t start = std::max(sqlite3_value_int64(values[0]), sqlite3_value_int64(values[2]));
  const int64_t end = std::min(sqlite3_value_int64(values[1]), sqlite3_value_int64(values[3]));
  int64_t shared = 0;
  if (end > start && __builtin_sub_overflow(end, start, &shared)) shared = INT64_MAX;
  sqlite3_result_int64(context, shared);
}

void FormatNs(sqlite3_context* context, int count, sqlite3_value** values) {
  TextOf(context, count, values, [&] {
    const bool whole = sqlite3_value_type(values[0]) == SQLITE_INTEGER;
    // Means and medians come as fractions of a nanosecond.
    const double ns = std::clamp(sqlite3_value_double(values[0]), -9.2e18, 9.2e18);
    return report::FormatDuration(whole ? sqlite3_value_int64(values[0]) : static_cast<int64_t>(ns));
  });
}

void FormatBytes(sqlite3_context* context, int count, sqlite3_value** values) {
  TextOf(context, count, values, [&] { return report::FormatBytes(sqlite3_value_int64(values[0])); });
}

void FormatRate(sqlite3_context* context, int count, sqlite3_value** values) {
  TextOf(context, count, values, [&] { return report::FormatRate(sqlite3_value_double(values[0])); });
}

void ShortName(sqlite3_context* context, int count, sqlite3_value** values) {
  TextOf(context, count, values, [&] {
    const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
    const std::string_view name(data == nullptr ? "" : data, static_cast<size_t>(sqlite3_value_bytes(values[0])));
    if (count == 1) return report::StripSignature(name);
    const int width = std::clamp(sqlite3_value_int(values[1]), 1, 10000);
    return report::ShortenName(name, width, true);
  });
}

}  // namespace

std::span<const FunctionSpec> OwnFunctions() { return kFunctions; }

bool IsOwnFunction(std::string_view name) {
  return std::any_of(std::begin(kFunctions), std::end(kFunctions), [&](const auto& f) { return f.name == name; });
}

int RegisterScalars(sqlite3* connection) {
  struct Scalar {
    const char* name;
    int arguments;
    void (*call)(sqlite3_context*, int, sqlite3_value**);
  };
  constexpr Scalar kScalars[] = {{"overlap_ns", 4, Overlap},       {"format_ns", 1, FormatNs},
                                 {"format_bytes", 1, FormatBytes}, {"format_rate", 1, FormatRate},
                                 {"short_name", 1, ShortName},     {"short_name", 2, ShortName}};
  for (const Scalar& scalar : kScalars) {
    const int code = sqlite3_create_function_v2(connection, scalar.name, scalar.arguments,
                                                SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, nullptr,
                                                scalar.call, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

int RegisterFunctions(sqlite3* connection) {
  int code = RegisterPrintf(connection);
  if (code == SQLITE_OK) code = RegisterScalars(connection);
  return code != SQLITE_OK ? code : RegisterAggregates(connection);
}

}  // namespace lockstep::query
