// CapturedExchange: an Exchange without a connection, whose answer the test looks at.
//
//   CapturedExchange client("GET", "/v2/");
//   client.AddHeader("Accept", "*/*");
//   handler.Handle(client.Take());
//   client.answered(); client.status(); client.Header("Allow"); client.ReadBody();
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "httpd/exchange.h"

namespace dartfs::httpd {

class CapturedExchange {
 public:
  CapturedExchange(std::string method, std::string target) : link_(std::make_shared<Link>()) {
    request_.method = std::move(method);
    request_.target = std::move(target);
  }
  void AddHeader(std::string name, std::string value) {
    request_.headers.push_back({std::move(name), std::move(value)});
  }
  ExchangePtr Take() {
    return std::make_unique<Exchange>(std::move(request_), Listener(), "test", link_);
  }

  bool answered() const { return link_->head.has_value(); }
  int status() const { return answered() ? link_->head->status : 0; }
  const ResponseHead& head() const { return *link_->head; }
  const AccessNote& note() const { return link_->note; }
  // Empty where absent.
  std::string Header(std::string_view name) const {
    return answered() ? std::string(link_->head->Find(name).value_or("")) : "";
  }
  // What of the body is there now; "error" behind it where it broke.
  std::string ReadBody() {
    std::string text;
    while (link_->body != nullptr) {
      const BodyStep step = link_->body->Next(1 << 20, [] {});
      const auto* piece = std::get_if<MemoryPiece>(&step);
      if (piece == nullptr)
        return std::holds_alternative<core::Error>(step) ? text + "error" : text;
      text.append(reinterpret_cast<const char*>(piece->bytes.data()), piece->bytes.size());
    }
    return text;
  }

 private:
  struct Link final : ExchangeLink {
    void Answer(ResponseHead answer, std::unique_ptr<Body> its_body, AccessNote its_note) override {
      head = std::move(answer);
      body = std::move(its_body);
      note = std::move(its_note);
    }
    void HandOver(ResponseHead answer, std::unique_ptr<Takeover>, AccessNote its_note) override {
      Answer(std::move(answer), nullptr, std::move(its_note));
    }
    std::shared_ptr<EventLoop> loop() const override { return nullptr; }
    bool gone() const override { return false; }

    std::optional<ResponseHead> head;
    std::unique_ptr<Body> body;
    AccessNote note;
  };

  Request request_;
  const std::shared_ptr<Link> link_;
};

}  // namespace dartfs::httpd
