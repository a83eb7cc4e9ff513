#include <lockstep/trace.h>
#include <string.h>

#include "inside/trace/clock.h"
#include "inside/trace/recorder.h"

using lockstep::instrument::anchor_due;
using lockstep::instrument::Finish;
using lockstep::instrument::kOpen;
using lockstep::instrument::Now;
using lockstep::instrument::PlaceOf;
using lockstep::instrument::Publish;
using lockstep::instrument::recorder;
using lockstep::instrument::RecordKind;
using lockstep::instrument::Reserve;
using lockstep::instrument::Slot;
using lockstep::instrument::Word;

extern "C" {

uint32_t lockstep_recording = 0;

lockstep_name_t lockstep_name(const char* text) { return lockstep_name_of(text, text == nullptr ? 0 : strlen(text)); }

lockstep_name_t lockstep_name_of(const char* text, size_t bytes) {
  return recorder.names().NumberOf(text, bytes, &recorder.file());
}

lockstep_span_t lockstep_span_start(lockstep_name_t name) {
  Slot* const slot = Reserve(1);
  if (__builtin_expect(slot == nullptr, 0)) return 0;
  slot->tick = Now();
  Publish(slot, Word(RecordKind::kSpan, name, kOpen));
  return PlaceOf(slot);
}

void lockstep_span_finish(lockstep_span_t span) {
  const uint64_t now = Now();
  Finish(span, now);
  if (__builtin_expect(now >= __atomic_load_n(&anchor_due, __ATOMIC_RELAXED), 0)) recorder.WriteAnchor();
}

void lockstep_mark(lockstep_name_t name) {
  if (__atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) == 0) return;
  Slot* const slot = Reserve(1);
  if (slot == nullptr) return;
  slot->tick = Now();
  Publish(slot, Word(RecordKind::kMark, name, 0));
}

void lockstep_counter(lockstep_name_t name, double value) {
  if (__atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) == 0) return;
  const uint64_t now = Now();
  constexpr double kBeyondInteger = 1099511627776.0;  // 2^40
  if (value >= 0 && value < kBeyondInteger && static_cast<double>(static_cast<int64_t>(value)) == value) {
    Slot* const slot = Reserve(1);
    if (slot == nullptr) return;
    slot->tick = now;
    Publish(slot, Word(RecordKind::kCounterInteger, name, static_cast<uint64_t>(static_cast<int64_t>(value))));
  } else {
    Slot* const slot = Reserve(2);
    if (slot == nullptr) return;
    memcpy(&slot[1].tick, &value, sizeof(value));
    slot->tick = now;
    Publish(slot, Word(RecordKind::kCounter, name, 0));
  }
  if (__builtin_expect(now >= __atomic_load_n(&anchor_due, __ATOMIC_RELAXED), 0)) recorder.WriteAnchor();
}

void lockstep_step(void) { recorder.Step(true, nullptr); }
void lockstep_step_number(int64_t number) { recorder.Step(true, &number); }
void lockstep_step_end(void) { recorder.Step(false, nullptr); }

void lockstep_trace_get_status(lockstep_trace_status* status) {
  status->path = recorder.file().path();
  status->file_bytes = recorder.file().used_bytes();
  status->dropped_records = recorder.file().dropped_records();
}

}  // extern "C"
