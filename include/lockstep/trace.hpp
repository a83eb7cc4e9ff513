// Spans of a C++ program (C++11): lockstep/trace.h with scopes. Nothing throws.
#ifndef LOCKSTEP_TRACE_HPP_
#define LOCKSTEP_TRACE_HPP_

#include <lockstep/trace.h>

#include <string>

namespace lockstep {
namespace trace {

/// A name that is looked up once: a static of the place that uses it.
class Name {
 public:
  constexpr explicit Name(const char* text) noexcept : text_(text) {}
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;

  lockstep_name_t number() noexcept {
    const lockstep_name_t known = __atomic_load_n(&number_, __ATOMIC_RELAXED);
    return __builtin_expect(known != 0, 1) ? known : LookUp();
  }

 private:
  __attribute__((noinline, cold)) lockstep_name_t LookUp() noexcept {
    const lockstep_name_t number = lockstep_name(text_);
    __atomic_store_n(&number_, number, __ATOMIC_RELAXED);
    return number;
  }

  const char* text_;
  lockstep_name_t number_ = 0;
};

inline bool IsRecording() noexcept {
  return __builtin_expect(__atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) != 0, 0);
}

/// A span from here to the end of the scope.
class Span {
 public:
  explicit Span(Name& name) noexcept : span_(IsRecording() ? lockstep_span_start(name.number()) : 0) {}
  /// A name made at run time costs a look-up each time.
  explicit Span(const std::string& name) noexcept
      : span_(IsRecording() ? lockstep_span_start(lockstep_name_of(name.data(), name.size())) : 0) {}
  Span(Name& name, const lockstep_context* parent, lockstep_context* own) noexcept
      : span_(lockstep_begin_linked(IsRecording() ? name.number() : 0, parent, own)) {}
  ~Span() { lockstep_end(span_); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  lockstep_span_t span_;
};

/// A request; `Output` once a piece of output, the end with the scope. One that is unwound by an exception calls Fail.
class Request {
 public:
  explicit Request(Name& kind, const lockstep_context* parent = nullptr, lockstep_context* own = nullptr) noexcept
      : request_(lockstep_request_begin(IsRecording() ? kind.number() : 0, parent, own)) {}
  ~Request() { lockstep_request_end(request_, failed_ ? 1 : 0); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void Output(uint64_t count = 1) noexcept { lockstep_request_output(request_, count); }
  void Fail() noexcept { failed_ = true; }

 private:
  uint64_t request_;
  bool failed_ = false;
};

inline void Count(Name& name, double value) noexcept {
  if (IsRecording()) lockstep_counter(name.number(), value);
}
inline void Mark(Name& name) noexcept {
  if (IsRecording()) lockstep_mark(name.number());
}

}  // namespace trace
}  // namespace lockstep

#define LOCKSTEP_JOIN_2(a, b) a##b
#define LOCKSTEP_JOIN(a, b) LOCKSTEP_JOIN_2(a, b)

/// LOCKSTEP_SPAN("forward"); a span from here to the end of the scope.
#define LOCKSTEP_SPAN(text)                                                     \
  static ::lockstep::trace::Name LOCKSTEP_JOIN(lockstep_name_, __LINE__)(text); \
  const ::lockstep::trace::Span LOCKSTEP_JOIN(lockstep_span_, __LINE__)(LOCKSTEP_JOIN(lockstep_name_, __LINE__))

/// LOCKSTEP_COUNTER("tokens", value);
#define LOCKSTEP_COUNTER(text, value)                      \
  do {                                                     \
    static ::lockstep::trace::Name lockstep_counter(text); \
    ::lockstep::trace::Count(lockstep_counter, (value));   \
  } while (false)

#endif  // LOCKSTEP_TRACE_HPP_
