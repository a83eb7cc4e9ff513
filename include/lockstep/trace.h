/* Spans, counters, steps and requests of a running program, for `lockstep analyze` (docs/instrument.md).
 *
 * Nothing is recorded unless the environment has LOCKSTEP_TRACE=FOLDER; every call is then a load and a branch. When it
 * is on, each process writes one file into FOLDER as it runs, which can be read at any time, after a crash too
 * (docs/formats/span-trace.md). No call fails, waits for another thread's span, throws or ends the process: what cannot
 * be kept (a full disk, the limit) is counted in the file.
 *
 * Threads: every function may be called from every thread at once. Signal handlers must not call any.
 * Fork: the child writes a file of its own; a span that was open stays the parent's. Exec: a new file.
 */
#ifndef LOCKSTEP_TRACE_H_
#define LOCKSTEP_TRACE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LOCKSTEP_API __attribute__((visibility("default")))
#else
#define LOCKSTEP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a span, counter or request is called. 0 is no name. The numbers are the process's own and never change. */
typedef uint32_t lockstep_name_t;

/* A span under way; 0 when nothing is recorded. */
typedef uint64_t lockstep_span_t;

/* W3C Trace Context: whose part something is, across processes. trace_high and trace_low both 0: none. */
typedef struct lockstep_context {
  uint64_t trace_high;
  uint64_t trace_low;
  uint64_t span_id;
  uint64_t flags; /* Of traceparent; 1 = sampled. */
} lockstep_context;

/* Bytes of "00-<32 hex digits>-<16>-<2>" and the zero behind it. */
#define LOCKSTEP_TRACEPARENT_BYTES 56

/* Not 0 while recording. To be read, never written. */
extern LOCKSTEP_API uint32_t lockstep_recording;

/* The number of a name: UTF-8, cut after 2000 bytes. Same text, same number. Cost: a lock and a look-up; keep it. */
LOCKSTEP_API lockstep_name_t lockstep_name(const char* text);
LOCKSTEP_API lockstep_name_t lockstep_name_of(const char* text, size_t bytes);

/* Begin and end of a span. Spans of a thread need not nest, and one may be ended by another thread. */
LOCKSTEP_API lockstep_span_t lockstep_span_start(lockstep_name_t name);
LOCKSTEP_API void lockstep_span_finish(lockstep_span_t span);

static inline lockstep_span_t lockstep_begin(lockstep_name_t name) {
  return __builtin_expect(__atomic_load_n(&lockstep_recording, __ATOMIC_RELAXED) != 0, 0) ? lockstep_span_start(name)
                                                                                          : 0;
}
static inline void lockstep_end(lockstep_span_t span) {
  if (span != 0) lockstep_span_finish(span);
}

/* A span with a trace context: its parent's (null: it begins a trace of its own), and its own to hand on (may be null).
 * Without recording `own` becomes the parent's, so that a chain of processes is not broken by one that is off. */
LOCKSTEP_API lockstep_span_t lockstep_begin_linked(lockstep_name_t name, const lockstep_context* parent,
                                                   lockstep_context* own);

/* An instant. */
LOCKSTEP_API void lockstep_mark(lockstep_name_t name);

/* The value of a quantity from now on. */
LOCKSTEP_API void lockstep_counter(lockstep_name_t name, double value);

/* A step (iteration) begins, and the one before it ends; the first is number 0, or what is given. */
LOCKSTEP_API void lockstep_step(void);
LOCKSTEP_API void lockstep_step_number(int64_t number);
/* The last step ends. Without it the last one counts as unfinished. */
LOCKSTEP_API void lockstep_step_end(void);

/* A request that the program serves: its arrival, each piece of its output (the first tells the time to first output),
 * its end; from any thread. 0 stands for no request. */
LOCKSTEP_API uint64_t lockstep_request_begin(lockstep_name_t kind, const lockstep_context* parent,
                                             lockstep_context* own);
LOCKSTEP_API void lockstep_request_output(uint64_t request, uint64_t count);
LOCKSTEP_API void lockstep_request_end(uint64_t request, int failed);

/* "traceparent" as text. Reading gives 0 and an empty context for a text that is none. */
LOCKSTEP_API int lockstep_context_read(const char* traceparent, lockstep_context* context);
LOCKSTEP_API void lockstep_context_write(const lockstep_context* context, char traceparent[LOCKSTEP_TRACEPARENT_BYTES]);

/* Begins to record into a folder, as LOCKSTEP_TRACE would have; again after lockstep_trace_stop, into the same file.
 * 0 when the file could not be made. */
LOCKSTEP_API int lockstep_trace_start(const char* folder);
LOCKSTEP_API void lockstep_trace_stop(void);

typedef struct lockstep_trace_status {
  const char* path;         /* Of this process's file; empty before the first record. Never freed. */
  uint64_t file_bytes;      /* Handed out to threads. */
  uint64_t dropped_records; /* Lost to the limit, a full disk, a file that could not be made. */
} lockstep_trace_status;
LOCKSTEP_API void lockstep_trace_get_status(lockstep_trace_status* status);

#ifdef __cplusplus
}
#endif

#endif /* LOCKSTEP_TRACE_H_ */
