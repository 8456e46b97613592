// What the handles of a FileSystem hold. Private to file_system*.cc.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/engine/object.h"
#include "core/engine/object_reader.h"
#include "fs/file_system.h"

namespace dartfs::fs {

struct FileSystem::OpenFile {
  OpenFile(std::unique_ptr<core::ObjectReader> r, core::Requester who, NodeId n)
      : reader(std::move(r)), requester(std::move(who)), node(n), size(reader->object()->size()) {}
  const std::unique_ptr<core::ObjectReader> reader;
  const core::Requester requester;
  const NodeId node;
  const uint64_t size;  // bytes
  // Reads not yet answered. Apart from the file, which a completion must not keep alive.
  const std::shared_ptr<std::atomic<int>> reading = std::make_shared<std::atomic<int>>(0);
  std::atomic<uint32_t> reads{0};  // that had to wait
};

struct FileSystem::OpenDirectory {
  explicit OpenDirectory(std::shared_ptr<Node> n) : node(std::move(n)) {}
  const std::shared_ptr<Node> node;
  core::Mutex mu;  // leaf
  std::shared_ptr<const Listing> listing GUARDED_BY(mu);
};

class FileSystem::UnderWay {
 public:
  explicit UnderWay(FileSystem& fs) : fs_(&fs) {
    fs.under_way_.fetch_add(1, std::memory_order_relaxed);
  }
  UnderWay(UnderWay&& other) noexcept : fs_(std::exchange(other.fs_, nullptr)) {}
  UnderWay& operator=(UnderWay&&) = delete;
  // Release: what the completion did to the file system comes before its destruction.
  ~UnderWay() {
    if (fs_ != nullptr) fs_->under_way_.fetch_sub(1, std::memory_order_release);
  }

 private:
  FileSystem* fs_;
};

}  // namespace dartfs::fs
