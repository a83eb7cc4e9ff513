#pragma once

#include <string_view>

namespace lockstep::page {

// SQLite for the view that asks with SQL, as web/ builds it from sql.js: blocks of the page, unpacked when it is asked.

/// JavaScript that a worker runs (web/dist/sql_worker.js).
std::string_view SqlWorker();
/// SQLite's WebAssembly (web/dist/sqlite.wasm).
std::string_view SqlEngine();

}  // namespace lockstep::page
