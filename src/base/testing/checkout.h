#pragma once

#include <filesystem>

/// Folders that tests read from.
namespace lockstep {

/// The checkout that the test was built from.
std::filesystem::path Checkout();

/// Recorded traces, logs and dumps: $LOCKSTEP_DATA, or else shared/data beside the checkout. May not be there.
std::filesystem::path SharedData();

}  // namespace lockstep
