#include <nlohmann/json.hpp>

#include "renzan/base/log.h"
#include "renzan/cluster/local/server/api_json.h"
#include "renzan/cluster/local/server/tokens.h"

namespace renzan::cluster::local {
namespace {

// Whoever bears a token is never the operator, so no token makes another one.
Tokens& TokensFor(const ApiContext& context, const ApiRequest& request) {
  context.loop.Run(
      [&](Controller& controller) { controller.access().RequireOperator(request.caller); });
  CHECK(context.tokens != nullptr);
  return *context.tokens;
}

Json TokenJson(const TokenRecord& record) {
  return {{"id", record.id},
          {"user", record.user},
          {"created", record.created},
          {"expires", record.expires},
          {"last_used", record.last_used == 0 ? Json() : Json(record.last_used)}};
}

}  // namespace

ServerAnswer CreateToken(const ApiContext& context, const ApiRequest& request) {
  Tokens& tokens = TokensFor(context, request);
  if (context.tcp.empty())
    Fail(ErrorCode::kUsage,
         "this daemon does not serve TCP, so nobody needs a token: start it with `renzan cluster "
         "up --listen HOST:PORT`");
  const Json body = ParseBody(request);
  const auto user = body.find("user"), seconds = body.find("for_seconds");
  if (user == body.end() || !user->is_string() || seconds == body.end() ||
      !seconds->is_number_integer() || seconds->get<int64_t>() < 1 ||
      seconds->get<int64_t>() > kMaxTokenSeconds)
    throw BadRequest("expected user (a name) and for_seconds (from 1 second to 366 days)");
  const Tokens::Made made = tokens.Create(user->get<std::string>(), seconds->get<int64_t>());
  LogInfo("{} has made token {} for {}", request.caller.name, made.record.id, made.record.user);
  Json answer = TokenJson(made.record);
  answer["token"] = made.token;
  answer["address"] = context.tcp;
  answer["pin"] = context.tcp_pin;
  answer["owns_daemon"] = made.record.uid == context.uid;
  return {.status = 201, .text = BodyOf(answer)};
}

ServerAnswer ListTokens(const ApiContext& context, const ApiRequest& request) {
  Json answer = {{"tokens", Json::array()}};
  for (const TokenRecord& record : TokensFor(context, request).List())
    answer["tokens"].push_back(TokenJson(record));
  return {.text = BodyOf(answer)};
}

ServerAnswer RevokeToken(const ApiContext& context, const ApiRequest& request) {
  Tokens& tokens = TokensFor(context, request);
  const TokenRecord revoked = tokens.Revoke(NumberInPath(request, "the number of a token"));
  LogInfo("{} has revoked token {} of {}", request.caller.name, revoked.id, revoked.user);
  return {.text = BodyOf(TokenJson(revoked))};
}

}  // namespace renzan::cluster::local
