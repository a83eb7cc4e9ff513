#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include "base/cell.h"

namespace lockstep {

/// The value to a writer of base/json_writer.h.
template <typename Json>
void WriteCell(const Cell& cell, Json* json) {
  std::visit(
      [json](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::monostate>) {
          json->Null();
        } else if constexpr (std::is_same_v<Value, bool>) {
          json->Bool(value);
        } else if constexpr (std::is_same_v<Value, int64_t>) {
          json->Int(value);
        } else if constexpr (std::is_same_v<Value, uint64_t>) {
          json->Uint(value);
        } else if constexpr (std::is_same_v<Value, double>) {
          json->Double(value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          json->Text(value);
        } else {
          value.is_list ? json->StartArray() : json->StartObject();
          for (const NestedMember& member : value.members) {
            if (!value.is_list) json->Key(member.name);
            WriteCell(member.value, json);
          }
          value.is_list ? json->EndArray() : json->EndObject();
        }
      },
      cell);
}

}  // namespace lockstep
