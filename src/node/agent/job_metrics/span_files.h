#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "ingest/span_follow/span_follower.h"

namespace lockstep::agent {

/// The span trace that a process writes now, found among its open files: in any folder and mount namespace, and never a
/// file that another user has put somewhere.
class SpanFile {
 public:
  /// Nullptr: it has none (yet). `uid` owns the process; a file of another user is not read.
  static std::unique_ptr<SpanFile> Find(int32_t pid, uint32_t uid, const std::string& root = "/proc");

  ingest::span_follow::SpanFollower& follower() { return follower_; }
  /// Whether the process still has this file open; after exec it has another.
  bool IsOpen(int32_t pid, const std::string& root = "/proc") const;

 private:
  SpanFile(UniqueFd file, int number, std::pair<uint64_t, uint64_t> identity,
           ingest::span_follow::SpanFollower follower)
      : file_(std::move(file)), number_(number), identity_(identity), follower_(std::move(follower)) {}

  UniqueFd file_;
  int number_;                              ///< Of the process's descriptor.
  std::pair<uint64_t, uint64_t> identity_;  ///< Device and inode.
  ingest::span_follow::SpanFollower follower_;
};

}  // namespace lockstep::agent
