#pragma once

#include <string>
#include <string_view>

namespace lockstep::report {

/// A kernel's or operator's name without what does not tell it apart: "void " in front, "(anonymous namespace)::", the
/// parameter list at the end. "Memcpy HtoD (Pageable -> Device)" stays as it is.
std::string StripSignature(std::string_view name);

/// StripSignature, then fitted into `width` columns: namespaces go first, of the name and of its template arguments;
/// then the end is cut, so that the template's head stays. Input of any bytes; output is printable.
std::string ShortenName(std::string_view name, int width, bool unicode);

}  // namespace lockstep::report
