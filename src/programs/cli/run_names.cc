#include "programs/cli/run_names.h"

#include <filesystem>
#include <vector>

namespace lockstep::cli {
namespace {

std::vector<std::filesystem::path> PartsOf(const std::string& path) {
  std::vector<std::filesystem::path> parts;
  for (const std::filesystem::path& part : std::filesystem::path(path).lexically_normal()) {
    if (!part.empty()) parts.push_back(part);  // An empty one stands for a slash at the end.
  }
  if (parts.empty()) parts.emplace_back(path);
  return parts;
}

std::string Joined(const std::vector<std::filesystem::path>& parts) {
  std::filesystem::path path;
  for (const std::filesystem::path& part : parts) path /= part;
  return path.string();
}

}  // namespace

std::pair<std::string, std::string> RunNames(const std::string& a, const std::string& b) {
  std::vector<std::filesystem::path> left = PartsOf(a), right = PartsOf(b);
  while (left.size() > 1 && right.size() > 1 && left.front() == right.front()) {
    left.erase(left.begin());
    right.erase(right.begin());
  }
  while (left.size() > 1 && right.size() > 1 && left.back() == right.back()) {
    left.pop_back();
    right.pop_back();
  }
  return {Joined(left), Joined(right)};
}

}  // namespace lockstep::cli
