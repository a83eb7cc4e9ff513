#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <set>
#include <string>

namespace lockstep::query {

/// What a statement may do, and what it was seen to use while it was prepared.
struct Usage {
  std::set<std::string> tables;  ///< Tables of ours that it reads; names as declared.
  std::string refusal;           ///< Why it was refused; empty = it was not.
};

/// Name of a file system in which nothing can be opened, made, deleted or found; registered on first use. Databases
/// opened with it live in memory or not at all: even what SQLite would spill to a temporary file fails.
const char* NoFilesName();

/// Ties a connection down: SELECT only, known tables and functions only, no files, no extensions, low limits. From then
/// on `usage` collects what statements name; it must outlive the connection. Call after everything is registered.
/// Returns an SQLite result code.
int LockDown(sqlite3* connection, Usage* usage);

}  // namespace lockstep::query
