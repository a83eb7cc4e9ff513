// Goes when the page lands.
#include "page/hang/hang_page.h"

namespace lockstep::page {

std::string ComposeHangPage(const hang::Diagnosis& diagnosis) { return diagnosis.verdict.explanation; }

}  // namespace lockstep::page
