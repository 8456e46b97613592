// What Service notes of each request for counters and the access log.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "httpd/service.h"

namespace dartfs::httpd {
namespace {

constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

class NoteLink final : public ExchangeLink {
 public:
  void Answer(ResponseHead, std::unique_ptr<Body>, AccessNote said) override {
    note = std::move(said);
  }
  void HandOver(ResponseHead, std::unique_ptr<Takeover>, AccessNote) override {
    ADD_FAILURE() << "a tunnel";
  }
  std::shared_ptr<EventLoop> loop() const override { return nullptr; }
  bool gone() const override { return false; }
  std::optional<AccessNote> note;
};

class AnswerOk final : public Handler {
 public:
  void Handle(ExchangePtr exchange) override { exchange->RespondText(200, "ok\n"); }
};

AccessNote NoteOf(const std::string& method, const std::string& target,
                  const std::string& traceparent = "") {
  AnswerOk handler;
  ServiceHandlers handlers;
  handlers.registry = handlers.connect = handlers.admin = handlers.peer = &handler;
  ServiceOptions options;
  options.doors.registry = options.doors.connect = true;
  Service service(options, handlers);
  auto link = std::make_shared<NoteLink>();
  Request request;
  request.method = method;
  request.target = target;
  if (!traceparent.empty()) request.headers.push_back({"Traceparent", traceparent});
  service.Handle(std::make_unique<Exchange>(std::move(request), Listener(), "unix", link));
  EXPECT_TRUE(link->note) << target;
  return link->note.value_or(AccessNote());
}

TEST(AccessNote, SaysWhomItServed) {
  struct Row {
    const char* method;
    const char* target;
    Plane plane;
  };
  const Row rows[] = {
      {"GET", "/v2/", Plane::kClient},         {"GET", "/admin/", Plane::kAdmin},
      {"GET", "/metrics", Plane::kAdmin},      {"POST", "/admin/", Plane::kAdmin},
      {"GET", "/peer/v1/x", Plane::kPeer},     {"CONNECT", "h:443", Plane::kClient},
      {"OPTIONS", "*", Plane::kNone},          {"GET", "/nothing", Plane::kNone},
      {"CONNECT", "h:1\r\nx", Plane::kClient},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(NoteOf(row.method, row.target).plane, row.plane) << row.method << row.target;
  }
}

TEST(AccessNote, HasTheTraceOfTheRequest) {
  const std::string good = std::string("00-") + kTrace + "-00f067aa0ba902b7-01";
  EXPECT_EQ(NoteOf("GET", "/admin/", good).trace_id, kTrace);
  EXPECT_EQ(NoteOf("GET", "/nothing", good).trace_id, kTrace);
  EXPECT_EQ(NoteOf("GET", "/admin/").trace_id, "");
  EXPECT_EQ(NoteOf("GET", "/admin/", "00-nonsense").trace_id, "");
}

}  // namespace
}  // namespace dartfs::httpd
