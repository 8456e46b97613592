#include "core/engine/object_maker.h"

#include <unordered_map>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/engine/digest_check.h"

namespace dartfs::core {

struct ObjectMaker::State {
  Mutex mu;
  std::unordered_map<const StoredObject*, std::weak_ptr<FlightTable>> tables GUARDED_BY(mu);
  size_t sweep_at GUARDED_BY(mu) = 1024;
};

ObjectMaker::ObjectMaker(FlightEnv& env) : env_(env), state_(std::make_unique<State>()) {}
ObjectMaker::~ObjectMaker() = default;

Result<std::shared_ptr<Object>> ObjectMaker::Make(const Url& url, const Identity& identity,
                                                  const UrlRecord& record, bool immutable) {
  if (!env_.options.grid.IsLegalSize(record.size)) {
    return MakeError(Code::kBadResponse, identity.redacted_url + ": a size of " +
                                             std::to_string(record.size) +
                                             " bytes is more than any object can have");
  }
  const auto version = ParseVersion(record.version);
  if (!version) return MakeError(Code::kInternal, identity.redacted_url + ": unknown version form");
  std::optional<DigestRecord> digest = FindDigest(identity);
  if (digest && digest->size != record.size) {
    return MakeError(Code::kBadResponse, identity.redacted_url + ": a size of " +
                                             std::to_string(record.size) + " bytes, where " +
                                             identity.digest->ToString() + " is of " +
                                             std::to_string(digest->size));
  }
  const Trust trust = digest ? Trust::kVerified : Trust::kUnverified;
  const ObjectName name = NameOfObject(identity, trust);
  Object::Facts facts;
  facts.url = url;
  facts.identity = identity;
  facts.key = MakeStoreKey(identity, *version, trust);
  facts.meta.kind = name.kind;
  facts.meta.id = name.id;
  facts.meta.version = record.version;
  facts.meta.size = record.size;
  facts.meta.etag = record.etag;
  facts.meta.last_modified = ParseHttpDate(record.last_modified).value_or(-1);
  facts.meta.content_type = record.content_type;
  facts.meta.volatile_version = version->kind == Version::Kind::kUnversioned;
  facts.meta.verified = digest.has_value();
  facts.range_blind = record.range_blind;
  facts.one_pass = facts.meta.volatile_version && record.size > env_.options.grid.block_size;
  facts.immutable = immutable || identity.content_addressed();
  TRY_ASSIGN(auto stored, env_.store.OpenObject(facts.key, facts.meta));
  if (!digest && WasFiledMeanwhile(identity)) return Make(url, identity, record, immutable);
  auto table = TableOf(stored, identity, std::move(digest));
  return std::make_shared<Object>(std::move(facts), std::move(stored), std::move(table),
                                  record.fields);
}

std::shared_ptr<FlightTable> ObjectMaker::TableOf(const std::shared_ptr<StoredObject>& stored,
                                                  const Identity& identity,
                                                  std::optional<DigestRecord> digest) {
  std::shared_ptr<FlightTable> table;
  {
    MutexLock lock(state_->mu);
    std::weak_ptr<FlightTable>& slot = state_->tables[stored.get()];
    table = slot.lock();
    if (table != nullptr) return table;
    std::shared_ptr<DigestCheck> check;
    if (identity.content_addressed()) {
      check = std::make_shared<DigestCheck>(env_, stored, identity, std::move(digest));
    }
    table = std::make_shared<FlightTable>(env_, stored, identity.authority, std::move(check));
    slot = table;
    if (state_->tables.size() > state_->sweep_at) {
      std::erase_if(state_->tables, [](const auto& entry) { return entry.second.expired(); });
      state_->sweep_at = 1024 + 2 * state_->tables.size();
    }
  }
  if (table->digest() != nullptr) table->digest()->Wake();
  return table;
}

bool ObjectMaker::WasFiledMeanwhile(const Identity& identity) {
  if (!identity.content_addressed()) return false;
  env_.digests.AwaitFiled(DigestRecordName(*identity.digest));
  return FindDigest(identity).has_value();
}

std::optional<DigestRecord> ObjectMaker::FindDigest(const Identity& identity) const {
  if (!identity.content_addressed()) return std::nullopt;
  const auto bytes = env_.store.GetName(NameTable::kUrls, DigestRecordName(*identity.digest));
  return bytes ? DecodeDigestRecord(*bytes, env_.options.grid) : std::nullopt;
}

std::optional<UrlRecord> ObjectMaker::Verified(const Identity& identity) const {
  const auto digest = FindDigest(identity);
  if (!digest) return std::nullopt;
  UrlRecord record;
  record.size = digest->size;
  return record;
}

}  // namespace dartfs::core
