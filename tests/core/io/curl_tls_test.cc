// TLS against `openssl s_server`: certificates are verified, and the error says what to do.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "http_fixture.h"

extern char** environ;

namespace dartfs::core {
namespace {

class CurlTlsTest : public HttpClientTest {
 protected:
  void SetUp() override {
    char name[] = "/tmp/dartfs-tls-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override {
    if (server_ > 0) {
      kill(server_, SIGKILL);
      waitpid(server_, nullptr, 0);
    }
    std::filesystem::remove_all(dir_);
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  // 0 when it can't be started.
  pid_t Spawn(std::vector<std::string> args, const std::string& output) {
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    const int rc = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc == 0 ? pid : 0;
  }
  bool MakeCertificate(const std::string& name) {
    const pid_t pid = Spawn(
        {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=" + name,
         "-keyout", Path("key.pem"), "-out", Path("cert.pem")},
        Path("req.txt"));
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
  }
  // The port, 0 when it does not come up.
  int Serve() {
    server_ = Spawn({"openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-key",
                     Path("key.pem"), "-cert", Path("cert.pem")},
                    Path("server.txt"));
    int port = 0;
    RawServer::WaitFor([&] {
      std::stringstream text;
      text << std::ifstream(Path("server.txt")).rdbuf();
      const std::string all = text.str();
      const std::string mark = "ACCEPT 127.0.0.1:";
      const size_t at = all.find(mark);
      if (at == std::string::npos || all.find('\n', at) == std::string::npos) return false;
      port = std::stoi(all.substr(at + mark.size()));
      return true;
    });
    return port;
  }

  std::string dir_;
  pid_t server_ = 0;
};

TEST_F(CurlTlsTest, CertificatesAreVerified) {
  if (!MakeCertificate("IP:127.0.0.1")) GTEST_SKIP() << "the openssl program is not installed";
  const int port = Serve();
  ASSERT_GT(port, 0);
  const std::string url = "https://127.0.0.1:" + std::to_string(port) + "/x?secret";

  const SinkPtr unknown = Fetch(url);
  EXPECT_EQ(unknown->code(), Code::kBadResponse) << unknown->error().context;
  EXPECT_NE(unknown->error().context.find("--ca-file"), std::string::npos);
  EXPECT_EQ(unknown->error().context.find("secret"), std::string::npos);

  HttpClientOptions options = Options();
  options.ca_file = Path("cert.pem");
  Make(options);
  const SinkPtr known = Fetch(url);
  ASSERT_TRUE(known->ok()) << known->error().context;
  EXPECT_EQ(known->status(), 200);
  EXPECT_NE(known->body().find("Cipher"), std::string::npos);
  const SinkPtr plain = Fetch("http" + url.substr(5));
  EXPECT_FALSE(plain->ok()) << "plain HTTP to a TLS port";
}

TEST_F(CurlTlsTest, CertificateForAnotherHostIsRefused) {
  if (!MakeCertificate("DNS:other.example")) GTEST_SKIP() << "the openssl program is not installed";
  const int port = Serve();
  ASSERT_GT(port, 0);
  HttpClientOptions options = Options();
  options.ca_file = Path("cert.pem");
  Make(options);
  const SinkPtr sink = Fetch("https://127.0.0.1:" + std::to_string(port) + "/x");
  EXPECT_EQ(sink->code(), Code::kBadResponse) << sink->error().context;
}

}  // namespace
}  // namespace dartfs::core
