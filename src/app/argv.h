// Hides logins and queries in the process's own command line, which everyone can read in /proc.
#pragma once

namespace dartfs::app {

// Overwrites in place each argument that holds a URL with a login, a query or a fragment by the
// same URL without them; zero bytes fill the rest. Before threads start, after the arguments were
// read.
void HideSecretArguments(int argc, char** argv);

}  // namespace dartfs::app
