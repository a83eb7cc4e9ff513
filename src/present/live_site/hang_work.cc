#include "present/live_site/hang_work.h"

#include <memory>
#include <utility>

#include "analysis/hang/diagnosis.h"
#include "ingest/evidence/evidence_files.h"
#include "present/page/hang/hang_page.h"
#include "present/report/hang/hang_report.h"

namespace lockstep::live_site {

Action HangAction(const std::string& job_id) {
  Action action;
  action.kind = ActionKind::kHang;
  action.job_id = job_id;
  action.state = ActionState::kCollecting;
  return action;
}

ActionDesk::Work HangWork(const HangSetup& setup, std::string job_id) {
  return [&setup, job_id = std::move(job_id)](ActionDesk::Desk& desk) -> Result<Pages> {
    ASSIGN_OR_RETURN(const std::string folder, setup.collect(job_id, [&desk](size_t done, size_t total) {
      desk.Change([&](Action& action) {
        action.done_count = done;
        action.total_count = total;
      });
    }));
    desk.Change([&](Action& action) {
      action.folder = folder;
      action.state = ActionState::kAnalysing;
    });
    if (desk.cancelled()) return Error{ErrorCode::kCancelled, "cancelled; the evidence is kept"};
    ASSIGN_OR_RETURN(const evidence::JobEvidence job, ingest::ReadEvidence({folder}));
    const hang::Diagnosis diagnosis = hang::Diagnose(job);
    const auto page = std::make_shared<const std::string>(page::ComposeHangPage(diagnosis));
    desk.Hold(page->size());
    desk.Change([&](Action& action) {
      action.sentence = diagnosis.verdict.explanation;
      action.verdict = hang::VerdictKindName(diagnosis.verdict.kind);
      action.confidence = diagnosis.verdict.confidence;
      action.is_partial = report::IsPartial(diagnosis);
      if (action.is_partial) action.reason = "a file was damaged or a rank is missing: the page says which";
    });
    return Pages([page](const http::Request& request) {
      if (request.path != "/")
        return http::TextResponse(404, "There is nothing here; the page is at the folder's own address.\n");
      http::Response response;
      response.content_type = "text/html; charset=utf-8";
      response.body = page;
      return response;
    });
  };
}

}  // namespace lockstep::live_site
