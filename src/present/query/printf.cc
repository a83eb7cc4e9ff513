#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "present/query/functions.h"

namespace lockstep::query {
namespace {

// SQLite's own printf() spends seconds on '%1000000000d' and '%.*c', and nothing can interrupt it.
constexpr int kWidest = 1000;

constexpr const char* kRefusal = "printf: widths and precisions are numbers up to 1000";

// "%-5.1f", without the letter.
struct Conversion {
  std::string head;
  char letter = 0;
  bool sound = true;
};

Conversion ReadConversion(std::string_view format, size_t* at) {
  Conversion conversion;
  conversion.head = "%";
  size_t i = *at + 1;
  const auto copy_while = [&](std::string_view allowed) {
    std::string taken;
    while (i < format.size() && allowed.find(format[i]) != std::string_view::npos) taken += format[i++];
    conversion.head += taken;
    return taken;
  };
  const auto check = [&](const std::string& digits) {
    conversion.sound = conversion.sound && digits.size() <= 4 && (digits.empty() || std::stoi(digits) <= kWidest);
  };
  conversion.sound = copy_while("-+ 0#,!").size() <= 7;
  check(copy_while("0123456789"));
  if (i < format.size() && format[i] == '.') {
    conversion.head += format[i++];
    check(copy_while("0123456789"));
  }
  while (i < format.size() && format[i] == 'l') ++i;
  if (i < format.size()) {
    conversion.letter = format[i++];
  }
  if (conversion.letter == '*' || conversion.letter == 0) conversion.sound = false;
  *at = i;
  return conversion;
}

using Formatted = std::unique_ptr<char, void (*)(void*)>;

// One value by SQLite's rules. The head was checked, so that it can not ask for more arguments.
Formatted Format(const Conversion& conversion, sqlite3_value* value) {
  const std::string head = conversion.head;
  char* text = nullptr;
  switch (conversion.letter) {
    case 'd':
    case 'i': text = sqlite3_mprintf((head + "lld").c_str(), value == nullptr ? 0 : sqlite3_value_int64(value)); break;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      text =
          sqlite3_mprintf((head + "ll" + conversion.letter).c_str(), value == nullptr ? 0 : sqlite3_value_int64(value));
      break;
    case 'f':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
      text = sqlite3_mprintf((head + conversion.letter).c_str(), value == nullptr ? 0.0 : sqlite3_value_double(value));
      break;
    default: {
      const auto* words = value == nullptr ? nullptr : reinterpret_cast<const char*>(sqlite3_value_text(value));
      const bool null_counts = conversion.letter == 'Q';
      text = sqlite3_mprintf((head + conversion.letter).c_str(), words == nullptr && !null_counts ? "" : words);
    }
  }
  return {text, sqlite3_free};
}

void Printf(sqlite3_context* context, int count, sqlite3_value** values) {
  if (count == 0 || sqlite3_value_type(values[0]) == SQLITE_NULL) return sqlite3_result_null(context);
  const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  if (data == nullptr) return sqlite3_result_error_nomem(context);
  const std::string_view format(data, static_cast<size_t>(sqlite3_value_bytes(values[0])));
  const auto most = static_cast<size_t>(sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  int next = 1;
  try {
    std::string text;
    for (size_t at = 0; at < format.size();) {
      if (format[at] != '%') {
        text += format[at++];
        continue;
      }
      const Conversion conversion = ReadConversion(format, &at);
      if (!conversion.sound) return sqlite3_result_error(context, kRefusal, -1);
      if (conversion.letter == '%') {
        text += '%';
        continue;
      }
      if (std::string_view("diuxXofeEgGsqQw").find(conversion.letter) == std::string_view::npos)
        return sqlite3_result_error(context, "printf: conversions are d i u x X o f e E g G s q Q w %", -1);
      const Formatted formatted = Format(conversion, next < count ? values[next] : nullptr);
      ++next;
      if (formatted == nullptr) return sqlite3_result_error_nomem(context);
      text += formatted.get();
      if (text.size() > most) return sqlite3_result_error_toobig(context);
    }
    sqlite3_result_text64(context, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

int RegisterPrintf(sqlite3* connection) {
  for (const char* name : {"printf", "format"}) {
    const int code =
        sqlite3_create_function_v2(connection, name, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, nullptr,
                                   Printf, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

}  // namespace lockstep::query
