#include "present/page/page_template.h"

#include "present/page/embed.h"

LOCKSTEP_EMBED(page_template, LOCKSTEP_PAGE_TEMPLATE);
LOCKSTEP_EMBED(answer_template, LOCKSTEP_ANSWER_TEMPLATE);
LOCKSTEP_EMBED(live_template, LOCKSTEP_LIVE_TEMPLATE);

namespace lockstep::page {
std::string_view PageTemplate(PageKind kind) {
  if (kind == PageKind::kAnalyze) return {lockstep_page_template_begin, lockstep_page_template_end};
  if (kind == PageKind::kLive) return {lockstep_live_template_begin, lockstep_live_template_end};
  return {lockstep_answer_template_begin, lockstep_answer_template_end};
}

}  // namespace lockstep::page
