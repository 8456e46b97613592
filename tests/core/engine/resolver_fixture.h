// An engine whose origin's answers the test gives by hand.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine_fixture.h"
#include "fake/fake_http_client.h"

namespace dartfs::core {

class ResolverTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    AskAnew();
  }
  void TearDown() override {
    asked_->Stop();
    fake_.Stop();
    StopParts();
    asked_.reset();
    before_.clear();
    EngineTest::TearDown();
  }
  // Another engine, with `options_` as they are now.
  void AskAnew() {
    if (asked_ != nullptr) asked_->Stop();
    before_.push_back(
        std::exchange(asked_, Engine::Create(options_, *store_, fake_, *scheduler_, RealRandom())));
  }
  using Opened = std::future<Result<std::shared_ptr<Object>>>;
  Opened Ask(const std::string& url, OpenOptions options = {}) {
    auto promise = std::make_shared<std::promise<Result<std::shared_ptr<Object>>>>();
    asked_->Open(
        std::move(ParseUrl(url)).value(), std::move(options),
        [promise](Result<std::shared_ptr<Object>> r) { promise->set_value(std::move(r)); });
    return promise->get_future();
  }
  static std::string Signed(const std::string& signature) {
    return "http://bucket.example/x?Signature=" + signature + "&Expires=1&AWSAccessKeyId=K";
  }

  FakeHttpClient fake_{nullptr};
  std::unique_ptr<Engine> asked_;
  std::vector<std::unique_ptr<Engine>> before_;  // blocks of theirs may still be being stored
};

}  // namespace dartfs::core
