#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::agent {

constexpr size_t kMostEngineBytes = size_t{8} << 20;
constexpr size_t kMostEngineBytesHeld = size_t{32} << 20;  ///< Of all answers under way.

/// Asks engines for their metrics, all at once. Connections are kept. Of one thread, but for Stop().
class EngineClient {
 public:
  struct Ask {
    std::string url;
    std::string token;  ///< Sent as a bearer's; empty: none.
  };
  EngineClient();
  ~EngineClient();
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  /// Hands out each answer (by its place in `asks`) as soon as it is complete, within `timeout` in all, and then drops
  /// it. Redirects are not followed, no proxy is used. Errors: kIo (not reachable, or a status other than 200),
  /// kCancelled (too late), kLimitExceeded (over kMostEngineBytes, or the longest of answers that are over
  /// kMostEngineBytesHeld together).
  using Take = std::function<void(size_t ask_idx, Result<std::string> answer)>;
  void Fetch(const std::vector<Ask>& asks, std::chrono::milliseconds timeout, const Take& take);
  /// Ends a Fetch() under way, and all that come.
  void Stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::agent
