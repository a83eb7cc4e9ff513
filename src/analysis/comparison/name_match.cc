#include "analysis/comparison/name_match.h"

#include <cctype>
#include <map>
#include <set>

namespace lockstep::comparison {

const char* NameMatchName(NameMatch match) {
  static constexpr const char* kNames[] = {"none", "exact", "normalised"};
  return kNames[static_cast<size_t>(match)];
}

std::string NormaliseName(std::string_view name) {
  static constexpr std::string_view kVoid = "void ";
  if (name.starts_with(kVoid)) name.remove_prefix(kVoid.size());
  static constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  std::string text;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    const char c = name[i];
    if (c == '<' || c == '(' || c == '{') {
      ++depth;
    } else if ((c == '>' || c == ')' || c == '}') && depth > 0) {
      --depth;
    } else if (depth == 0) {
      text += c;
      if (c == '#') {
        while (i + 1 < name.size() && std::isdigit(static_cast<unsigned char>(name[i + 1])) != 0) ++i;
      }
    }
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  // "Memcpy HtoD (Pageable -> Device)" and the like: what is in the brackets tells them apart.
  if (text.empty() || name.starts_with("Memcpy") || name.starts_with("Memset")) return std::string(name);
  return text;
}

std::vector<NamePair> MatchNames(const std::vector<NameProfile>& a, const std::vector<NameProfile>& b) {
  using Key = std::pair<EventClass, std::string>;
  std::map<Key, size_t> exact;
  for (size_t i = 0; i < b.size(); ++i) exact[{b[i].kind, b[i].name}] = i;
  std::vector<NamePair> pairs;
  std::set<size_t> taken;
  std::map<Key, std::vector<size_t>> loose_a;  // pairs by normalised name
  for (size_t i = 0; i < a.size(); ++i) {
    const auto found = exact.find({a[i].kind, a[i].name});
    if (found != exact.end()) {
      pairs.push_back({NameMatch::kExact, i, found->second});
      taken.insert(found->second);
    } else {
      loose_a[{a[i].kind, NormaliseName(a[i].name)}].push_back(pairs.size());
      pairs.push_back({NameMatch::kNone, i, {}});
    }
  }
  std::map<Key, std::vector<size_t>> loose_b;
  for (size_t i = 0; i < b.size(); ++i) {
    if (!taken.contains(i)) loose_b[{b[i].kind, NormaliseName(b[i].name)}].push_back(i);
  }
  for (const auto& [key, rows] : loose_a) {
    const auto found = loose_b.find(key);
    if (rows.size() != 1 || found == loose_b.end() || found->second.size() != 1) continue;
    pairs[rows.front()].match = NameMatch::kNormalised;
    pairs[rows.front()].b = found->second.front();
    taken.insert(found->second.front());
  }
  for (size_t i = 0; i < b.size(); ++i) {
    if (!taken.contains(i)) pairs.push_back({NameMatch::kNone, {}, i});
  }
  return pairs;
}

}  // namespace lockstep::comparison
