#include "present/page/page_template.h"

asm(".pushsection .rodata.lockstep_page_template, \"a\", @progbits\n"
    ".global lockstep_page_template_begin\n"
    ".global lockstep_page_template_end\n"
    "lockstep_page_template_begin:\n"
    ".incbin \"" LOCKSTEP_PAGE_TEMPLATE
    "\"\n"
    "lockstep_page_template_end:\n"
    ".byte 0\n"
    ".global lockstep_live_template_begin\n"
    ".global lockstep_live_template_end\n"
    "lockstep_live_template_begin:\n"
    ".incbin \"" LOCKSTEP_LIVE_TEMPLATE
    "\"\n"
    "lockstep_live_template_end:\n"
    ".byte 0\n"
    ".popsection\n");

extern "C" {
extern const char lockstep_page_template_begin[];
extern const char lockstep_page_template_end[];
extern const char lockstep_live_template_begin[];
extern const char lockstep_live_template_end[];
}

namespace lockstep::page {

std::string_view PageTemplate(PageKind kind) {
  if (kind == PageKind::kLive) {
    return {lockstep_live_template_begin,
            static_cast<size_t>(lockstep_live_template_end - lockstep_live_template_begin)};
  }
  return {lockstep_page_template_begin, static_cast<size_t>(lockstep_page_template_end - lockstep_page_template_begin)};
}

}  // namespace lockstep::page
