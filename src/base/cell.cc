#include "base/cell.h"

#include <utility>

#include "base/cell_json.h"
#include "base/json_writer.h"

namespace lockstep {

NestedCell::NestedCell(bool of_list) : is_list(of_list) {}
NestedCell::NestedCell(const NestedCell&) = default;
NestedCell::NestedCell(NestedCell&&) noexcept = default;
NestedCell& NestedCell::operator=(const NestedCell&) = default;
NestedCell& NestedCell::operator=(NestedCell&&) noexcept = default;
NestedCell::~NestedCell() = default;

void NestedCell::Add(Cell value, std::string_view name) { members.push_back({name, std::move(value)}); }

std::string NestedCell::Text() const {
  JsonWriter json;
  WriteCell(*this, &json);
  return json.Take();
}

bool NestedCell::operator==(const NestedCell& other) const {
  return is_list == other.is_list && members == other.members;
}

}  // namespace lockstep
