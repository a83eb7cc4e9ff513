#pragma once

#include <chrono>
#include <future>

namespace lockstep::cli {

/// Whether its value can be taken without waiting.
template <typename T>
bool IsReady(const std::future<T>& future) {
  return future.valid() && future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace lockstep::cli
