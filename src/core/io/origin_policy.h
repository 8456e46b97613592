// OriginPolicy: which origins the operator lets this node ask: by the host and port of a URL before
// a connection is made, and by the address that is then connected to (DESIGN.md section 9). Pure.
//
// A URL is refused when a deny rule matches its host or its address. Where there are allow rules,
// one of them must match the host or the address. An address that is refused by default
// (address_policy.h) is allowed only by a rule that names addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/url.h"
#include "core/io/address_policy.h"

namespace dartfs::core {

// One line of --origin-allow or --origin-deny; made by ParseOriginRule.
struct OriginRule {
  std::string host;               // lower case; "*.domain": the names below it; empty: any host
  std::optional<Cidr> addresses;  // instead of a host
  std::optional<uint16_t> port;   // absent: any
};

// "host", "*.domain", "host:port", "*:port", "10.0.0.0/8", "10.1.2.3:80", "fd00::/8",
// "[fd00::/8]:443". kInvalidArgument, with what may be written, for anything else.
Result<OriginRule> ParseOriginRule(std::string_view text);

struct OriginPolicy {
  std::vector<OriginRule> allow;
  std::vector<OriginRule> deny;
  bool allow_link_local = false;  // AddressPolicyOptions'; an HttpClient sets it by its own options

  // Before a connection: kRefused where no address could make the URL an allowed one. The context
  // names host and port and the option.
  Status CheckUrl(const Url& url) const;
  // The same through a proxy, where the origin's address stays unknown: by the host alone, an
  // address in the URL counting as one. `untrusted`: a client of the network has named the URL;
  // then a rule must name its host (an address, or a name; not *:port), so that the proxy's place
  // in the network is no way around this node's.
  Status CheckUrlByProxy(const Url& url, bool untrusted) const;
  // `address` is what is connected to for that URL, or was when the connection was made.
  Status CheckAddress(const Url& url, const IpAddress& address) const;
  // A proxy's: the default refusals alone.
  Status CheckProxyAddress(const IpAddress& address) const;
};

// The policy that holds now. Thread-safe.
class CurrentOriginPolicy final {
 public:
  explicit CurrentOriginPolicy(OriginPolicy policy) { Set(std::move(policy)); }
  std::shared_ptr<const OriginPolicy> Get() const {
    MutexLock lock(mu_);
    return policy_;
  }
  void Set(OriginPolicy policy) {
    auto fresh = std::make_shared<const OriginPolicy>(std::move(policy));
    MutexLock lock(mu_);
    policy_.swap(fresh);
  }

 private:
  mutable Mutex mu_;  // last
  std::shared_ptr<const OriginPolicy> policy_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
