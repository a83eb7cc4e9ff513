#include "inside/trace/python/process_groups.h"

#include <algorithm>
#include <array>
#include <vector>

#include "inside/trace/python/device_clock.h"

namespace lockstep::hooks {
namespace {

// Beyond these numbers nothing is known of a group, or of a Work that nobody waits for, but that not all ranks meet
// there.
constexpr size_t kMostGroups = 256;
constexpr size_t kMostWorks = 4096;

struct Group {
  PyObject* group = nullptr;  ///< A weak reference.
  std::optional<std::string> name;
  std::array<lockstep_name_t, 4> waits = {};  ///< For all members, for one; on the device; 0: not asked for so far.
};
std::vector<Group> groups;

bool AllRanksAreOne() {
  return std::all_of(groups.begin(), groups.end(), [](const Group& known) { return known.name == ""; });
}

}  // namespace

size_t NumberOfGroup(PyObject* group, std::optional<std::string> (*name_of)(PyObject*)) {
  size_t number = groups.size();
  for (size_t i = 0; i < groups.size(); ++i) {
    PyObject* const known = PyWeakref_GetObject(groups[i].group);
    if (known == group) return i;
    if (known == Py_None) number = std::min(number, i);
  }
  if (number == kMostGroups) return number;
  PyObject* const weak = PyWeakref_NewRef(group, nullptr);
  if (weak == nullptr) {
    PyErr_Clear();
    return kMostGroups;
  }
  if (number == groups.size()) {
    groups.emplace_back();
  } else {
    Py_DECREF(groups[number].group);
  }
  groups[number] = {weak, name_of(group), {}};
  return number;
}

lockstep_name_t WaitName(const Issued& issued, bool on_device) {
  static Group unknown;
  static Group all{nullptr, "", {}};
  Group& group = issued.group < groups.size() ? groups[issued.group] : AllRanksAreOne() ? all : unknown;
  const bool is_pairwise = issued.is_pairwise || !group.name;
  lockstep_name_t& name = group.waits[(on_device ? 2 : 0) + (is_pairwise ? 1 : 0)];
  if (name == 0) {
    const std::string whose = group.name.value_or("");
    const std::string text = (on_device ? std::string(kDeviceStage) : "") + whose + (whose.empty() ? "" : "/") +
                             (is_pairwise ? "p2p" : "comm");
    name = lockstep_name(text.c_str());
  }
  return name;
}

void AwaitedWorks::Remember(const void* what, const Issued& issued) {
  if (issued_.size() == kMostWorks) issued_.clear();
  issued_[what] = issued;
}

std::optional<Issued> AwaitedWorks::Take(const void* what) {
  const auto found = issued_.find(what);
  if (found == issued_.end()) return std::nullopt;
  const Issued issued = found->second;
  issued_.erase(found);
  return issued;
}

}  // namespace lockstep::hooks
