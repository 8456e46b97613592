#include "app/admin_plane.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "fake/fake_engine.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"

namespace dartfs::app {
namespace {

using httpd::MemoryPiece;

class AnswerLink final : public httpd::ExchangeLink {
 public:
  void Answer(httpd::ResponseHead head, std::unique_ptr<httpd::Body> body,
              httpd::AccessNote) override {
    std::string text = std::to_string(head.status) + " ";
    httpd::BodyStep step = body->Next(1 << 20, [] {});
    if (const auto* piece = std::get_if<MemoryPiece>(&step)) {
      text.append(reinterpret_cast<const char*>(piece->bytes.data()), piece->bytes.size());
    }
    answer.set_value(std::move(text));
  }
  void HandOver(httpd::ResponseHead, std::unique_ptr<httpd::Takeover>, httpd::AccessNote) override {
    ADD_FAILURE() << "a tunnel";
  }
  std::shared_ptr<httpd::EventLoop> loop() const override { return nullptr; }
  bool gone() const override { return false; }
  std::promise<std::string> answer;
};

class AdminPlaneTest : public ::testing::Test {
 protected:
  std::unique_ptr<AdminPlane> Create() {
    auto plane = AdminPlane::Create(std::move(options_), engine_);
    EXPECT_TRUE(plane) << plane.error().ToString();
    return std::move(*plane);
  }
  static std::string Get(AdminPlane& plane, const std::string& target) {
    auto link = std::make_shared<AnswerLink>();
    auto answer = link->answer.get_future();
    httpd::Request request;
    request.method = "GET";
    request.target = target;
    plane.handler().Handle(std::make_unique<httpd::Exchange>(std::move(request), httpd::Listener(),
                                                             "unix", std::move(link)));
    EXPECT_EQ(answer.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    return answer.get();
  }
  static httpd::AccessRecord Record() {
    httpd::AccessRecord record;
    record.target = "/dart/http://h/a";
    record.status = 200;
    record.sent = 5;
    record.complete = true;
    record.note.plane = httpd::Plane::kClient;
    return record;
  }

  AdminPlaneOptions options_;
  core::ManualScheduler scheduler_;
  core::FakeHttpClient http_;
  core::FakeEngine engine_{http_, scheduler_};
};

TEST_F(AdminPlaneTest, WhatIsAnsweredIsCounted) {
  options_.facts = [] {
    AdminFacts facts;
    facts.node.mounts.resize(3);
    return facts;
  };
  const auto plane = Create();
  plane->OnAnswered(Record());
  const std::string metrics = Get(*plane, "/metrics");
  EXPECT_TRUE(metrics.starts_with("200 "));
  EXPECT_NE(metrics.find("dart_bytes_total{direction=\"client\"} 5\n"), std::string::npos);
  EXPECT_NE(metrics.find("dartfs_mounts 3\n"), std::string::npos);
  EXPECT_NE(Get(*plane, "/admin/stats").find("\"sent_bytes\":5"), std::string::npos);
}

TEST_F(AdminPlaneTest, ADrainingNodeIsNotReady) {
  const auto plane = Create();
  EXPECT_EQ(Get(*plane, "/readyz"), "200 ready\n");
  plane->SetDraining();
  EXPECT_EQ(Get(*plane, "/readyz"), "503 not ready: stopping\n");
  EXPECT_EQ(Get(*plane, "/healthz"), "200 ok\n");
}

TEST_F(AdminPlaneTest, AfterAStopNothingOfTheNodeIsLookedAt) {
  bool looked = false;
  options_.facts = [&looked] {
    looked = true;
    return AdminFacts();
  };
  const auto plane = Create();
  plane->Stop();
  EXPECT_TRUE(Get(*plane, "/admin/stats").starts_with("500 "));
  EXPECT_FALSE(looked);
}

TEST_F(AdminPlaneTest, WritesTheAccessLog) {
  std::string dir = (std::filesystem::temp_directory_path() / "dartfs-plane-XXXXXX").string();
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  options_.access_log = dir + "/access.log";
  {
    const auto plane = Create();
    plane->OnAnswered(Record());
    std::filesystem::rename(dir + "/access.log", dir + "/old.log");
    plane->ReopenLog();
  }
  std::ostringstream text;
  text << std::ifstream(dir + "/old.log").rdbuf();
  EXPECT_NE(text.str().find(" /dart/http://h/a 200 5 "), std::string::npos) << text.str();
  EXPECT_TRUE(std::filesystem::exists(dir + "/access.log"));
  std::filesystem::remove_all(dir);
}

TEST_F(AdminPlaneTest, ALogThatCantBeOpenedIsAnError) {
  options_.access_log = "/no/such/folder/access.log";
  EXPECT_FALSE(AdminPlane::Create(std::move(options_), engine_));
}

}  // namespace
}  // namespace dartfs::app
