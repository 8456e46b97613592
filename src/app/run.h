// The whole of `dartfs`: options, start, waiting for signals, stop.
#pragma once

namespace dartfs::app {

// What main returns. Overwrites secrets in argv.
int Run(int argc, char** argv);

}  // namespace dartfs::app
