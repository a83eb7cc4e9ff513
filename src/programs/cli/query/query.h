#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "present/query/database.h"
#include "programs/cli/run_input.h"
#include "programs/cli/subcommand.h"

namespace lockstep::cli {

class QuerySession;

/// `lockstep query PATH... SQL`: answers SQL over the events and the passes' tables of a job.
class QueryCommand : public Subcommand {
 public:
  const char* name() const override { return "query"; }
  const char* purpose() const override { return "Answer SQL queries over the data of a run"; }
  void Declare(CLI::App& app) override;
  Result<int> Run(Console& console) override;

 private:
  void DeclareOutput(CLI::App& app);
  void DeclareLimits(CLI::App& app);
  Result<int> Describe(Console& console) const;
  /// Parts PATHs from the SQL, which is the last argument, or in the file of -f.
  Status TakeSql();
  int Answer(QuerySession& session, std::ostream& out, Console& console) const;
  Result<int> AnswerIntoFile(QuerySession& session, Console& console) const;

  std::vector<std::string> arguments_;
  std::string sql_;
  std::string sql_file_;
  std::string format_;
  bool json_ = false;
  std::string output_file_;
  int width_ = 0;
  std::string colour_ = "auto";
  bool ascii_ = false;
  bool quiet_ = false;
  bool list_ = false;
  bool reference_ = false;
  std::string describe_;
  bool interactive_ = false;
  double timeout_s_ = 600;
  uint64_t memory_bytes_ = uint64_t{1} << 30;
  RunInput input_;
};

}  // namespace lockstep::cli
