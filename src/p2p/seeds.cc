#include "p2p/seeds.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"
#include "core/io/host_port.h"

namespace dartfs::p2p {
namespace {

using core::Code;
using core::HostPort;
using core::MakeError;
using core::Result;

using Made = Result<std::unique_ptr<Seeder>>;

Result<HostPort> PeerAddress(std::string_view text) {
  auto parts = core::SplitHostPort(text);
  if (parts && parts->port != 0 && !parts->host.empty()) return std::move(*parts);
  return MakeError(Code::kInvalidArgument,
                   "'" + core::EscapeForeign(text) +
                       "' is no peer's address: write host:port, such as 10.0.0.7:8146, "
                       "node-7:8146 or [fd00::7]:8146");
}

class StaticSeeder final : public Seeder {
 public:
  explicit StaticSeeder(std::vector<std::string> addresses) : addresses_(std::move(addresses)) {}
  Result<std::vector<std::string>> Seeds() override { return addresses_; }

 private:
  const std::vector<std::string> addresses_;
};

class DnsSeeder final : public Seeder {
 public:
  DnsSeeder(HostPort name, SeederContext context)
      : name_(std::move(name)), context_(std::move(context)) {}

  Result<std::vector<std::string>> Seeds() override {
    TRY_ASSIGN(const std::vector<std::string> hosts, context_.resolve(name_.host));
    std::vector<std::string> seeds;
    for (const std::string& host : hosts) seeds.push_back(HostPort{host, name_.port}.ToString());
    std::sort(seeds.begin(), seeds.end());
    seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
    return seeds;
  }

 private:
  const HostPort name_;
  const SeederContext context_;
};

Made MakeStatic(std::string_view list, const SeederContext& /*context*/) {
  std::vector<std::string> addresses;
  for (const std::string_view part : core::Split(list, ',')) {
    const std::string_view text = core::TrimAscii(part);
    if (text.empty()) continue;
    TRY_ASSIGN(const HostPort address, PeerAddress(text));
    addresses.push_back(address.ToString());
  }
  if (addresses.empty()) {
    return MakeError(Code::kInvalidArgument, "no peer's address is named: write host:port,...");
  }
  return std::unique_ptr<Seeder>(std::make_unique<StaticSeeder>(std::move(addresses)));
}

Made MakeDns(std::string_view name, const SeederContext& context) {
  auto parts = core::SplitHostPort(name);
  if (!parts || parts->port == 0 || parts->host.empty()) {
    return MakeError(Code::kInvalidArgument,
                     "'dns:" + core::EscapeForeign(name) +
                         "': write dns:<name>:<port>, such as dns:dartfs.example:8146");
  }
  return std::unique_ptr<Seeder>(std::make_unique<DnsSeeder>(std::move(*parts), context));
}

// Another kind of place to look for peers is another row.
struct Scheme {
  std::string_view prefix;
  Made (*make)(std::string_view rest, const SeederContext& context);
};
constexpr std::array<Scheme, 2> kSchemes = {{{"dns:", MakeDns}, {"static:", MakeStatic}}};

}  // namespace

Result<std::unique_ptr<Seeder>> ParseSeeder(std::string_view spec, const SeederContext& context) {
  spec = core::TrimAscii(spec);
  for (const Scheme& scheme : kSchemes) {
    if (spec.starts_with(scheme.prefix)) {
      return scheme.make(spec.substr(scheme.prefix.size()), context);
    }
  }
  return MakeStatic(spec, context);
}

}  // namespace dartfs::p2p
