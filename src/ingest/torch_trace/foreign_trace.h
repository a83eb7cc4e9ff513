#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::ingest {

/// What other programs put into Chrome's format, which would be read as nothing or as something else: by names of
/// processes and by texts where a process id belongs. Each returns a sentence for an error, or an empty text.
std::string ForeignByProcessName(std::string_view process_name);
std::string ForeignByPlaces(const std::vector<std::string_view>& places);

}  // namespace lockstep::ingest
