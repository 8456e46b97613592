#include "ctl/job_wait.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/json_fields.h"
#include "ctl/progress.h"

namespace dartfs::ctl {
namespace {

using core::Result;
using nlohmann::json;

constexpr int kPollMs = 200;
constexpr core::Duration kPlainInterval = std::chrono::seconds(5);

volatile std::sig_atomic_t interrupted = 0;

// One job's progress on stderr.
class Display {
 public:
  void Show(const json& job, bool over) {
    const core::TimePoint now = core::RealClock().Now();
    const json* const bytes = app::Field(job, "bytes");
    if (bytes != nullptr) {
      rate_.Add(now, static_cast<uint64_t>(app::NumberField(*bytes, "done").value_or(0)));
    }
    if (terminal_) {
      constexpr const char* kClearLine = "\r\033[K";
      fmt::print(stderr, "{}{}", kClearLine,
                 over ? std::string() : ProgressBar(job, rate_.PerSecond()));
      std::fflush(stderr);
    } else if (!over && now - shown_ >= kPlainInterval) {
      // The first one only after a while: of short jobs the end says all.
      if (shown_ != core::TimePoint()) {
        fmt::print(stderr, "{}\n", ProgressText(job, rate_.PerSecond()));
      }
      shown_ = now;
    }
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  Rate rate_;
  core::TimePoint shown_{};
};

}  // namespace

void CatchInterrupt() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
}

Result<json> WaitForJob(const Asker& asker, int64_t id, int& code) {
  Display display;
  while (true) {
    Result<json> job = asker.AskOrFail({{"verb", "job"}, {"job", id}}, code);
    if (!job) return job;
    const bool over = app::TextField(*job, "state").value_or("") != "running";
    display.Show(*job, over);
    if (over) return job;
    if (interrupted == 0) poll(nullptr, 0, kPollMs);
    if (interrupted != 0) {
      code = Fail(kExitInterrupted,
                  fmt::format("job {} goes on; end it: dartfsctl cancel {}", id, id));
      return core::MakeError(core::Code::kCancelled, "interrupted");
    }
  }
}

}  // namespace dartfs::ctl
