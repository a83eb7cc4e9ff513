#pragma once

#include <string>
#include <string_view>

namespace lockstep::report {

/// A kernel's or operator's name without what does not tell it apart: "void " in front, "(anonymous namespace)::", the
/// parameter list at the end. "Memcpy HtoD (Pageable -> Device)" stays as it is.
std::string StripSignature(std::string_view name);

/// StripSignature, then fitted into `width` columns: leading namespaces go first ("..::" stands for them) if the
/// template's head would not fit otherwise; then template arguments are cut from the end. Input of any bytes; output is
/// printable.
std::string ShortenName(std::string_view name, int width, bool unicode);

}  // namespace lockstep::report
