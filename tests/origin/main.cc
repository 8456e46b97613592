// test-origin: a directory over HTTP, with faults on demand.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "origin/http_text.h"
#include "origin/test_origin.h"

namespace dartfs::origin {
namespace {

struct Arguments {
  OriginOptions options;
  std::string listen = "127.0.0.1:0";
  std::string index = "nginx";
  std::string rate = "0";
  std::string port_file;
};

void Declare(CLI::App& app, Arguments& arguments) {
  OriginOptions& options = arguments.options;
  app.add_option("--root", options.root, "Directory to serve; without it only generated objects")
      ->check(CLI::ExistingDirectory);
  app.add_option("--listen", arguments.listen, "IPv4 address and port (0: any free one)")
      ->capture_default_str();
  app.add_option("--index", arguments.index,
                 "Directory listings: nginx, apache, python, json, s3, none")
      ->capture_default_str();
  app.add_option("--delay-ms", options.behaviour.delay_ms,
                 "Milliseconds before each answer: the round trip");
  app.add_option("--connect-delay-ms", options.behaviour.connect_delay_ms,
                 "More milliseconds before the first answer of a connection");
  app.add_option("--rate", arguments.rate,
                 "Body bytes a second for each connection, like 50MB; 0: no limit");
  app.add_option("--threads", options.threads, "Event threads")->capture_default_str();
  app.add_option("--port-file", arguments.port_file, "Write the port here once it listens");
  app.add_flag("--log", options.log_to_stderr, "Print each request to standard error");
}

// Empty, or what is wrong.
std::string Complete(Arguments& arguments) {
  OriginOptions& options = arguments.options;
  const std::size_t colon = arguments.listen.rfind(':');
  if (colon == std::string::npos) return "--listen needs ADDRESS:PORT, like 127.0.0.1:8000";
  options.address = arguments.listen.substr(0, colon);
  const auto port = ParseNumber(arguments.listen.substr(colon + 1));
  if (!port || *port > 65535) return "--listen: the port is a number from 0 to 65535";
  options.port = static_cast<std::uint16_t>(*port);
  if (!ParseName(arguments.index, options.behaviour.index)) {
    return "--index is one of nginx, apache, python, json, s3, none";
  }
  const auto rate = ParseSize(arguments.rate);
  if (!rate) return "--rate is a number of bytes, like 1000000 or 50MB or 8MiB";
  options.behaviour.rate = *rate;
  return "";
}

bool WritePortFile(const std::string& path, std::uint16_t port) {
  const std::string temporary = path + ".new";
  std::FILE* file = std::fopen(temporary.c_str(), "we");
  if (file == nullptr) return false;
  const bool written = std::fprintf(file, "%u\n", port) > 0;
  return std::fclose(file) == 0 && written && std::rename(temporary.c_str(), path.c_str()) == 0;
}

int Serve(const Arguments& arguments) {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigaddset(&end, SIGINT);
  sigprocmask(SIG_BLOCK, &end, nullptr);

  std::string error;
  const auto origin = TestOrigin::Start(arguments.options, &error);
  if (origin == nullptr) {
    std::fprintf(stderr, "test-origin: %s\n", error.c_str());
    return 1;
  }
  if (!arguments.port_file.empty() && !WritePortFile(arguments.port_file, origin->port())) {
    std::fprintf(stderr, "test-origin: cannot write %s\n", arguments.port_file.c_str());
    return 1;
  }
  std::printf("serving %s at %s (stop with SIGTERM, pid %d)\n",
              arguments.options.root.empty() ? "/_gen/" : arguments.options.root.c_str(),
              origin->Url().c_str(), getpid());
  std::fflush(stdout);
  int signal_number = 0;
  sigwait(&end, &signal_number);
  origin->Stop();
  return 0;
}

}  // namespace
}  // namespace dartfs::origin

int main(int argc, char** argv) {
  dartfs::origin::Arguments arguments;
  CLI::App app(
      "HTTP origin for tests and benches: a directory with ranges, validators and an "
      "index, generated objects at /_gen/SIZE/SEED/NAME, faults on demand by "
      "?fault=NAME or POST /_ctl/faults.",
      "test-origin");
  dartfs::origin::Declare(app, arguments);
  CLI11_PARSE(app, argc, argv);
  if (const std::string wrong = dartfs::origin::Complete(arguments); !wrong.empty()) {
    std::fprintf(stderr, "test-origin: %s\n", wrong.c_str());
    return 2;
  }
  return dartfs::origin::Serve(arguments);
}
