#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/archive.h"
#include "base/communicator.h"

namespace lockstep {

/// A question to all processes could not be answered by one of them; the message names it where there are several.
class TeamError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The root asks questions, and every process (the root too) answers from its own data. The root runs the program as
/// if it were alone and calls Ask(); the other processes only run Serve(). One thread per process.
class Team {
 public:
  /// `communicator` outlives the team.
  explicit Team(Communicator* communicator) : communicator_(*communicator) {}

  const Communicator& communicator() const { return communicator_; }
  size_t process() const { return communicator_.process(); }
  size_t process_count() const { return communicator_.process_count(); }

  /// Says how this process answers `question`. Every process registers the same questions. What `answer` throws is
  /// thrown again at the root, as TeamError.
  template <typename Answer, typename Args>
  void Handle(std::string question, std::function<Answer(const Args&)> answer) {
    handlers_[std::move(question)] = [answer = std::move(answer)](std::string_view bytes) {
      const Result<Args> args = FromBytes<Args>(bytes);
      if (!args) throw TeamError(args.error().ToString());
      return ToBytes(answer(*args));
    };
  }

  /// Root: the answers of all processes, in order. Throws TeamError: that of the first process that failed.
  template <typename Answer, typename Args>
  std::vector<Answer> Ask(std::string_view question, const Args& args) {
    std::vector<Answer> answers;
    for (std::string& bytes : AskBytes(question, ToBytes(args))) {
      Result<Answer> answer = FromBytes<Answer>(bytes);
      if (!answer) throw TeamError(answer.error().ToString());
      answers.push_back(std::move(*answer));
      bytes = std::string();
    }
    return answers;
  }

  /// Root: lets the others return from Serve() with `status`.
  void End(int32_t status);
  /// Others: answers until the root has no more questions. Returns the root's exit status.
  int32_t Serve();

 private:
  std::vector<std::string> AskBytes(std::string_view question, const std::string& args);
  std::string AnswerTo(const std::string& question, std::string_view args) const;

  Communicator& communicator_;
  std::map<std::string, std::function<std::string(std::string_view)>> handlers_;
};

}  // namespace lockstep
