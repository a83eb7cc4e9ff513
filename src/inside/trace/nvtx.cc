// liblockstep as NVTX's injection library: with NVTX_INJECTION64_PATH naming it, what a program marks with NVTX is
// recorded with no change and without Nsight. A range of a domain is called "domain:range", as in exports of Nsight
// Systems.
#include <lockstep/trace.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "inside/trace/nvtx_interface.h"

namespace {

namespace nvtx = lockstep::instrument::nvtx;
using nvtx::EventAttributes;
using nvtx::MessageType;

constexpr size_t kTextBytes = 2048;
constexpr char kNoName[] = "(no name)";

struct Domain {
  char name[256];
};

/// Text, put together on the stack.
class Text {
 public:
  explicit Text(const Domain* domain) {
    if (domain == nullptr) return;
    Add(domain->name);
    if (size_ > 0) Add(":");
  }
  void Add(const char* text) {
    for (; text != nullptr && *text != '\0' && size_ < kTextBytes; ++text) bytes_[size_++] = *text;
  }
  /// UTF-32, as wchar_t is here, to UTF-8.
  void Add(const wchar_t* text) {
    for (; text != nullptr && *text != L'\0' && size_ + 4 < kTextBytes; ++text) {
      const auto c = static_cast<uint32_t>(*text);
      if (c < 0x80) {
        bytes_[size_++] = static_cast<char>(c);
        continue;
      }
      const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
      constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
      bytes_[size_++] = static_cast<char>((kLead[more] | c >> (6 * more)) & 0xff);
      for (int i = more - 1; i >= 0; --i) bytes_[size_++] = static_cast<char>(0x80 | (c >> (6 * i) & 0x3f));
    }
  }
  lockstep_name_t Number() const { return size_ == 0 ? lockstep_name(kNoName) : lockstep_name_of(bytes_, size_); }

 private:
  char bytes_[kTextBytes];
  size_t size_ = 0;
};

template <typename Character>
lockstep_name_t NumberOf(const Domain* domain, const Character* text) {
  Text whole(domain);
  whole.Add(text);
  return whole.Number();
}

lockstep_name_t NumberOf(const Domain* domain, const EventAttributes* event) {
  if (event == nullptr || event->size < sizeof(EventAttributes)) return lockstep_name(kNoName);
  switch (event->message_type) {
    case MessageType::kAscii: return NumberOf(domain, static_cast<const char*>(event->message));
    case MessageType::kUnicode: return NumberOf(domain, static_cast<const wchar_t*>(event->message));
    case MessageType::kRegistered: return static_cast<lockstep_name_t>(reinterpret_cast<uintptr_t>(event->message));
    default: return lockstep_name(kNoName);
  }
}

/// Ranges that a thread has pushed and not popped; each domain has a stack of its own.
struct Stack {
  static constexpr int kMost = 256;
  struct Pushed {
    const Domain* domain;
    lockstep_span_t span;
  };
  Pushed pushed[kMost];
  int count;
  int beyond;  ///< Pushed while it was full.
};
__thread Stack* stack_of_thread __attribute__((tls_model("initial-exec")));
pthread_key_t stack_key;
pthread_once_t stack_key_once = PTHREAD_ONCE_INIT;

void FreeStack(void* stack) {
  free(stack);
  stack_of_thread = nullptr;
}
void MakeStackKey() { pthread_key_create(&stack_key, FreeStack); }

int Push(const Domain* domain, lockstep_name_t name) {
  if (stack_of_thread == nullptr) {
    stack_of_thread = static_cast<Stack*>(calloc(1, sizeof(Stack)));
    if (stack_of_thread == nullptr) return -1;
    pthread_once(&stack_key_once, MakeStackKey);
    pthread_setspecific(stack_key, stack_of_thread);
  }
  Stack& stack = *stack_of_thread;
  if (stack.count == Stack::kMost) return Stack::kMost + stack.beyond++;
  stack.pushed[stack.count] = {domain, lockstep_begin(name)};
  return stack.count++;
}

int Pop(const Domain* domain) {
  Stack* const stack = stack_of_thread;
  if (stack == nullptr) return -1;
  if (stack->beyond > 0) return Stack::kMost + --stack->beyond;
  int i = stack->count - 1;
  while (i >= 0 && stack->pushed[i].domain != domain) --i;
  if (i < 0) return -1;
  lockstep_end(stack->pushed[i].span);
  memmove(&stack->pushed[i], &stack->pushed[i + 1], static_cast<size_t>(stack->count - i - 1) * sizeof(Stack::Pushed));
  --stack->count;
  return i;
}

// What the program calls.

void MarkEx(const EventAttributes* event) { lockstep_mark(NumberOf(nullptr, event)); }
void MarkA(const char* text) { lockstep_mark(NumberOf(nullptr, text)); }
void MarkW(const wchar_t* text) { lockstep_mark(NumberOf(nullptr, text)); }
uint64_t RangeStartEx(const EventAttributes* event) { return lockstep_begin(NumberOf(nullptr, event)); }
uint64_t RangeStartA(const char* text) { return lockstep_begin(NumberOf(nullptr, text)); }
uint64_t RangeStartW(const wchar_t* text) { return lockstep_begin(NumberOf(nullptr, text)); }
void RangeEnd(uint64_t range) { lockstep_end(range); }
int RangePushEx(const EventAttributes* event) { return Push(nullptr, NumberOf(nullptr, event)); }
int RangePushA(const char* text) { return Push(nullptr, NumberOf(nullptr, text)); }
int RangePushW(const wchar_t* text) { return Push(nullptr, NumberOf(nullptr, text)); }
int RangePop() { return Pop(nullptr); }

void DomainMarkEx(const Domain* domain, const EventAttributes* event) { lockstep_mark(NumberOf(domain, event)); }
uint64_t DomainRangeStartEx(const Domain* domain, const EventAttributes* event) {
  return lockstep_begin(NumberOf(domain, event));
}
void DomainRangeEnd(const Domain*, uint64_t range) { lockstep_end(range); }
int DomainRangePushEx(const Domain* domain, const EventAttributes* event) {
  return Push(domain, NumberOf(domain, event));
}
int DomainRangePop(const Domain* domain) { return Pop(domain); }

// The number of a name stands for the string, and the domain is in the name already.
void* AsHandle(lockstep_name_t number) { return reinterpret_cast<void*>(static_cast<uintptr_t>(number)); }
void* DomainRegisterStringA(const Domain* domain, const char* text) { return AsHandle(NumberOf(domain, text)); }
void* DomainRegisterStringW(const Domain* domain, const wchar_t* text) { return AsHandle(NumberOf(domain, text)); }

/// Programs keep a domain for their life, and may use it after having destroyed it.
Domain* DomainCreateA(const char* name) {
  auto* const domain = static_cast<Domain*>(calloc(1, sizeof(Domain)));
  if (domain != nullptr && name != nullptr) strncpy(domain->name, name, sizeof(domain->name) - 1);
  return domain;
}
Domain* DomainCreateW(const wchar_t* name) {
  auto* const domain = static_cast<Domain*>(calloc(1, sizeof(Domain)));
  for (size_t i = 0; domain != nullptr && name != nullptr && name[i] != L'\0' && i + 1 < sizeof(domain->name); ++i) {
    domain->name[i] = name[i] < 0x80 ? static_cast<char>(name[i]) : '?';
  }
  return domain;
}

struct Entry {
  uint32_t place;
  nvtx::Function function;
};

template <typename Signature>
constexpr Entry At(uint32_t place, Signature* function) {
  return {place, reinterpret_cast<nvtx::Function>(function)};
}

template <size_t N>
void Fill(const nvtx::CallbackTable& callbacks, uint32_t module, const Entry (&entries)[N]) {
  nvtx::FunctionTable table = nullptr;
  uint32_t size = 0;
  if (callbacks.get_module_function_table(module, &table, &size) == 0 || table == nullptr) return;
  for (const Entry& entry : entries) {
    if (entry.place < size && table[entry.place] != nullptr) *table[entry.place] = entry.function;
  }
}

}  // namespace

/// Called once by each copy of NVTX in the program. 0: NVTX then calls no tool, which is cheapest.
extern "C" LOCKSTEP_API int InitializeInjectionNvtx2(nvtx::GetTable get_table) {
  if (lockstep_recording == 0 || get_table == nullptr) return 0;
  const auto* const callbacks = static_cast<const nvtx::CallbackTable*>(get_table(nvtx::kCallbackTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(nvtx::CallbackTable)) return 0;
  const Entry core[] = {
      At(nvtx::kMarkEx, MarkEx),
      At(nvtx::kMarkA, MarkA),
      At(nvtx::kMarkW, MarkW),
      At(nvtx::kRangeStartEx, RangeStartEx),
      At(nvtx::kRangeStartA, RangeStartA),
      At(nvtx::kRangeStartW, RangeStartW),
      At(nvtx::kRangeEnd, RangeEnd),
      At(nvtx::kRangePushEx, RangePushEx),
      At(nvtx::kRangePushA, RangePushA),
      At(nvtx::kRangePushW, RangePushW),
      At(nvtx::kRangePop, RangePop),
  };
  const Entry core2[] = {
      At(nvtx::kDomainMarkEx, DomainMarkEx),
      At(nvtx::kDomainRangeStartEx, DomainRangeStartEx),
      At(nvtx::kDomainRangeEnd, DomainRangeEnd),
      At(nvtx::kDomainRangePushEx, DomainRangePushEx),
      At(nvtx::kDomainRangePop, DomainRangePop),
      At(nvtx::kDomainRegisterStringA, DomainRegisterStringA),
      At(nvtx::kDomainRegisterStringW, DomainRegisterStringW),
      At(nvtx::kDomainCreateA, DomainCreateA),
      At(nvtx::kDomainCreateW, DomainCreateW),
  };
  Fill(*callbacks, nvtx::kCore, core);
  Fill(*callbacks, nvtx::kCore2, core2);
  return 1;
}
