// SPDX-License-Identifier: BSL-1.0
#include <redoubt/policy/write_probe.hpp>

#include <ostream>

#include <redoubt/core/option_error.hpp>

namespace redoubt {

using namespace std::chrono_literals;

void write_probe_options::validate() const {
  detail::require_option(!key.get().empty(), "write_probe", "key", key.get(), "must not be empty");
  detail::require_option(ttl >= 1ms && ttl <= 24h, "write_probe", "ttl", ttl, "must be 1 ms to 1 day");
  detail::require_option(payload >= 1 && payload <= (1u << 20), "write_probe", "payload",
                         std::uint64_t{payload}, "must be 1 to 1048576");
}

std::string_view to_string(capability c) noexcept {
  switch (c) {
    case capability::no: return "no";
    case capability::yes: return "yes";
    case capability::misconfigured: return "misconfigured";
  }
  return "invalid";
}

std::ostream& operator<<(std::ostream& out, capability c) { return out << to_string(c); }

std::string_view probe_report::cause_text() const noexcept {
  if (healthy()) return {};
  return cause.server != server_errc::none ? to_string(cause.server) : to_string(cause.code);
}

std::ostream& operator<<(std::ostream& out, probe_report const& r) {
  auto const say = [&out](capability c, std::string_view verb) {
    switch (c) {
      case capability::yes: out << ", " << verb << "s"; break;
      case capability::no: out << ", does not " << verb; break;
      case capability::misconfigured: out << ", may not " << verb; break;
    }
  };
  out << (r.answers ? "answers" : "does not answer");
  say(r.reads, "read");
  say(r.writes, "write");
  if (!r.healthy()) out << " (" << r.cause_text() << ")";
  return out << ", " << std::chrono::duration<double, std::milli>(r.took).count() << " ms";
}

namespace detail {
namespace {

/// The failure in an answer, or none: errors of the server arrive as failures, but may also be elements of a
/// reply.
std::optional<failure> failure_of(result<reply> const& answer) {
  if (!answer) return answer.error();
  if (!answer->is_error()) return std::nullopt;
  failure f;
  f.code = errc::server_error;
  f.server = answer->as_error().code;
  f.effect = answer->as_error().effect;
  f.phase = phase::done;
  return f;
}

capability judge(std::optional<failure> const& f) {
  if (!f) return capability::yes;
  auto const group = f->group();
  bool const ours = group == failure_class::misconfigured || group == failure_class::caller_error;
  return ours ? capability::misconfigured : capability::no;
}

}  // namespace

probe_report judge_probe(std::span<result<reply> const> answers) {
  probe_report r;
  if (answers.size() != 3) {
    r.cause.code = errc::unexpected_reply;
    return r;
  }
  auto const ping = failure_of(answers[0]);
  auto const get = failure_of(answers[1]);
  auto const set = failure_of(answers[2]);
  for (auto const* f : {&ping, &get, &set}) {
    if (!*f || (*f)->server != server_errc::none) r.answers = true;
  }
  r.reads = judge(get);
  r.writes = judge(set);
  if (set) {
    r.cause = *set;
  } else if (get) {
    r.cause = *get;
  }
  return r;
}

}  // namespace detail

}  // namespace redoubt
