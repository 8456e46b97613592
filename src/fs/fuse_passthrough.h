// FUSE passthrough as the kernel has it since 6.9: what INIT says of it, and the numbers of backing
// files. libfuse has an API for it only from 3.17 (KERNEL.md): there it negotiates it, here fuse_io
// does. The numbers come by the same ioctl either way, as the API's call keeps errno to itself and
// wants a request.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "fs/backing_files.h"

namespace dartfs::fs {

// Bits of INIT's flags; those from 32 on are in its second word (linux/fuse.h, kernel 6.9).
inline constexpr uint64_t kInitExt = uint64_t{1} << 30;
inline constexpr uint64_t kInitPassthrough = uint64_t{1} << 37;
// Backing files lie on a file system that does not itself stack on another; this mount may be the
// lower one of an overlayfs.
inline constexpr uint32_t kMaxStackDepth = 1;
// Of the answer to OPEN.
inline constexpr uint32_t kOpenPassthrough = uint32_t{1} << 7;

// An open /dev/fuse of the connection, duplicated. kIo.
core::Result<std::shared_ptr<BackingFiles>> MakeBackingFiles(int device);

// Whether the kernel takes files that lie beside `probe_file`: registers that and takes it back.
// The error says what is missing, in words for people.
core::Status ProbePassthrough(BackingFiles& files, const std::string& probe_file);

}  // namespace dartfs::fs
