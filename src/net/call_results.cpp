// SPDX-License-Identifier: BSL-1.0
//
// From commands to pending calls, and from ended calls to results.
#include <tuple>

#include <redoubt/net/client_state.hpp>
#include <redoubt/resp/decode.hpp>

namespace redoubt::detail {
namespace {

void refuse_shared(pending_call& call, std::string_view name) {
  auto text = std::make_shared<failure_detail>();
  text->note = std::string(command_name(name).view());
  call.error = failure{
      .code = errc::refused_command, .effect = effect::none, .rejected = true, .detail = std::move(text)};
}

failure server_failure(server_error const& error, pending_call const& call) {
  auto out = to_failure(error);
  out.command = call.name;
  return out;
}

result<reply> judged(reply&& r, pending_call const& call) {
  if (!r.is_error()) return std::move(r);
  auto why = server_failure(r.as_error(), call);
  if (call.runs_script) why.effect = effect_inside_script(r.as_error());
  return why;
}

}  // namespace

void prepare(pending_call& call, command&& cmd) {
  call.name = command_name(cmd.name());
  call.runs_script = runs_script(cmd.name());
  if (cannot_share_connection(cmd)) refuse_shared(call, cmd.name());
  std::tie(call.bytes, call.offset) = std::move(cmd).release();
  call.replies = 1;
}

void prepare(pending_call& call, pipeline&& batch) {
  call.name = batch.label();
  call.runs_script = batch.runs_script();
  if (!batch.refused().empty()) refuse_shared(call, batch.refused());
  call.replies = static_cast<std::uint32_t>(batch.size());
  call.bytes = std::move(batch).release();
  call.offset = 0;
}

void prepare(pending_call& call, transaction&& block) {
  call.name = command_name("MULTI");
  call.runs_script = block.runs_script();
  if (!block.refused().empty()) refuse_shared(call, block.refused());
  call.replies = block.empty() ? 0 : static_cast<std::uint32_t>(block.size() + 2);
  call.bytes.append(command("MULTI").wire()).append(block.wire()).append(command("EXEC").wire());
  call.offset = 0;
}

result<reply> single_result(pending_call& call) {
  if (call.error) return std::move(*call.error);
  return std::move(call.value);
}

std::vector<result<reply>> pipeline_result(pending_call& call) {
  std::vector<result<reply>> out;
  out.reserve(call.replies);
  if (call.replies == 1) {
    out.push_back(single_result(call));
    return out;
  }
  for (auto& r : call.values) out.push_back(judged(std::move(r), call));
  while (out.size() < call.replies) out.push_back(*call.error);
  return out;
}

result<std::vector<result<reply>>> transaction_result(pending_call& call) {
  if (call.error) return std::move(*call.error);
  std::vector<result<reply>> out;
  if (call.values.empty()) return out;  // an empty block
  auto& last = call.values.back();
  if (call.values.front().is_error()) {
    // MULTI itself was refused, so what followed ran (or was refused) one by one.
    auto why = server_failure(call.values.front().as_error(), call);
    why.effect = effect::unknown;
    return why;
  }
  if (last.is_error()) {
    // EXEC refuses the whole block when one of its commands was refused; that command's error is the reason.
    for (std::size_t i = 1; i + 1 < call.values.size(); ++i) {
      if (call.values[i].is_error()) return server_failure(call.values[i].as_error(), call);
    }
    return server_failure(last.as_error(), call);
  }
  if (!last.is_array()) return unexpected_reply(last, "the array of EXEC");
  auto elements = std::move(last).take_array();
  out.reserve(elements.size());
  for (auto& element : elements) out.push_back(judged(std::move(element), call));
  return out;
}

bool eval_outcome::again(pending_call& call) {
  bool const unknown_script =
      call.error && call.error->server == server_errc::noscript && call.error->effect == effect::none;
  if (!unknown_script || sent_body) return false;
  sent_body = true;
  prepare(call, eval_command(request.body, request.k, request.a, key_prefix, false));
  call.value = reply();
  call.error.reset();
  return true;
}

}  // namespace redoubt::detail
