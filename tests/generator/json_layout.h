#pragma once

#include <string>
#include <string_view>

#include "generator/trace_spec.h"

namespace lockstep::tracegen {

/// The white space and punctuation of one writer.
struct JsonLayout {
  std::string_view before_event;  ///< Line break and indent before "{".
  std::string_view open;          ///< After "{" of an event.
  std::string_view same;          ///< Between two keys of one line.
  std::string_view next;          ///< Between two keys on two lines.
  std::string_view colon;
  std::string_view args_open;        ///< From "{" of the arguments to the first key.
  std::string_view host_argument;    ///< Between two arguments of CPU events.
  std::string_view device_argument;  ///< Between two arguments of runtime and device events.
  std::string_view args_close;       ///< From the last argument to "}".
  std::string_view close;            ///< From the last key to "}" of the event.
  bool whole_micros = false;
  bool short_micros = false;
  bool expand_arrays = false;
  bool spaced_arrays = true;
};

const JsonLayout& LayoutOf(Style style);

/// A JSON array given without white space ("[[16,1024],[]]"), as the layout writes it inside arguments.
std::string LayOutArray(std::string_view compact, const JsonLayout& layout);

}  // namespace lockstep::tracegen
