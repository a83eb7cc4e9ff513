#include "base/thread_communicator.h"

#include <barrier>
#include <thread>
#include <utility>

namespace lockstep {
namespace {

/// What the threads share. The barrier orders every access.
struct Exchange {
  explicit Exchange(size_t count) : meeting(static_cast<std::ptrdiff_t>(count)), bytes(count) {}
  std::barrier<> meeting;
  std::vector<std::string> bytes;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(size_t process, Exchange* exchange) : process_(process), exchange_(*exchange) {}

  size_t process() const override { return process_; }
  size_t process_count() const override { return exchange_.bytes.size(); }
  Traffic traffic() const override { return traffic_; }

  void Broadcast(std::string* bytes) override {
    ++traffic_.message_count;
    if (is_root()) exchange_.bytes[0] = *bytes;
    exchange_.meeting.arrive_and_wait();
    if (is_root()) {
      traffic_.sent_bytes += bytes->size();
    } else {
      *bytes = exchange_.bytes[0];
      traffic_.received_bytes += bytes->size();
    }
    exchange_.meeting.arrive_and_wait();
  }

  std::vector<std::string> Gather(std::string bytes) override {
    ++traffic_.message_count;
    if (!is_root()) traffic_.sent_bytes += bytes.size();
    exchange_.bytes[process_] = std::move(bytes);
    exchange_.meeting.arrive_and_wait();
    std::vector<std::string> gathered;
    if (is_root()) {
      gathered = std::exchange(exchange_.bytes, std::vector<std::string>(exchange_.bytes.size()));
      for (size_t i = 1; i < gathered.size(); ++i) traffic_.received_bytes += gathered[i].size();
    }
    exchange_.meeting.arrive_and_wait();
    return gathered;
  }

 private:
  const size_t process_;
  Exchange& exchange_;
  Traffic traffic_;
};

}  // namespace

void RunOnThreads(size_t process_count, const std::function<void(Communicator&)>& body) {
  Exchange exchange(process_count);
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < process_count; ++i) {
    threads.emplace_back([i, &exchange, &body] {
      ThreadCommunicator own(i, &exchange);
      body(own);
    });
  }
  ThreadCommunicator root(0, &exchange);
  body(root);
}

}  // namespace lockstep
