#include "present/page/page_template.h"

// The bytes of a file, from lockstep_NAME_begin to lockstep_NAME_end.
#define LOCKSTEP_EMBED(name, file)                                       \
  asm(".pushsection .rodata.lockstep_" #name                             \
      ", \"a\", @progbits\n"                                             \
      ".global lockstep_" #name "_begin\n.global lockstep_" #name        \
      "_end\n"                                                           \
      "lockstep_" #name "_begin:\n.incbin \"" file "\"\nlockstep_" #name \
      "_end:\n"                                                          \
      ".byte 0\n.popsection\n");                                         \
  extern "C" const char lockstep_##name##_begin[];                       \
  extern "C" const char lockstep_##name##_end[]

LOCKSTEP_EMBED(page_template, LOCKSTEP_PAGE_TEMPLATE);
LOCKSTEP_EMBED(answer_template, LOCKSTEP_ANSWER_TEMPLATE);
LOCKSTEP_EMBED(live_template, LOCKSTEP_LIVE_TEMPLATE);

namespace lockstep::page {
namespace {

std::string_view Between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

}  // namespace

std::string_view PageTemplate(PageKind kind) {
  if (kind == PageKind::kAnalyze) return Between(lockstep_page_template_begin, lockstep_page_template_end);
  if (kind == PageKind::kLive) return Between(lockstep_live_template_begin, lockstep_live_template_end);
  return Between(lockstep_answer_template_begin, lockstep_answer_template_end);
}

}  // namespace lockstep::page
