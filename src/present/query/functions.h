#pragma once

#include <sqlite3.h>

#include <span>
#include <string_view>

namespace lockstep::query {

/// A function of ours, as `--list` and docs/query.md tell it.
struct FunctionSpec {
  std::string_view name;
  std::string_view arguments;  ///< "(start_ns, end_ns)".
  bool is_aggregate = false;
  std::string_view sentence;
};

std::span<const FunctionSpec> OwnFunctions();
bool IsOwnFunction(std::string_view name);

/// Makes them known to the connection. What aggregates keep counts as SQLite's memory, so its limit holds for them.
/// Returns an SQLite result code.
int RegisterFunctions(sqlite3* connection);

/// The parts of it. printf() and format() take SQLite's place: the same conversions, widths and precisions up to 1000.
int RegisterPrintf(sqlite3* connection);
int RegisterScalars(sqlite3* connection);
int RegisterAggregates(sqlite3* connection);

}  // namespace lockstep::query
