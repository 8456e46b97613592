// Limits of the process that the system sets low for others' sake.
#pragma once

namespace dartfs::app {

// Raises the soft limit of open descriptors to the hard one: 1024 is left for programs that use
// select(), and each cached object that is read and each connection takes one. Logs what it came
// to. Before threads start.
void RaiseOpenFilesLimit();

// Large buffers go back to the system when they are freed, whatever was freed before. Before
// threads start.
void KeepHeapSmall();

}  // namespace dartfs::app
