#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ingest {

/// Recognises other programs' traces in Chrome's format, which would be misread: by names of processes, and by texts in
/// place of a process id. Each returns a sentence for an error, or an empty text.
std::string ForeignByProcessName(std::string_view process_name);
std::string ForeignByPlaces(const std::vector<std::string_view>& places);

}  // namespace lockstep::ingest
