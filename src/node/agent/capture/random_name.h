#pragma once

#include <cstddef>
#include <string>

namespace lockstep::agent {

/// `length` characters of [a-z0-9] from the kernel's random source: five bits and more each, not to be guessed.
std::string RandomName(size_t length);

}  // namespace lockstep::agent
