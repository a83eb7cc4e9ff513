#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "analysis/analysis_result.h"
#include "analysis/fabric/fabric.h"
#include "base/http/http_server.h"
#include "ingest/bench_results/bench_results.h"
#include "present/page/page_blocks.h"
#include "present/serve/report_site.h"
#include "programs/cli/cli.h"
#include "programs/cli/live/serve_live.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"
#include "programs/cli/terminal/browser.h"

namespace lockstep::cli {
namespace {

/// `lockstep serve PATH...`: the report page of a run on a loopback port, its data on demand; without PATH, what jobs
/// on nodes do now (serve_live.h).
class ServeCommand : public Subcommand {
 public:
  const char* name() const override { return "serve"; }
  const char* purpose() const override { return "Show a run's report, or what jobs do now, in the browser"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  std::vector<std::string> paths_;
  uint16_t port_ = 0;
  std::string fabric_file_;
  bool browser_ = false;
  bool quiet_ = false;
  RunInput input_;
  ServeLive live_;
};

constexpr uint64_t kCacheBytes = uint64_t{512} << 20;

constexpr const char* kServeFooter =
    "With PATH it shows the page that 'lockstep analyze -o' writes, and makes its data when\n"
    "a view needs it, so that nothing is left out of large runs. Without PATH and with nodes\n"
    "(--host, --hostfile, --job) it shows the live page: what jobs do now, as in lockstep top.\n"
    "Its address contains a token, and no request is answered without it. Only this machine\n"
    "can reach either page; from another one: ssh -L 8080:127.0.0.1:8080 HOST, and serve with\n"
    "--port 8080. Ctrl-C ends it.\n"
    "Exit status: 0 ended by a signal; 1 failed; 2 misused; 4 ended, but ranks or parts of\n"
    "files are missing.\n"
    "\n"
    "Examples:\n"
    "  lockstep serve traces/\n"
    "  lockstep serve traces/ --port 8080 --browser\n"
    "  lockstep serve --job 123 --via srun";

void ServeCommand::Declare(CLI::App& app) {
  app.add_option("PATH", paths_, "Trace files, folders and archives of them, in any mix (what jobs do now)")
      ->type_name("PATH...");
  app.option_defaults()->group("Serving");
  app.add_option("--port", port_, "Port on 127.0.0.1 (0: any free one)")
      ->type_name("N")
      ->check(Checked(CLI::Range(0, 65535)));
  app.add_flag("--browser", browser_, "Open the page in the desktop's browser");
  app.add_option("--fabric", fabric_file_,
                 "Draw collectives beside the fabric's curves, as measured by lockstep bench collectives --json")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", quiet_, "No progress, only the address");
  live_.Declare(app);
  input_.DeclareAnalysis(app);
  input_.DeclareRunning(app);
  app.footer(kServeFooter);
}

Result<int> ServeCommand::Run(Console& console) {
  if (paths_.empty() && live_.is_given()) {
    if (!fabric_file_.empty()) return Misuse("--fabric is for a run's report: it needs a PATH");
    return live_.Run({.port = port_, .browser = browser_, .quiet = quiet_, .analysis = input_.analysis()}, console);
  }
  if (paths_.empty()) {
    return Misuse("serve needs a PATH (a trace file, or a folder with traces), or nodes: --host, --hostfile, --job");
  }
  if (live_.is_given()) return Misuse("PATH is a recorded run, --host and --job name nodes: give either, not both");
  std::optional<model::Fabric> fabric;
  if (!fabric_file_.empty()) {
    ASSIGN_OR_RETURN(fabric, ingest::ReadBenchResults(fabric_file_));
  }
  ASSIGN_OR_RETURN(model::Run run, input_.Ingest(paths_, console, quiet_));
  ASSIGN_OR_RETURN(analysis::AnalysisResult result, input_.Analyze(&run));
  if (fabric) analysis::AddFabric(*fabric, &result);
  const bool partial = IsPartial(run);
  serve::ReportSite site({run, result, input_.analysis(), partial}, kCacheBytes);
  http::ServerOptions options;
  options.port = port_;
  options.until_signal = true;
  ASSIGN_OR_RETURN(const auto server,
                   http::HttpServer::Open(options, [&](const http::Request& request) { return site.Answer(request); }));
  const std::string url = fmt::format("http://127.0.0.1:{}/", server->port());
  console.out << url << std::endl;  // At once: somebody waits for the address.
  if (browser_ && !OpenInBrowser(url)) console.err << "lockstep: xdg-open is not there; open the address yourself\n";
  if (!quiet_) console.err << "Serving the report; Ctrl-C ends it.\n";
  server->Run();
  return partial ? kPartial : kDone;
}

}  // namespace

std::unique_ptr<Subcommand> MakeServe() { return std::make_unique<ServeCommand>(); }

}  // namespace lockstep::cli
