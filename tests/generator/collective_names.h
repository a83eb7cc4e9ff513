#pragma once

#include <string_view>

namespace lockstep::tracegen {

/// What one collective is called at each level of a trace.
struct CollectiveNames {
  const char* collective;     ///< "Collective name" of the metadata.
  const char* operator_name;  ///< c10d operator.
  const char* nccl_range;
  const char* gloo_range;
  const char* kernel;
  const char* plain;  ///< all_reduce, ...
};

const CollectiveNames& NamesOf(std::string_view collective);

}  // namespace lockstep::tracegen
