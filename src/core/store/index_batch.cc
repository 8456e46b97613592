#include "core/store/index_batch.h"

#include "core/base/random.h"

namespace dartfs::core {
namespace {

bool BeginsWith(std::string_view key, std::string_view prefix) {
  return key.substr(0, prefix.size()) == prefix;
}

}  // namespace

IndexTable TableOf(NameTable table) {
  return table == NameTable::kNames ? IndexTable::kNames : IndexTable::kUrls;
}

Status IndexBatchWriter::Write(const IndexBatch& batch) {
  for (const auto& rekey : batch.rekeys) TRY(Rekey(rekey));
  for (const auto& object : batch.erased_objects) TRY(EraseObject(object));
  for (const auto& [key, meta] : batch.objects) {
    TRY(txn_.Put(IndexTable::kObjects, ObjectKeyBytes(key), EncodeObject(meta)));
  }
  for (const auto& [key, record] : batch.chunks) {
    const std::string bytes = ChunkKeyBytes(key);
    // A pinned object may have no blocks.
    if (record.blocks == 0 && (record.flags & ChunkRecord::kPinned) == 0) {
      TRY(txn_.Delete(IndexTable::kChunks, bytes));
    } else {
      TRY(txn_.Put(IndexTable::kChunks, bytes, EncodeChunk(record)));
    }
  }
  for (const auto& sums : batch.sums) {
    const std::string bytes = SumsKeyBytes(sums.object, sums.block);
    if (sums.sums.empty()) {
      TRY(txn_.Delete(IndexTable::kSums, bytes));
    } else {
      TRY(txn_.Put(IndexTable::kSums, bytes, EncodeSums(sums.sums)));
    }
  }
  for (const auto& name : batch.names) TRY(WriteName(name));
  return {};
}

Result<std::vector<std::pair<std::string, std::string>>> IndexBatchWriter::Collect(
    IndexTable table, const StoreKey& object) {
  const std::string prefix = ObjectKeyBytes(object);
  std::vector<std::pair<std::string, std::string>> entries;
  TRY_ASSIGN(IndexCursor cursor, IndexCursor::Open(txn_, env_.table(table)));
  TRY_ASSIGN(auto entry, cursor.Seek(prefix));
  while (entry && BeginsWith(entry->key, prefix)) {
    entries.emplace_back(entry->key, entry->value);
    TRY_ASSIGN(entry, cursor.Next());
  }
  return entries;
}

Status IndexBatchWriter::EraseRange(IndexTable table, const StoreKey& object) {
  const std::string prefix = ObjectKeyBytes(object);
  TRY_ASSIGN(IndexCursor cursor, IndexCursor::Open(txn_, env_.table(table)));
  for (;;) {
    TRY_ASSIGN(const auto entry, cursor.Seek(prefix));
    if (!entry || !BeginsWith(entry->key, prefix)) return {};
    TRY(cursor.DeleteCurrent());
  }
}

Status IndexBatchWriter::EraseObject(const StoreKey& object) {
  TRY(txn_.Delete(IndexTable::kObjects, ObjectKeyBytes(object)));
  TRY(EraseRange(IndexTable::kChunks, object));
  return EraseRange(IndexTable::kSums, object);
}

Status IndexBatchWriter::Rekey(const IndexBatch::Rekey& rekey) {
  TRY(EraseObject(rekey.to));
  for (const IndexTable table : {IndexTable::kChunks, IndexTable::kSums}) {
    TRY_ASSIGN(const auto entries, Collect(table, rekey.from));
    for (const auto& [key, value] : entries) {
      const auto payload = UnsealRecord(table, key, value);
      if (!payload) continue;
      const std::string new_key = ObjectKeyBytes(rekey.to) + key.substr(StoreKey::kBytes);
      TRY(txn_.Put(table, new_key, *payload));
    }
  }
  return EraseObject(rekey.from);
}

Status IndexBatchWriter::WriteName(const IndexBatch::Name& name) {
  const IndexTable table = TableOf(name.table);
  const std::string key = NameKeyBytes(name.name);
  if (!name.value) return txn_.Delete(table, key);
  TRY(MakeRoomForName(table, key));
  return txn_.Put(table, key, EncodeName(name.name, *name.value));
}

Status IndexBatchWriter::MakeRoomForName(IndexTable table, std::string_view new_key) {
  TRY_ASSIGN(const uint64_t entries, txn_.CountEntries(table));
  if (entries < max_names_) return {};
  TRY_ASSIGN(const auto existing, txn_.Get(table, new_key));
  if (existing) return {};
  TRY_ASSIGN(IndexCursor cursor, IndexCursor::Open(txn_, env_.table(table)));
  TRY_ASSIGN(auto victim, cursor.Seek(NameKeyBytes(std::to_string(RealRandom().Next()))));
  if (!victim) {
    TRY_ASSIGN(victim, cursor.Seek(std::string_view("\0", 1)));
    if (!victim) return {};
  }
  return cursor.DeleteCurrent();
}

}  // namespace dartfs::core
