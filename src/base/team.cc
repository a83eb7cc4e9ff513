#include "base/team.h"

#include <exception>
#include <new>

namespace lockstep {
namespace {

constexpr const char* kEnd = "";  // The question that ends Serve(); its argument is the exit status.

// The first byte of an answer.
constexpr char kAnswered = 'a';
constexpr char kFailed = 'f';

}  // namespace

std::string Team::AnswerTo(const std::string& question, std::string_view args) const {
  try {
    const auto handler = handlers_.find(question);
    if (handler == handlers_.end()) throw TeamError("this process does not know the question '" + question + "'");
    return kAnswered + handler->second(args);
  } catch (const std::bad_alloc&) {
    return kFailed + std::string("process ") + std::to_string(process()) +
           " is out of memory; start more processes, or on nodes with more memory";
  } catch (const std::exception& error) {
    return kFailed + std::string(error.what());
  }
}

std::vector<std::string> Team::AskBytes(std::string_view question, const std::string& args) {
  const std::string name(question);
  std::string request = ToBytes(name) + args;
  communicator_.Broadcast(&request);
  std::vector<std::string> answers = communicator_.Gather(AnswerTo(name, args));
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].front() == kAnswered) {
      answers[i].erase(0, 1);
      continue;
    }
    throw TeamError(answers[i].substr(1));
  }
  return answers;
}

void Team::End(int32_t status) {
  std::string request = ToBytes(std::string(kEnd)) + ToBytes(status);
  communicator_.Broadcast(&request);
}

int32_t Team::Serve() {
  while (true) {
    std::string request;
    communicator_.Broadcast(&request);
    std::string question;
    ArchiveReader reader(request);
    reader(question);
    const std::string_view args = std::string_view(request).substr(ToBytes(question).size());
    if (question == kEnd) return FromBytes<int32_t>(args).value_or(1);
    communicator_.Gather(AnswerTo(question, args));
  }
}

}  // namespace lockstep
