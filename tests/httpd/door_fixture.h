// The HTTP door before a whole engine: a scripted origin behind it, raw bytes before it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine_fixture.h"
#include "httpd/listen.h"
#include "httpd/server.h"
#include "httpd/service.h"
#include "origin/raw_client.h"

namespace dartfs::httpd {

using origin::RawClient;
using origin::RawResponse;

class DoorTest : public core::EngineTest {
 protected:
  void SetUp() override {
    core::EngineTest::SetUp();
    service_options_.policy.hosts = {"origin", "node.example"};  // the first is RawClient's
    service_options_.policy.via_id = "feed";
  }
  void TearDown() override {
    StopDoor();
    core::EngineTest::TearDown();
  }

  void StartDoor() {
    urls_ = std::make_unique<UrlHandler>(*engine_, url_options_, relayed_);
    ServiceHandlers handlers;
    handlers.urls = urls_.get();
    handlers.registry = registry_;
    handlers.admin = admin_;
    handlers.connect = connect_;
    service_ = std::make_unique<Service>(service_options_, handlers);
    auto sockets = Listen({"127.0.0.1", 0});
    ASSERT_TRUE(sockets) << sockets.error().ToString();
    port_ = sockets->front().port;
    std::vector<ServedSocket> served;
    for (ListenSocket& socket : *sockets) served.push_back({std::move(socket), Listener{}});
    auto server = Server::Start(server_options_, std::move(served), *service_);
    ASSERT_TRUE(server) << server.error().ToString();
    server_ = std::move(*server);
  }
  void StopDoor() {
    if (server_ == nullptr) return;
    server_->Drain();
    engine_->Stop();
    http_->Stop();
    server_.reset();
  }
  uint16_t port() {
    if (server_ == nullptr) StartDoor();
    return port_;
  }

  // The prefix API's target for a path of the origin.
  std::string Target(const std::string& path) { return "/dart/" + origin().Url(path); }
  RawResponse Ask(const std::string& method, const std::string& path,
                  const std::string& headers = "") {
    return origin::Fetch(port(), method, Target(path), headers);
  }
  RawResponse Get(const std::string& path, const std::string& headers = "") {
    return Ask("GET", path, headers);
  }
  std::string Range(const std::string& range) { return "Range: " + range + "\r\n"; }

  ServiceOptions service_options_;
  UrlHandlerOptions url_options_;
  ServerOptions server_options_;
  RelayCounts relayed_;
  Handler* registry_ = nullptr;
  Handler* admin_ = nullptr;
  Handler* connect_ = nullptr;
  std::unique_ptr<UrlHandler> urls_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

}  // namespace dartfs::httpd
