// SPDX-License-Identifier: BSL-1.0
//
// Scripted faults: which command they hit, and how the reply then leaves.
#include <algorithm>

#include "fake_server_impl.hpp"

namespace redoubt::testing {

void fake_server::inject(fault f) {
  if (f.times > 0) impl_->faults.push_back(std::move(f));
}

void fake_server::clear_faults() { impl_->faults.clear(); }

fake_server::fault* fake_server::impl::match(session_state const& client, detail::arguments const& args) {
  if (client.in_transaction && !detail::is_word(args[0], "exec")) return nullptr;
  auto const name = detail::lower(args[0]);
  for (auto& f : faults) {
    if (!f.command.empty() && detail::lower(f.command) != name) continue;
    if (f.skip == 0) return &f;
    --f.skip;
  }
  return nullptr;
}

void fake_server::impl::answer(session to, std::string reply, fault const& f) {
  auto* const client = find(to);
  if (client == nullptr) return;
  switch (f.what) {
    case fault::kind::drop_reply: client->mute = true; return;
    case fault::kind::cut: return finish(to, reply.substr(0, f.cut_after), f.delay, false);
    case fault::kind::reset_after_execution: return finish(to, {}, f.delay, true);
    case fault::kind::garbage: reply = f.text; break;
    case fault::kind::extra_reply: reply += f.text; break;
    case fault::kind::delay:
    case fault::kind::error:
    case fault::kind::silent:
    case fault::kind::reset_before_execution: break;
  }
  if (client->closing) return finish(to, std::move(reply), f.delay, false);
  send(to, std::move(reply), f.delay);
}

}  // namespace redoubt::testing
