// A rank that does what it is told, a line of its standard input at a time, records it by liblockstep, and says "done".
//   step FORWARD_MS BACKWARD_MS REDUCE_MS OTHER_MS   the all_reduce lies inside the backward
//   train INPUT_MS FORWARD_MS BACKWARD_MS REDUCE_MS  a step with all stages of a small training; the last of four
//   reduces waits request OUTPUTS MS_EACH FAILED count NAME VALUE burst EVENTS                                     as
//   fast as it can pace EVENTS STEP_MS SECONDS                      so many a second, in steps of that length
#include <chrono>
#include <cstdint>
#include <iostream>
#include <lockstep/trace.hpp>
#include <sstream>
#include <string>
#include <thread>

namespace {

void Spend(int ms) {
  // A busy processor would make sleeping longer than asked for: the test allows for that, never for less.
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

void Step(std::istream& words) {
  int forward_ms = 0, backward_ms = 0, reduce_ms = 0, other_ms = 0;
  words >> forward_ms >> backward_ms >> reduce_ms >> other_ms;
  lockstep_step();
  {
    LOCKSTEP_SPAN("forward");
    Spend(forward_ms);
  }
  {
    LOCKSTEP_SPAN("backward");
    Spend(backward_ms);
    LOCKSTEP_SPAN("all_reduce");
    Spend(reduce_ms);
  }
  Spend(other_ms);
  lockstep_step_end();
}

void Train(std::istream& words) {
  int input_ms = 0, forward_ms = 0, backward_ms = 0, reduce_ms = 0;
  words >> input_ms >> forward_ms >> backward_ms >> reduce_ms;
  lockstep_step();
  {
    LOCKSTEP_SPAN("input");
    Spend(input_ms);
  }
  { LOCKSTEP_SPAN("h2d"); }
  {
    LOCKSTEP_SPAN("forward");
    Spend(forward_ms);
  }
  {
    LOCKSTEP_SPAN("backward");
    Spend(backward_ms);
    for (int bucket = 0; bucket < 4; ++bucket) {
      LOCKSTEP_SPAN("all_reduce");
      Spend(bucket == 3 ? reduce_ms : 0);
    }
  }
  {
    LOCKSTEP_SPAN("optimizer");
    Spend(1);
  }
  lockstep_step_end();
}

void Request(std::istream& words) {
  int outputs = 0, each_ms = 0, failed = 0;
  words >> outputs >> each_ms >> failed;
  const uint64_t request = lockstep_request_begin(lockstep_name("generate"), nullptr, nullptr);
  for (int i = 0; i < outputs; ++i) {
    Spend(each_ms);
    lockstep_request_output(request, 1);
  }
  lockstep_request_end(request, failed);
}

void Burst(std::istream& words) {
  int64_t events = 0;
  words >> events;
  for (int64_t i = 0; i < events; ++i) {
    LOCKSTEP_SPAN("burst");
  }
}

void Pace(std::istream& words) {
  using Clock = std::chrono::steady_clock;
  int64_t events = 0, step_ms = 0, seconds = 0;
  words >> events >> step_ms >> seconds;
  const Clock::time_point began = Clock::now();
  const Clock::time_point end = began + std::chrono::seconds(seconds);
  int64_t recorded = 0;
  for (int64_t step = 1; Clock::now() < end; ++step) {
    lockstep_step();
    const Clock::time_point step_end = began + std::chrono::milliseconds(step * step_ms);
    LOCKSTEP_SPAN("forward");
    // What is due by now, every few milliseconds.
    for (Clock::time_point now = Clock::now(); now < step_end; now = Clock::now()) {
      const auto due =
          static_cast<int64_t>(std::chrono::duration<double>(now - began).count() * static_cast<double>(events));
      for (; recorded < due; ++recorded) {
        LOCKSTEP_SPAN("kernel");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    lockstep_step_end();
  }
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "step") Step(words);
    if (what == "train") Train(words);
    if (what == "request") Request(words);
    if (what == "burst") Burst(words);
    if (what == "pace") Pace(words);
    if (what == "count") {
      std::string name;
      double value = 0;
      words >> name >> value;
      lockstep_counter(lockstep_name(name.c_str()), value);
    }
    std::cout << "done" << std::endl;
  }
}
