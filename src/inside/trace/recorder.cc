#include "inside/trace/recorder.h"

#include <lockstep/trace.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <type_traits>

#include "inside/trace/chunk_header.h"
#include "inside/trace/clock.h"
#include "inside/trace/process_memory.h"

namespace lockstep::instrument {

__thread ThreadState thread_state __attribute__((tls_model("initial-exec")));
uint64_t anchor_due = UINT64_MAX;
Recorder recorder;
// A constructor would run after that of the library, which may have begun to record.
static_assert(std::is_trivially_default_constructible_v<Recorder>);

namespace {

constexpr uint32_t kFirstChunkBytes = kPageBytes;  // Threads by the thousand stay cheap.
// In the processor's second cache together with the job's own data.
constexpr uint32_t kLargestChunkBytes = uint32_t{64} << 10;
constexpr uint32_t kSmallestCopyBytes = uint32_t{16} << 10;  // What is smaller stays where it is.
static_assert(kLargestChunkBytes / sizeof(Slot) <= kMostSlots);
constexpr uint64_t kFirstAnchorTicks = 2'000'000;  // About a millisecond.
constexpr uint64_t kLastAnchorTicks = 2'000'000'000;
// Far less than a second of any clock, and more than steps of a job take together between two looks at the time.
constexpr uint64_t kMemoryTicks = 20'000'000;
constexpr int64_t kMemoryNs = 1'000'000'000;

void EndThreadOf(void*) { recorder.EndThread(); }

}  // namespace

void Recorder::Configure(const char* folder, uint64_t limit_bytes, bool keeps_newest) {
  pthread_mutex_lock(&mutex_);
  if (!is_configured()) {
    snprintf(settings_.folder, sizeof(settings_.folder), "%s", folder);
    settings_.limit_bytes = limit_bytes;
    settings_.keeps_newest = keeps_newest;
    settings_.clock = ChooseClock();
    has_thread_key_ = pthread_key_create(&thread_key_, EndThreadOf) == 0;
  }
  pthread_mutex_unlock(&mutex_);
}

// Under the lock.
bool Recorder::OpenFile() {
  if (!is_configured()) return false;
  failed_ = failed_ || !file_.Open(settings_);
  if (failed_) {
    __atomic_store_n(&lockstep_recording, 0, __ATOMIC_RELAXED);
    return false;
  }
  names_.BeginFile(&file_);
  anchor_step_ = kFirstAnchorTicks;
  __atomic_store_n(&anchor_due, Now() + anchor_step_, __ATOMIC_RELAXED);
  return true;
}

void Recorder::BeginChunk(const Chunk& chunk) {
  ThreadState& thread = thread_state;
  WriteChunkHeader(chunk, ChunkKind::kRecords, thread.number, &file_);
  thread.header = chunk.header;
  thread.chunk_number = chunk.header->chunk_number;
  thread.begin = reinterpret_cast<Slot*>(chunk.header + 1);
  thread.next = thread.begin;
  thread.limit = thread.begin + (chunk.size_bytes - sizeof(ChunkHeader)) / sizeof(Slot);
}

Slot* Recorder::Refill(uint32_t count) {
  ThreadState& thread = thread_state;
  if (file_.is_full()) {  // Before any lock: the job may go on for days like this.
    file_.CountDroppedRecord();
    return nullptr;
  }
  if (thread.header != nullptr && thread.header->size_bytes >= kSmallestCopyBytes) {
    if (!file_.Append(thread.header)) {
      file_.CountDroppedRecord();
      return nullptr;
    }
    // Killed from here on, the process leaves the copy; before, both, which have one number.
    const Chunk again = {thread.header, thread.header->size_bytes};
    EmptyChunk(again.header, again.size_bytes);
    BeginChunk(again);
    return thread.next;
  }
  pthread_mutex_lock(&mutex_);
  const bool is_open = file_.is_open() || OpenFile();
  if (is_open && thread.number == 0) thread.number = ++thread_count_;
  pthread_mutex_unlock(&mutex_);
  const uint32_t wanted = thread.chunk_count == 0 ? kFirstChunkBytes : kLargestChunkBytes;
  const auto least = static_cast<uint32_t>(sizeof(ChunkHeader) + count * sizeof(Slot));
  // The oldest chunk that is not being written may be our own. In other files, spans in it can still end if there is no
  // other chunk.
  if (is_open && file_.keeps_newest()) LeaveChunk();
  const Chunk chunk = is_open ? file_.Take(wanted, least) : Chunk{};
  if (chunk.header == nullptr) {
    file_.CountDroppedRecord();
    return nullptr;
  }
  LeaveChunk();
  BeginChunk(chunk);
  if (thread.chunk_count++ == 0 && has_thread_key_) pthread_setspecific(thread_key_, &thread);
  return thread.next;
}

// The state first: others may write there as soon as it is left, so what ends a span of ours is a record of its own.
void Recorder::LeaveChunk() {
  ThreadState& thread = thread_state;
  if (thread.header == nullptr) return;
  ChunkHeader* const chunk = thread.header;
  Slot* const rest = thread.next;
  const auto rest_bytes = static_cast<uint32_t>((thread.limit - rest) * sizeof(Slot));
  thread = {.next = nullptr,
            .limit = nullptr,
            .begin = nullptr,
            .chunk_number = 0,
            .header = nullptr,
            .number = thread.number,
            .chunk_count = thread.chunk_count};
  file_.Leave(chunk, rest, rest_bytes);
}

void Recorder::EndThread() {
  LeaveChunk();
  thread_state = {};
}

void Recorder::FinishElsewhere(uint64_t place, uint64_t now) {
  Slot* const slot = Reserve(2);
  if (slot == nullptr) return;
  slot[1] = {place, 0};
  slot->tick = now;
  Publish(slot, Word(RecordKind::kEnd, 0, 0));
}

// Dense at first, so that a short program's ticks are known well too, then one a second.
void Recorder::WriteAnchor() {
  uint64_t due = __atomic_load_n(&anchor_due, __ATOMIC_RELAXED);
  const uint64_t now = Now();
  const uint64_t step = __atomic_load_n(&anchor_step_, __ATOMIC_RELAXED);
  if (now < due ||
      !__atomic_compare_exchange_n(&anchor_due, &due, now + step, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return;
  __atomic_store_n(&anchor_step_, step >= kLastAnchorTicks ? step : step * 2, __ATOMIC_RELAXED);
  Slot* const slot = Reserve(2);
  if (slot == nullptr) return;
  const Anchor anchor = ReadAnchor();
  slot[1] = {static_cast<uint64_t>(anchor.monotonic_ns), static_cast<uint64_t>(anchor.wall_ns)};
  slot->tick = anchor.tick;
  Publish(slot, Word(RecordKind::kAnchor, 0, anchor.bracket_ticks < kMaxPayload ? anchor.bracket_ticks : kMaxPayload));
}

void Recorder::Step(bool begins, const int64_t* number) {
  pthread_mutex_lock(&step_mutex_);
  const uint64_t now = Now();
  if (step_ != 0) Finish(step_, now);
  step_ = 0;
  if (number != nullptr) next_step_ = *number;
  if (begins && __atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) != 0) {
    Slot* const slot = Reserve(2);
    if (slot != nullptr) {
      slot[1] = {static_cast<uint64_t>(next_step_), 0};
      slot->tick = now;
      Publish(slot, Word(RecordKind::kStep, 0, kOpen));
      step_ = PlaceOf(slot);
    }
  }
  if (begins) ++next_step_;
  const bool is_memory_due = now >= memory_tick_ && IsMemoryDue(now);
  pthread_mutex_unlock(&step_mutex_);
  WriteAnchor();
  if (is_memory_due) WriteMemory();
}

// First a second after the first step: a program that is over by then is not measured.
bool Recorder::IsMemoryDue(uint64_t now) {
  memory_tick_ = now + kMemoryTicks;
  const int64_t now_ns = Nanoseconds(CLOCK_MONOTONIC);
  if (now_ns < memory_ns_) return false;
  const bool is_first = memory_ns_ == 0;
  memory_ns_ = now_ns + kMemoryNs;
  return !is_first;
}

// The names are model/stages/rank_memory.h's.
void Recorder::WriteMemory() {
  const auto count = [](const char* name, uint64_t bytes) {
    if (bytes > 0) lockstep_counter(lockstep_name(name), static_cast<double>(bytes));
  };
  const ProcessMemory memory = ReadProcessMemory();
  count("rank_resident_memory_bytes", memory.resident_bytes);
  count("host_memory_total_bytes", memory.host_bytes);
}

void Recorder::Close() {
  if (file_.is_open()) file_.Close(ReadAnchor());
}

void Recorder::BeforeFork() {
  pthread_mutex_lock(&step_mutex_);
  pthread_mutex_lock(&mutex_);
  names_.Lock();
  file_.Lock();
}

void Recorder::AfterFork(bool in_child) {
  if (in_child) {
    settings_.parent_id = file_.is_open() ? static_cast<uint64_t>(getppid()) : settings_.parent_id;
    file_.Abandon();
    names_.Abandon();
    thread_state = {};
    thread_count_ = 0;
    step_ = 0;
    memory_ns_ = 0;
    __atomic_store_n(&anchor_due, UINT64_MAX, __ATOMIC_RELAXED);
  }
  file_.Unlock();
  names_.Unlock();
  pthread_mutex_unlock(&mutex_);
  pthread_mutex_unlock(&step_mutex_);
}

}  // namespace lockstep::instrument
