#include "analysis/hang/signature_match.h"

namespace lockstep::hang {

bool Match(const JobView& view, uint32_t a, uint32_t b) {
  if (a == b) {
    return true;
  }
  const Signature& first = view.signatures[a];
  const Signature& second = view.signatures[b];
  const auto is_blank_launch = [](const Signature& signature) {
    return signature.kind == OperationKind::kCoalesced && signature.parts.empty();
  };
  if (is_blank_launch(first) || is_blank_launch(second)) {
    return true;  // Older versions record a launch and not what it holds.
  }
  if (first.kind != second.kind || first.name != second.name || first.parts.size() != second.parts.size()) {
    return false;
  }
  for (size_t i = 0; i < first.parts.size(); ++i) {
    if (!Match(view, first.parts[i], second.parts[i])) {
      return false;
    }
  }
  const bool same_elements = first.elements == second.elements || first.elements < 0 || second.elements < 0;
  const bool same_dtype = first.dtype == second.dtype || first.dtype == 0 || second.dtype == 0;
  return same_elements && same_dtype;
}

}  // namespace lockstep::hang
