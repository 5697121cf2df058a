#pragma once

// For tests: the API as clients see it, over the socket and over TCP, with a controller and without
// processes.

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "renzan/base/clock_testing.h"
#include "renzan/base/file/file.h"
#include "renzan/base/http/http.h"
#include "renzan/cluster/local/controller/fake_agent_for_test.h"
#include "renzan/cluster/local/server/api_server.h"
#include "renzan/cluster/local/server/api_tcp.h"
#include "renzan/cluster/local/server/tokens.h"

namespace renzan::cluster::local {

// A connection with a timeout, to a socket's path or "https://127.0.0.1:PORT" (without TLS); -1 if
// nobody listens.
int Connect(const std::string& socket);
// Receives until the other side closes.
std::string ReceiveAll(int fd);
// Sends one request on a new connection to a socket and returns the response; "" if nobody listens.
std::string Ask(const std::string& socket, const std::string& method, const std::string& target,
                const std::string& body = "");
nlohmann::json BodyOf(const std::string& answer);

class ServedApi : public ::testing::Test {
 protected:
  ServedApi();
  ~ServedApi() override;

  void Serve(const ApiLimits& limits, const std::vector<std::string>& allow_users = {});
  std::string Submit(const std::string& yaml);

  // A user whom the daemon serves over TCP: nobody by root's daemon, else its own.
  static std::string Bearer();
  std::string NewToken(int64_t seconds = 3600) { return tokens_.Create(Bearer(), seconds).token; }
  // Over TLS; "": without a token. Throws HttpFailure.
  HttpAnswer AskTcp(const std::string& token, const std::string& method, const std::string& target,
                    const std::string& body = "");

  TemporaryDirectory directory_;
  std::string fault_;  // of the snapshot, as the validator would report it
  const std::string socket_ = directory_ / "socket";
  std::string url_;  // for TCP
  const TcpIdentity identity_ = LoadTcpIdentity(directory_ / "key.pem", 1.7e9);
  std::string pin_ = identity_.pin;  // as clients know it
  ManualClock clock_;                // of the tokens alone
  Tokens tokens_{directory_ / "tokens.json", {"nobody"}, clock_};
  Http http_;
  const int stop_fd_;
  Store store_{directory_ / "state.db"};
  FakeAgent agent_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<ApiServer> server_;
  std::thread thread_;
};

}  // namespace renzan::cluster::local
