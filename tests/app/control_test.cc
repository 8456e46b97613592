#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/control_client.h"
#include "app/control_dispatch.h"
#include "app/control_server.h"
#include "app/unix_socket.h"
#include "core/base/mutex.h"
#include "fake/manual_scheduler.h"

namespace dartfs::app {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

ControlDispatch EchoDispatch() {
  ControlDispatch dispatch;
  dispatch.Add("echo", [](const json& request) -> core::Result<json> { return request; });
  dispatch.Add("fail", [](const json&) -> core::Result<json> {
    return core::MakeError(core::Code::kNotFound, "no such thing");
  });
  return dispatch;
}

// What is answered on the stack of Handle; "" when nothing is.
std::string Answer(const ControlDispatch& dispatch, const std::string& line) {
  auto answered = std::make_shared<std::string>();
  dispatch.Handle({line}, [answered](std::string answer) { *answered = std::move(answer); });
  return *answered;
}

// A client that is hung up on takes the node to be ending, and asks anew.
TEST(ControlServer, WaitsLongerForAnAnswerThanItsClients) {
  EXPECT_GT(ControlServerOptions().answer_deadline, kLongestAnswer);
}

TEST(ControlDispatch, Answers) {
  const ControlDispatch dispatch = EchoDispatch();
  const json good = json::parse(Answer(dispatch, R"({"verb":"echo","path":"/x"})"));
  EXPECT_EQ(good["ok"], true);
  EXPECT_EQ(good["result"]["path"], "/x");
  const json failed = json::parse(Answer(dispatch, R"({"verb":"fail"})"));
  EXPECT_EQ(failed["ok"], false);
  EXPECT_EQ(failed["error"]["code"], "not_found");
  EXPECT_EQ(failed["error"]["message"], "no such thing");
}

TEST(ControlDispatch, WhateverComesTheAnswerIsOneLineOfJson) {
  const ControlDispatch dispatch = EchoDispatch();
  const std::string deep(100'000, '[');
  const std::string_view rows[] = {"",
                                   "nonsense",
                                   "[]",
                                   "{",
                                   "{}",
                                   R"({"verb":7})",
                                   R"({"verb":"other"})",
                                   "{\"verb\":\"\xff\x01\"}",
                                   R"({"verb":"a\nb"})",
                                   deep};
  for (const std::string_view row : rows) {
    const std::string answer = Answer(dispatch, std::string(row));
    const json parsed = json::parse(answer, nullptr, false);
    ASSERT_TRUE(parsed.is_object()) << row.substr(0, 40);
    EXPECT_EQ(parsed["ok"], false) << row.substr(0, 40);
    EXPECT_EQ(answer.find('\n'), std::string::npos);
  }
}

TEST(ControlDispatch, VerbsThatBlockAreAnsweredByTheirWorker) {
  core::ManualScheduler worker;
  ControlDispatch dispatch = EchoDispatch();
  int asked = 0;
  dispatch.AddBlocking(
      "slow",
      [&asked](const json&) -> core::Result<json> {
        ++asked;
        return json(7);
      },
      worker);
  std::vector<json> answers;
  const auto ask = [&] {
    dispatch.Handle({R"({"verb":"slow"})"},
                    [&](const std::string& line) { answers.push_back(json::parse(line)); });
  };
  ask();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(json::parse(Answer(dispatch, R"({"verb":"echo"})"))["ok"], true);
  worker.RunReady();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]["result"], 7);

  // A disk that hangs: so many may wait, others are told.
  answers.clear();
  for (int i = 0; i < 40; ++i) ask();
  ASSERT_EQ(answers.size(), 8u);
  EXPECT_EQ(answers[0]["error"]["code"], "busy");
  worker.RunReady();
  EXPECT_EQ(answers.size(), 40u);
  ask();
  worker.RunReady();
  EXPECT_EQ(answers.back()["result"], 7);
}

TEST(ControlDispatch, ADescriptorReachesItsVerbAlone) {
  core::ManualScheduler worker;
  ControlDispatch dispatch;
  int seen = -2;
  dispatch.AddBlockingWithFd(
      "take",
      [&seen](const json&, const core::UniqueFd& fd) -> core::Result<json> {
        seen = fd.get();
        return json();
      },
      worker);
  const int fd = dup(STDERR_FILENO);
  dispatch.Handle({R"({"verb":"take"})", core::UniqueFd(fd)}, [](const std::string&) {});
  worker.RunReady();
  EXPECT_EQ(seen, fd);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "closed with the answer";
}

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    std::string pattern = testing::TempDir() + "dartfs-control-XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~ControlServerTest() override {
    server_.reset();
    rmdir(dir_.c_str());
  }

  std::string Path() const { return dir_ + "/control"; }
  using Sync = std::function<std::string(const std::string&)>;
  void Start(ControlServerOptions options = {}, Sync handler = nullptr) {
    if (!handler) handler = [](const std::string& line) { return "got " + line; };
    StartLater(options, [handler](ControlRequest request, ControlAnswer answer) {
      answer(handler(request.line));
    });
  }
  void StartLater(ControlServerOptions options, ControlHandler handler) {
    options.path = Path();
    options.allowed_uid = getuid();
    auto made = ControlServer::Create(options, std::move(handler));
    ASSERT_TRUE(made) << made.error().ToString();
    server_ = std::move(*made);
  }
  std::string Ask(const std::string& request) const {
    auto answer = AskNode(Path(), {request}, seconds(10));
    return answer ? *answer : "error: " + answer.error().ToString();
  }
  // Whether the server closes the connection within ten seconds.
  static bool Closes(int fd) {
    const timeval limit{10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    fcntl(fd, F_SETFL, 0);
    char byte;
    return recv(fd, &byte, 1, 0) == 0 || errno == ECONNRESET;
  }

  std::string dir_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, AnswersOneAfterAnother) {
  Start();
  for (int i = 0; i < 50; ++i) {
    const std::string request = "request " + std::to_string(i);
    EXPECT_EQ(Ask(request), "got " + request);
  }
}

TEST_F(ControlServerTest, LargeAnswersArriveWhole) {
  const std::string large(size_t{5} << 20, 'x');
  Start({}, [&large](const std::string&) { return large; });
  EXPECT_EQ(Ask("a"), large);
}

TEST_F(ControlServerTest, SocketIsTheOwnersAlone) {
  Start();
  struct stat info {};
  ASSERT_EQ(stat(Path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(ControlServerTest, ASilentClientIsDroppedAndHoldsUpNobody) {
  Start({.client_deadline = milliseconds(100)});
  auto silent = ConnectUnix(Path());
  ASSERT_TRUE(silent);
  EXPECT_EQ(Ask("b"), "got b");
  EXPECT_TRUE(Closes(silent->get()));
}

TEST_F(ControlServerTest, AClientThatReadsNothingIsDropped) {
  const std::string large(size_t{5} << 20, 'x');
  Start({.client_deadline = milliseconds(200)},
        [&large](const std::string& line) { return line == "small" ? std::string("ok") : large; });
  auto stuck = ConnectUnix(Path());
  ASSERT_TRUE(stuck);
  ASSERT_EQ(send(stuck->get(), "a\n", 2, 0), 2);
  EXPECT_EQ(Ask("small"), "ok");
  // What was sent before the connection was dropped ends before the answer does.
  pollfd hang_up{stuck->get(), 0, 0};
  ASSERT_EQ(poll(&hang_up, 1, 10'000), 1);
  size_t total = 0;
  std::vector<char> buffer(1 << 16);
  ssize_t got = 0;
  while ((got = recv(stuck->get(), buffer.data(), buffer.size(), 0)) > 0) total += size_t(got);
  EXPECT_LT(total, large.size());
}

// Answers "later" when it is told to.
class LateAnswers {
 public:
  ControlHandler Handler() {
    return [this](ControlRequest request, ControlAnswer answer) {
      if (request.line != "later") return answer("got " + request.line);
      core::MutexLock lock(mu_);
      waiting_.push_back(std::move(answer));
      came_.NotifyAll();
    };
  }
  // Waits for one that has been asked; nullptr after ten seconds.
  ControlAnswer Take() {
    core::MutexLock lock(mu_);
    while (waiting_.empty() && came_.WaitFor(mu_, seconds(10))) {
    }
    if (waiting_.empty()) return nullptr;
    ControlAnswer answer = std::move(waiting_.back());
    waiting_.pop_back();
    return answer;
  }

 private:
  core::Mutex mu_;
  core::CondVar came_;
  std::vector<ControlAnswer> waiting_ GUARDED_BY(mu_);
};

TEST_F(ControlServerTest, AnAnswerThatTakesLongHoldsUpNobody) {
  LateAnswers late;
  StartLater({}, late.Handler());
  std::string slow;
  std::thread client([&] { slow = Ask("later"); });
  ControlAnswer answer = late.Take();
  ASSERT_TRUE(answer);
  EXPECT_EQ(Ask("b"), "got b");
  answer("at last");
  client.join();
  EXPECT_EQ(slow, "at last");
}

TEST_F(ControlServerTest, AnAnswerThatComesTooLateIsDropped) {
  LateAnswers late;
  StartLater({.answer_deadline = milliseconds(100)}, late.Handler());
  auto client = ConnectUnix(Path());
  ASSERT_TRUE(client);
  ASSERT_EQ(send(client->get(), "later\n", 6, 0), 6);
  EXPECT_TRUE(Closes(client->get()));
  ControlAnswer answer = late.Take();
  ASSERT_TRUE(answer);
  answer("nobody listens");
  EXPECT_EQ(Ask("b"), "got b");

  auto gone = ConnectUnix(Path());
  ASSERT_EQ(send(gone->get(), "later\n", 6, 0), 6);
  ControlAnswer never = late.Take();
  gone->Reset();
  EXPECT_EQ(Ask("c"), "got c");
  server_->Stop();
  never("the server has gone");
}

TEST_F(ControlServerTest, ARequestWithoutEndIsRefused) {
  Start({.max_request_bytes = 10'000});
  auto client = ConnectUnix(Path());
  ASSERT_TRUE(client);
  const std::string endless(60'000, 'x');
  ASSERT_GT(send(client->get(), endless.data(), endless.size(), MSG_NOSIGNAL), 0);
  EXPECT_TRUE(Closes(client->get()));
  EXPECT_EQ(Ask("c"), "got c");
}

TEST_F(ControlServerTest, MoreClientsThanAllowedAreClosedAtOnce) {
  Start({.max_clients = 2});
  std::vector<core::UniqueFd> held;
  for (int i = 0; i < 3; ++i) {
    auto client = ConnectUnix(Path());
    ASSERT_TRUE(client);
    held.push_back(std::move(*client));
  }
  EXPECT_TRUE(Closes(held[2].get()));
}

// What a descriptor holds, read from its start.
std::string Content(int fd) {
  std::array<char, 64> buffer;
  const ssize_t got = pread(fd, buffer.data(), buffer.size(), 0);
  return got < 0 ? "" : std::string(buffer.data(), static_cast<size_t>(got));
}

TEST_F(ControlServerTest, ADescriptorComesWithItsRequest) {
  const core::UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(write(file.get(), "inside", 6), 6);
  StartLater({}, [](ControlRequest request, ControlAnswer answer) {
    answer(request.line + " " + (request.fd.valid() ? Content(request.fd.get()) : "nothing"));
  });
  // Longer than one read of the server: the descriptor came with its first bytes.
  const std::string line(20'000, 'x');
  EXPECT_EQ(*AskNode(Path(), {line, file.get()}, seconds(10)), line + " inside");
  EXPECT_EQ(*AskNode(Path(), {"without"}, seconds(10)), "without nothing");
}

TEST_F(ControlServerTest, DescriptorsThatNobodyWantsAreClosed) {
  Start();
  const auto count = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  Ask("first");
  const auto before = count();
  const core::UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(AskNode(Path(), {"x", file.get()}, seconds(10)));
  Ask("last");  // the connection before it has been closed when this is accepted
  EXPECT_LE(count(), before + 3);
}

TEST_F(ControlServerTest, NobodyThere) {
  auto answer = AskNode(Path(), {"a"}, seconds(1));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, core::Code::kUnavailable);
}

TEST_F(ControlServerTest, StopEndsTheSocketAndALeftOneIsReplaced) {
  Start();
  server_->Stop();
  server_->Stop();
  EXPECT_NE(access(Path().c_str(), F_OK), 0);
  const auto left = ListenUnix(Path());  // as after kill -9
  ASSERT_TRUE(left);
  Start();
  EXPECT_EQ(Ask("d"), "got d");
}

TEST_F(ControlServerTest, APathTooLongForAnAddressWorks) {
  const std::string base = dir_;
  dir_ += "/" + std::string(200, 'd');
  ASSERT_EQ(mkdir(dir_.c_str(), 0700), 0);
  Start();
  EXPECT_EQ(Ask("e"), "got e");
  server_.reset();
  rmdir(dir_.c_str());
  dir_ = base;
}

}  // namespace
}  // namespace dartfs::app
