#pragma once

#include <string>
#include <string_view>

#include "programs/cli/query/query_output.h"
#include "programs/cli/query/query_session.h"
#include "programs/cli/terminal/console.h"

namespace lockstep::cli {

/// Asks for queries until .quit or the end of input, and answers each. A query ends with ';' and may take several
/// lines; lines that begin with '.' are commands (.help lists them). SIGINT ends the query that runs, or the line that
/// is typed. Returns an ExitStatus: of the last query that failed when input is not a terminal, else kDone or kPartial.
int RunQueryPrompt(QuerySession& session, QueryFormat format, Console& console, bool quiet);

/// Whether the text is a whole statement: ends with ';' outside of quotes and comments, or is blank.
bool IsWholeStatement(std::string_view sql);

}  // namespace lockstep::cli
