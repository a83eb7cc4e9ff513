// Spans and requests with a trace context.
#include <fcntl.h>
#include <lockstep/trace.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "inside/trace/clock.h"
#include "inside/trace/recorder.h"

using lockstep::instrument::kOpen;
using lockstep::instrument::Now;
using lockstep::instrument::PlaceOf;
using lockstep::instrument::Publish;
using lockstep::instrument::recorder;
using lockstep::instrument::RecordKind;
using lockstep::instrument::Reserve;
using lockstep::instrument::Slot;
using lockstep::instrument::Word;

namespace {

// Ids must differ between processes and between the two sides of a fork: the kernel's random numbers, through a
// generator per thread (splitmix64) that is seeded again in a forked process.
__thread uint64_t random_state __attribute__((tls_model("initial-exec")));
__thread pid_t random_process __attribute__((tls_model("initial-exec")));

uint64_t NextRandom() {
  const pid_t process = getpid();
  if (random_process != process) {
    random_process = process;
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) {
      seed = Now() ^ static_cast<uint64_t>(process) << 32 ^ reinterpret_cast<uintptr_t>(&random_state);
    }
    random_state = seed;
  }
  random_state += 0x9e3779b97f4a7c15u;
  uint64_t z = random_state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return z == 0 ? 1 : z;
}

bool IsKnown(const lockstep_context& context) { return (context.trace_high | context.trace_low) != 0; }

lockstep_context ChildOf(const lockstep_context* parent) {
  if (parent != nullptr && IsKnown(*parent))
    return {parent->trace_high, parent->trace_low, NextRandom(), parent->flags};
  return {NextRandom(), NextRandom(), NextRandom(), 1};
}

void WriteLink(Slot* slot, const lockstep_context& own, const lockstep_context* parent) {
  const bool has_parent = parent != nullptr && IsKnown(*parent);
  slot[1] = {own.trace_high, own.trace_low};
  slot[2] = {has_parent ? parent->span_id : 0, 0};
  slot->tick = own.span_id;
  Publish(slot, Word(RecordKind::kLink, 0, 0));
}

/// Null: `own` is the parent's.
Slot* BeginLinked(uint32_t slots, const lockstep_context* parent, lockstep_context* own) {
  const bool records = __atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) != 0;
  Slot* const slot = records ? Reserve(slots + 3) : nullptr;
  if (slot == nullptr) {
    if (own != nullptr) *own = parent != nullptr ? *parent : lockstep_context{};
    return nullptr;
  }
  const lockstep_context context = ChildOf(parent);
  WriteLink(slot + slots, context, parent);
  if (own != nullptr) *own = context;
  return slot;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool ReadHex(const char* text, int digits, uint64_t* value) {
  *value = 0;
  for (int i = 0; i < digits; ++i) {
    const int digit = HexDigit(text[i]);
    if (digit < 0) return false;
    *value = *value << 4 | static_cast<uint64_t>(digit);
  }
  return true;
}

void RecordOfRequest(RecordKind kind, uint64_t request, uint64_t payload, uint64_t count) {
  if (request == 0 || __atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) == 0) return;
  Slot* const slot = Reserve(2);
  if (slot == nullptr) return;
  slot[1] = {request, count};
  slot->tick = Now();
  Publish(slot, Word(kind, 0, payload));
  recorder.WriteAnchor();
}

uint64_t last_request = 0;

}  // namespace

extern "C" {

lockstep_span_t lockstep_begin_linked(lockstep_name_t name, const lockstep_context* parent, lockstep_context* own) {
  Slot* const slot = BeginLinked(1, parent, own);
  if (slot == nullptr) return 0;
  slot->tick = Now();
  Publish(slot, Word(RecordKind::kSpan, name, kOpen));
  return PlaceOf(slot);
}

uint64_t lockstep_request_begin(lockstep_name_t kind, const lockstep_context* parent, lockstep_context* own) {
  Slot* const slot = BeginLinked(2, parent, own);
  if (slot == nullptr) return 0;
  const uint64_t request = __atomic_add_fetch(&last_request, 1, __ATOMIC_RELAXED);
  slot[1] = {request, 0};
  slot->tick = Now();
  Publish(slot, Word(RecordKind::kRequestBegin, kind, 0));
  return request;
}

void lockstep_request_output(uint64_t request, uint64_t count) {
  RecordOfRequest(RecordKind::kRequestOutput, request, 0, count);
}

void lockstep_request_end(uint64_t request, int failed) {
  RecordOfRequest(RecordKind::kRequestEnd, request, failed != 0 ? 1 : 0, 0);
}

int lockstep_context_read(const char* text, lockstep_context* context) {
  *context = {};
  // version "-" trace-id "-" parent-id "-" flags; what follows belongs to versions to come.
  if (text == nullptr || strnlen(text, LOCKSTEP_TRACEPARENT_BYTES - 1) < LOCKSTEP_TRACEPARENT_BYTES - 1) return 0;
  uint64_t version = 0;
  lockstep_context read = {};
  const bool is_one = ReadHex(text, 2, &version) && version != 0xff && text[2] == '-' &&
                      ReadHex(text + 3, 16, &read.trace_high) && ReadHex(text + 19, 16, &read.trace_low) &&
                      text[35] == '-' && ReadHex(text + 36, 16, &read.span_id) && text[52] == '-' &&
                      ReadHex(text + 53, 2, &read.flags) && (version == 0 ? text[55] == '\0' : true) && IsKnown(read) &&
                      read.span_id != 0;
  if (is_one) *context = read;
  return is_one ? 1 : 0;
}

void lockstep_context_write(const lockstep_context* context, char text[LOCKSTEP_TRACEPARENT_BYTES]) {
  snprintf(text, LOCKSTEP_TRACEPARENT_BYTES, "00-%016llx%016llx-%016llx-%02x",
           static_cast<unsigned long long>(context->trace_high), static_cast<unsigned long long>(context->trace_low),
           static_cast<unsigned long long>(context->span_id), static_cast<unsigned>(context->flags & 0xff));
}

}  // extern "C"
