// What the stand-in for NCCL sends with: ranks of one machine over Unix sockets, every two joined by one.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace fake_nccl {

struct Transfer {
  int peer = 0;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;  // One of the two.
  size_t bytes = 0;
};

class Mesh {
 public:
  /// Waits until all have come, as NCCL does, without an end.
  Mesh(const std::string& name, int rank, int size);

  /// In order for each peer and direction; all at once otherwise. False: aborted, or a peer is gone.
  bool Exchange(std::vector<Transfer> transfers);
  void Abort() { is_aborted_ = true; }

  const int rank;
  const int size;

 private:
  std::vector<int> sockets_;
  std::atomic<bool> is_aborted_ = false;
};

}  // namespace fake_nccl
