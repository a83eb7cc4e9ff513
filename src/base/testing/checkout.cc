#include "base/testing/checkout.h"

#include <cstdlib>

namespace lockstep {

// The only source that knows where it lies: compilers' caches know the others again in another checkout.
std::filesystem::path Checkout() { return LOCKSTEP_SOURCE_DIR; }

std::filesystem::path SharedData() {
  const char* named = std::getenv("LOCKSTEP_DATA");
  return named != nullptr ? std::filesystem::path(named) : Checkout().parent_path() / "shared/data";
}

}  // namespace lockstep
