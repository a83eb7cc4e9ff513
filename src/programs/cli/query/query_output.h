#pragma once

#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "base/fd_buffer.h"
#include "present/query/database.h"
#include "present/query/row_writer.h"
#include "programs/cli/terminal/console.h"

namespace lockstep::cli {

/// How answers are written.
struct QueryFormat {
  std::string name = "table";  ///< table, csv, json, ndjson.
  query::TableStyle style;
};

std::unique_ptr<query::RowWriter> MakeRowWriter(const QueryFormat& format, bool partial, std::ostream& out);

/// A buffer over another stream's that fails once standard output's reader has gone, which FdBuffer swallows: so that a
/// query ends if its rows are no longer read. Borrows the stream; other streams' buffers pass through as they are.
class AttentiveBuffer : public std::streambuf {
 public:
  explicit AttentiveBuffer(std::ostream& out);

 private:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;
  bool Alive() const { return buffer_ == nullptr || buffer_->error() == 0; }

  std::streambuf* target_;
  const FdBuffer* buffer_;
};

/// What is wrong, the nearest name, the place in the SQL, and where to look: some lines on standard error.
void WriteQueryError(const query::QueryError& error, std::string_view sql, Console& console);

/// kMisused for what the asker can mend in the SQL, else kFailed.
int ExitStatusOf(const query::QueryError& error);

}  // namespace lockstep::cli
