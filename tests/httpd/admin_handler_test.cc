#include "httpd/admin_handler.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "fake/manual_scheduler.h"
#include "httpd/admin_page.h"

namespace dartfs::httpd {
namespace {

struct Answer {
  ResponseHead head;
  std::string body;

  std::vector<std::string> All(std::string_view name) const {
    std::vector<std::string> values;
    for (const std::string_view line : core::Split(head.lines(), '\n')) {
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      if (!core::EqualsIgnoreCase(line.substr(0, colon), name)) continue;
      values.emplace_back(core::TrimAscii(line.substr(colon + 1)));
    }
    return values;
  }
  std::string Header(std::string_view name) const {
    const auto values = All(name);
    return values.size() == 1 ? values.front() : std::to_string(values.size()) + " of them";
  }
};

class RecordingLink final : public ExchangeLink {
 public:
  void Answer(ResponseHead head, std::unique_ptr<Body> body, AccessNote) override {
    answer.emplace();
    answer->head = std::move(head);
    while (body != nullptr) {
      BodyStep step = body->Next(1000, [] {});
      const auto* piece = std::get_if<MemoryPiece>(&step);
      if (piece == nullptr) break;
      answer->body.append(reinterpret_cast<const char*>(piece->bytes.data()), piece->bytes.size());
    }
  }
  void HandOver(ResponseHead, std::unique_ptr<Takeover>, AccessNote) override {
    ADD_FAILURE() << "a tunnel";
  }
  std::shared_ptr<EventLoop> loop() const override { return nullptr; }
  bool gone() const override { return hung_up; }

  std::optional<httpd::Answer> answer;
  bool hung_up = false;
};

class AdminHandlerTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordingLink> Ask(const std::string& target, const std::string& method = "GET") {
    auto link = std::make_shared<RecordingLink>();
    Request request;
    request.method = method;
    request.target = target;
    handler().Handle(std::make_unique<Exchange>(std::move(request), Listener(), "unix", link));
    return link;
  }
  Answer Get(const std::string& target) {
    const auto link = Ask(target);
    scheduler_.RunReady();
    EXPECT_TRUE(link->answer) << target;
    return link->answer.value_or(Answer());
  }
  AdminHandler& handler() {
    if (handler_ == nullptr) handler_ = std::make_unique<AdminHandler>(sources_, scheduler_);
    return *handler_;
  }

  AdminSources sources_;
  core::ManualScheduler scheduler_;
  std::unique_ptr<AdminHandler> handler_;
};

TEST_F(AdminHandlerTest, EveryPathAndItsType) {
  sources_.metrics = [] { return std::string("dartfs_mounts 1\n"); };
  sources_.stats = [] { return std::string(R"({"self_id": "n"})"); };
  struct Row {
    const char* target;
    int status;
    const char* type;
    std::string_view body;
  };
  const Row rows[] = {
      {"/healthz", 200, "text/plain; charset=utf-8", "ok\n"},
      {"/healthz?verbose", 200, "text/plain; charset=utf-8", "ok\n"},
      {"/readyz", 200, "text/plain; charset=utf-8", "ready\n"},
      {"/metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "dartfs_mounts 1\n"},
      {"/admin/stats", 200, "application/json", R"({"self_id": "n"})"},
      {"/admin/", 200, "text/html; charset=utf-8", kAdminPageHtml},
      {"/admin/?x", 200, "text/html; charset=utf-8", kAdminPageHtml},
      {"/admin/page.js", 200, "text/javascript; charset=utf-8", kAdminPageJs},
      {"/admin/format.js", 200, "text/javascript; charset=utf-8", kAdminFormatJs},
      {"/admin/elements.js", 200, "text/javascript; charset=utf-8", kAdminElementsJs},
      {"/admin/charts.js", 200, "text/javascript; charset=utf-8", kAdminChartsJs},
      {"/admin/page.css", 200, "text/css; charset=utf-8", kAdminPageCss},
      {"/admin/../healthz", 404, "text/plain; charset=utf-8", ""},
      {"/admin/stats/", 404, "text/plain; charset=utf-8", ""},
      {"/admin/nothing", 404, "text/plain; charset=utf-8", ""},
      {"/healthz/", 404, "text/plain; charset=utf-8", ""},
  };
  for (const Row& row : rows) {
    const Answer answer = Get(row.target);
    EXPECT_EQ(answer.head.status, row.status) << row.target;
    EXPECT_EQ(answer.Header("Content-Type"), row.type) << row.target;
    EXPECT_EQ(answer.head.content_length, answer.body.size()) << row.target;
    if (row.status == 200) {
      EXPECT_EQ(answer.body, row.body) << row.target;
    }
  }
}

TEST_F(AdminHandlerTest, EveryAnswerGuardsBrowsers) {
  sources_.stats = [] { return std::string("{}"); };
  sources_.not_ready = [] { return std::string("draining"); };
  for (const char* target : {"/healthz", "/readyz", "/metrics", "/admin", "/admin/", "/admin/stats",
                             "/admin/page.js", "/admin/members", "/admin/ring", "/admin/no"}) {
    const Answer answer = Get(target);
    EXPECT_EQ(answer.Header("Cache-Control"), "no-store") << target;
    EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff") << target;
    EXPECT_EQ(answer.Header("Referrer-Policy"), "no-referrer") << target;
    EXPECT_EQ(answer.Header("Content-Security-Policy"),
              "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
              "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
        << target;
  }
}

TEST_F(AdminHandlerTest, ThePageHasNoScriptOfItsOwnAndNothingFromElsewhere) {
  EXPECT_NE(kAdminPageHtml.find("<script src=\"page.js\" type=\"module\"></script>"),
            std::string_view::npos);
  const std::string_view files[] = {kAdminPageHtml, kAdminPageJs,     kAdminPageCss,
                                    kAdminFormatJs, kAdminElementsJs, kAdminChartsJs};
  for (const std::string_view file : files) {
    EXPECT_GT(file.size(), 1000u);
    for (const char* word : {"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(",
                             "onclick", "style=", "@import", "https://", "src=\"http"}) {
      EXPECT_EQ(file.find(word), std::string_view::npos) << word;
    }
  }
}

TEST_F(AdminHandlerTest, ThePageWithoutItsSlash) {
  const Answer answer = Get("/admin");
  EXPECT_EQ(answer.head.status, 308);
  EXPECT_EQ(answer.Header("Location"), "/admin/");
}

TEST_F(AdminHandlerTest, NotReadySaysWhy) {
  std::string reason = "the cache is being opened\r\nX: y";
  sources_.not_ready = [&reason] { return reason; };
  Answer answer = Get("/readyz");
  EXPECT_EQ(answer.head.status, 503);
  EXPECT_EQ(answer.body, "not ready: the cache is being opened\\x0d\\x0aX: y\n");
  EXPECT_EQ(answer.Header("Retry-After"), "1");
  EXPECT_EQ(Get("/healthz").head.status, 200);
  reason.clear();
  EXPECT_EQ(Get("/readyz").head.status, 200);
}

TEST_F(AdminHandlerTest, ACheckOfHealthNeedsNoThreadOfOurs) {
  EXPECT_TRUE(Ask("/healthz")->answer);
  EXPECT_TRUE(Ask("/readyz")->answer);
  EXPECT_TRUE(Ask("/admin/")->answer);
}

TEST_F(AdminHandlerTest, WhatMayWaitForLocksDoesNotOnTheEventThread) {
  int made = 0;
  sources_.stats = [&made] { return std::to_string(++made); };
  const auto link = Ask("/admin/stats");
  EXPECT_EQ(made, 0);
  EXPECT_FALSE(link->answer);
  scheduler_.RunReady();
  EXPECT_EQ(link->answer->body, "1");
}

TEST_F(AdminHandlerTest, NothingIsMadeForWhoHasHungUp) {
  int made = 0;
  sources_.stats = [&made] { return std::to_string(++made); };
  const auto link = Ask("/admin/stats");
  link->hung_up = true;
  scheduler_.RunReady();
  EXPECT_EQ(made, 0);
}

TEST_F(AdminHandlerTest, WhoWaitsIsCounted) {
  sources_.stats = [] { return std::string("{}"); };
  std::vector<std::shared_ptr<RecordingLink>> waiting;
  for (size_t i = 0; i < AdminHandler::kMostWaiting; ++i) waiting.push_back(Ask("/admin/stats"));
  const auto refused = Ask("/admin/stats");
  ASSERT_TRUE(refused->answer);
  EXPECT_EQ(refused->answer->head.status, 503);
  EXPECT_EQ(refused->answer->Header("Retry-After"), "1");
  EXPECT_TRUE(Ask("/healthz")->answer);
  scheduler_.RunReady();
  for (const auto& link : waiting) EXPECT_EQ(link->answer->head.status, 200);
  EXPECT_EQ(Get("/admin/stats").head.status, 200);
}

TEST_F(AdminHandlerTest, AStopAnswersWhoWaits) {
  sources_.stats = [] { return std::string("{}"); };
  const auto link = Ask("/admin/stats");
  scheduler_.Stop();
  ASSERT_TRUE(link->answer);
  EXPECT_EQ(link->answer->head.status, 500);
}

TEST_F(AdminHandlerTest, WithoutAClusterItsPartsSaySo) {
  for (const char* target : {"/admin/members", "/admin/ring?key=1", "/admin/ring"}) {
    const Answer answer = Get(target);
    EXPECT_EQ(answer.head.status, 503) << target;
    EXPECT_EQ(answer.Header("Content-Type"), "application/json") << target;
    EXPECT_EQ(answer.body, "{\"error\": \"no cluster is configured\"}\n") << target;
  }
}

TEST_F(AdminHandlerTest, WithoutASourceThereIsNothing) {
  EXPECT_EQ(Get("/metrics").head.status, 503);
  EXPECT_EQ(Get("/admin/stats").head.status, 503);
}

TEST_F(AdminHandlerTest, QuestionsToTheRing) {
  sources_.ring = [](const RingQuestion& question) {
    return std::to_string(question.key) + "/" + std::to_string(question.most);
  };
  const std::pair<const char*, const char*> good[] = {
      {"?key=0", "0/8"},          {"?key=18446744073709551615", "18446744073709551615/8"},
      {"?n=3&key=7", "7/3"},      {"?key=7&n=1024", "7/1024"},
      {"?other=&key=7&x", "7/8"},
  };
  for (const auto& [query, body] : good) {
    const Answer answer = Get(std::string("/admin/ring") + query);
    EXPECT_EQ(answer.head.status, 200) << query;
    EXPECT_EQ(answer.body, body) << query;
  }
  for (const char* query :
       {"", "?", "?key", "?key=", "?key=x", "?key=-1", "?key=0x10", "?key=18446744073709551616",
        "?key=1&n=0", "?key=1&n=1025", "?n=8", "?key=1&n=", "?KEY=1"}) {
    EXPECT_EQ(Get(std::string("/admin/ring") + query).head.status, 400) << query;
  }
}

}  // namespace
}  // namespace dartfs::httpd
