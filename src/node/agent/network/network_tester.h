#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "node/control/api/network_test.h"

namespace lockstep::agent {

/// Tests of the network between this node and others, each on a thread of its own that ends within the test's limit.
/// Thread-safe.
class NetworkTester {
 public:
  static constexpr size_t kAtATime = 8;
  static constexpr size_t kOfOne = 4;  ///< Of one caller, so that none takes them all.
  static constexpr size_t kKept = 64;  ///< Finished tests that were not fetched; the oldest are dropped.

  explicit NetworkTester(std::string host);
  /// Ends what is under way.
  ~NetworkTester();
  NetworkTester(const NetworkTester&) = delete;
  NetworkTester& operator=(const NetworkTester&) = delete;

  /// Begins one end. `by`: the caller; only the same caller may ask for the result. A listening test is done when one
  /// peer has measured or its time limit is over. A peer that connects without the secret is disconnected after a
  /// second. Errors: kLimitExceeded (too many at a time), kIo (no socket to be had).
  Result<control::NetworkTest> Start(const control::NetworkTestSpec& spec, const std::string& by);
  /// How far it is. Errors: kNotFound.
  Result<control::NetworkTest> Get(const std::string& id, const std::string& by) const;

 private:
  struct Entry {
    control::NetworkTest test;
    std::string by;
    std::jthread thread;  // Last: ends before what it uses.
  };
  void Finish(Entry* entry, std::vector<control::NetworkPath> paths, const std::string& problem);
  void Serve(Entry* entry, const control::NetworkTestSpec& spec, const std::string& secret, UniqueFd listener);
  void Measure(Entry* entry, const control::NetworkTestSpec& spec);

  const std::string host_;
  UniqueFd stop_;        // An eventfd; readable once all is to end.
  mutable Mutex mutex_;  // Guards an entry's test too, not its thread.
  std::list<std::unique_ptr<Entry>> entries_ LOCKSTEP_GUARDED_BY(mutex_);
};

/// Addresses of this node's interfaces that are up, without loopback and link-local ones; of those whose name begins
/// as one of `prefixes` says, or all when that is empty.
std::vector<control::NetworkAddress> OwnAddresses(const std::vector<std::string>& prefixes);

}  // namespace lockstep::agent
