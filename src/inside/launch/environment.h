#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::launch {

/// Environment variables, looked up by name; as getenv, the first of two with one name counts.
class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string, std::less<>> variables) : variables_(std::move(variables)) {}

  /// This process's own.
  static Environment Own();
  /// Of "NAME=VALUE" lines or entries; what has no '=' is passed over.
  static Environment FromEntries(const std::vector<std::string>& entries);

  bool Has(std::string_view name) const { return variables_.find(name) != variables_.end(); }
  /// Empty when it is not set.
  std::string_view Get(std::string_view name) const;
  /// A number from 0 on, with nothing before or behind it; nullopt otherwise.
  std::optional<int32_t> Number(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace lockstep::launch
