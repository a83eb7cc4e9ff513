#include "generator/json_layout.h"

namespace lockstep::tracegen {
namespace {

constexpr JsonLayout kTorch22Layout = {.before_event = "\n  ",
                                       .open = "\n    ",
                                       .same = ", ",
                                       .next = ",\n    ",
                                       .colon = ": ",
                                       .args_open = "{\n      ",
                                       .host_argument = ", ",
                                       .device_argument = ",      ",
                                       .args_close = "\n    }",
                                       .close = "\n  }"};

constexpr JsonLayout kCurrentLayout = {.before_event = "\n  ",
                                       .open = "\n    ",
                                       .same = ", ",
                                       .next = ",\n    ",
                                       .colon = ": ",
                                       .args_open = "{\n      ",
                                       .host_argument = ",\n      ",
                                       .device_argument = ",\n      ",
                                       .args_close = "\n    }",
                                       .close = "\n  }"};

constexpr JsonLayout kMicrosecondsLayout = {.before_event = "\n  ",
                                            .open = "\n    ",
                                            .same = ", ",
                                            .next = ",\n    ",
                                            .colon = ": ",
                                            .args_open = "{\n      ",
                                            .host_argument = ",\n      ",
                                            .device_argument = ",\n      ",
                                            .args_close = "\n    }",
                                            .close = "\n  }",
                                            .whole_micros = true};

constexpr JsonLayout kIndent4Layout = {.before_event = "\n        ",
                                       .open = "\n            ",
                                       .same = ",\n            ",
                                       .next = ",\n            ",
                                       .colon = ": ",
                                       .args_open = "{\n                ",
                                       .host_argument = ",\n                ",
                                       .device_argument = ",\n                ",
                                       .args_close = "\n            }",
                                       .close = "\n        }",
                                       .short_micros = true,
                                       .expand_arrays = true};

constexpr JsonLayout kMinifiedLayout = {.before_event = "",
                                        .open = "",
                                        .same = ",",
                                        .next = ",",
                                        .colon = ":",
                                        .args_open = "{",
                                        .host_argument = ",",
                                        .device_argument = ",",
                                        .args_close = "}",
                                        .close = "}",
                                        .spaced_arrays = false};

}  // namespace

const JsonLayout& LayoutOf(Style style) {
  switch (style) {
    case Style::kTorch22: return kTorch22Layout;
    case Style::kCurrent: return kCurrentLayout;
    case Style::kMicroseconds: return kMicrosecondsLayout;
    case Style::kIndent4: return kIndent4Layout;
    case Style::kMinified: return kMinifiedLayout;
  }
  return kTorch22Layout;
}

std::string LayOutArray(std::string_view compact, const JsonLayout& layout) {
  std::string text;
  size_t indent = 16;
  const auto break_line = [&] {
    text += '\n';
    text.append(indent, ' ');
  };
  bool in_string = false;
  for (size_t i = 0; i < compact.size(); ++i) {
    const char c = compact[i];
    if (c == '"') in_string = !in_string;
    if (in_string || !(c == '[' || c == ']' || c == ',')) {
      text += c;
      continue;
    }
    if (c == ',') {
      text += c;
      if (layout.expand_arrays) {
        break_line();
      } else if (layout.spaced_arrays) {
        text += ' ';
      }
      continue;
    }
    const bool is_empty = c == '[' && i + 1 < compact.size() && compact[i + 1] == ']';
    if (is_empty) {
      text += "[]";
      ++i;
    } else if (c == '[') {
      text += c;
      indent += 4;
      if (layout.expand_arrays) break_line();
    } else {
      indent -= 4;
      if (layout.expand_arrays) break_line();
      text += c;
    }
  }
  return text;
}

}  // namespace lockstep::tracegen
