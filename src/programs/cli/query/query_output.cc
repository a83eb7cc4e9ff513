#include "programs/cli/query/query_output.h"

#include <fmt/format.h>

#include "base/nearest.h"
#include "present/query/query_error.h"
#include "present/report/utf8.h"
#include "programs/cli/cli.h"

namespace lockstep::cli {

std::unique_ptr<query::RowWriter> MakeRowWriter(const QueryFormat& format, bool partial, std::ostream& out) {
  if (format.name == "csv") return query::MakeCsvWriter(out);
  if (format.name == "json") return query::MakeJsonWriter(out, partial);
  if (format.name == "ndjson") return query::MakeNdjsonWriter(out);
  return query::MakeTableWriter(out, format.style);
}

AttentiveBuffer::AttentiveBuffer(std::ostream& out)
    : target_(out.rdbuf()), buffer_(dynamic_cast<const FdBuffer*>(out.rdbuf())) {}

AttentiveBuffer::int_type AttentiveBuffer::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const int_type put = target_->sputc(traits_type::to_char_type(c));
  return Alive() ? put : traits_type::eof();
}

std::streamsize AttentiveBuffer::xsputn(const char* text, std::streamsize size) {
  const std::streamsize put = target_->sputn(text, size);
  return Alive() ? put : 0;
}

int AttentiveBuffer::sync() { return target_->pubsync(); }

void WriteQueryError(const query::QueryError& error, std::string_view sql, Console& console) {
  const std::string hint = error.unknown_name.empty() ? "" : DidYouMean(error.unknown_name, error.known);
  console.err << "lockstep: " << report::Printable(error.message) << hint << '\n';
  if (error.offset) {
    const std::string marked = query::MarkedLine(sql, *error.offset);
    const size_t end_of_line = marked.find('\n');
    console.err << "  " << marked.substr(0, end_of_line) << "\n  " << marked.substr(end_of_line + 1) << '\n';
  }
  if (error.kind == query::QueryError::Kind::kStatement)
    console.err << "See 'lockstep query --list' for tables and functions, '--describe TABLE' for columns.\n";
}

int ExitStatusOf(const query::QueryError& error) {
  return error.kind == query::QueryError::Kind::kStatement ? kMisused : kFailed;
}

}  // namespace lockstep::cli
