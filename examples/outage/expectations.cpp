// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "outage/checks.hpp"
#include "outage/store.hpp"

namespace outage {
namespace {

using namespace std::chrono_literals;
using answers = std::vector<timed<shop::response>>;

std::ptrdiff_t count(answers const& all, int status) {
  return std::count_if(all.begin(), all.end(), [status](auto const& a) { return a.value.status == status; });
}

double longest_ms(answers const& all) {
  redoubt::duration longest{};
  for (auto const& a : all) longest = std::max(longest, a.took);
  return milliseconds(longest);
}

/// Makes `number` requests at once; `request(i)` is the i-th.
template <class Request>
answers at_once(lab& where, int number, Request request) {
  std::vector<asio::awaitable<timed<shop::response>>> all;
  for (int i = 0; i != number; ++i) all.push_back(with_time<shop::response>(request(i)));
  return where.run_all(std::move(all));
}

expectation one_read_for_two_requests(lab& where) {
  store here(where, condition::healthy);
  here.table.put("grinder", {.cents = 8'900, .name = "Grinder"});
  auto const first = where.run(here.routes.catalog.get("grinder"));
  auto const second = where.run(here.routes.catalog.get("grinder"));
  return {.name = "two requests, one database read",
          .ok = first.status == 200 && first.label == "database" && second.status == 200 &&
                second.label == "cached" && here.table.reads() == 1,
          .detail = fmt::format("{} {}, {} {}; database reads: {}", first.status, first.label, second.status,
                                second.label, here.table.reads())};
}

expectation paused_redis_reads_the_database(lab& where) {
  store here(where, condition::paused);
  here.table.put("kettle", {.cents = 4'500, .name = "Kettle"});
  where.run(here.routes.catalog.get("kettle"));  // cached now
  auto const before = here.table.reads();
  where.begin(condition::paused);
  auto const answer = where.run(here.routes.catalog.get("kettle"));
  where.end(condition::paused);
  auto const reads = here.table.reads() - before;
  return {.name = "a paused Redis sends the read to the database",
          .ok = answer.status == 200 && answer.label == "database, cache: deadline_exceeded" && reads == 1,
          .detail = fmt::format("{} {}; database reads: {}", answer.status, answer.label, reads)};
}

expectation full_bulkhead_refuses(lab& where) {
  shop::shop_options options = quick_options();
  options.catalog.database_queue = 0;  // eight slots, and nobody waits for one
  store here(where, condition::healthy, options);
  for (int i = 0; i != 9; ++i) here.table.put(fmt::format("cup-{}", i), {.cents = 790, .name = "Cup"});
  here.table.slow_down(200ms);
  auto const all =
      at_once(where, 9, [&](int i) { return here.routes.catalog.get(fmt::format("cup-{}", i)); });
  auto const& last = all.back();
  return {.name = "a full bulkhead refuses",
          .ok = count(all, 200) == 8 && last.value.status == 503 &&
                last.value.label == "busy: bulkhead_full" && last.took < 150ms && here.table.reads() == 8,
          .detail =
              fmt::format("{} x 200 after {:.0f} ms, {} {} after {:.1f} ms", count(all, 200), longest_ms(all),
                          last.value.status, last.value.label, milliseconds(last.took))};
}

expectation eight_logins_admit_five(lab& where) {
  store here(where, condition::healthy);
  auto const all = at_once(where, 8, [&](int) { return here.routes.login.sign_in(" Grace"); });
  return {.name = "eight concurrent logins admit five",
          .ok = count(all, 200) == 5 && count(all, 429) == 3,
          .detail = fmt::format("{} x 200, {} x 429", count(all, 200), count(all, 429))};
}

expectation no_redis_no_charge(lab& where) {
  store here(where, condition::killed);
  where.begin(condition::killed);
  auto const login = where.run(here.routes.login.sign_in("grace"));
  auto const payments =
      at_once(where, 4, [&](int i) { return here.routes.payment.pay(fmt::format("down-{}", i), 2'490); });
  where.end(condition::killed);
  return {.name = "Redis down gives 503 and zero charges",
          .ok = login.status == 503 && count(payments, 503) == 4 && here.provider.requests() == 0 &&
                here.provider.charges() == 0,
          .detail = fmt::format("login {}, payments {} x 503; provider asked: {}, charges: {}", login.status,
                                count(payments, 503), here.provider.requests(), here.provider.charges())};
}

expectation double_click_charges_once(lab& where) {
  store here(where, condition::healthy);
  auto const both = at_once(where, 2, [&](int) { return here.routes.payment.pay("double-click", 2'490); });
  return {.name = "a double click gives one charge and 409",
          .ok = count(both, 200) == 1 && count(both, 409) == 1 && here.provider.charges() == 1,
          .detail = fmt::format("{} and {}; charges: {}", both[0].value.status, both[1].value.status,
                                here.provider.charges())};
}

expectation lost_reply_charges_once(lab& where) {
  auto const options = quick_options();
  store here(where, condition::healthy, options);
  here.provider.lose_next_answer();
  auto const first = where.run(here.routes.payment.pay("lost-reply", 2'490));
  auto const early = where.run(here.routes.payment.pay("lost-reply", 2'490));
  where.wait(options.payment.hold);
  auto const late = where.run(here.routes.payment.pay("lost-reply", 2'490));
  return {.name = "lost provider reply, retry after the hold: one charge",
          .ok = first.status == 504 && early.status == 409 && late.status == 200 &&
                here.provider.requests() == 2 && here.provider.charges() == 1,
          .detail =
              fmt::format("{}, then {}, after the hold {}; provider asked: {}, charges: {}", first.status,
                          early.status, late.status, here.provider.requests(), here.provider.charges())};
}

/// Nobody waits longer than computed, the numbers tell what happened, and afterwards everything works again.
std::vector<expectation> pause_is_bounded_and_ends(lab& where) {
  store here(where, condition::paused);
  auto& routes = here.routes;
  here.table.put("filter", {.cents = 390, .name = "Filter"});
  where.begin(condition::paused);
  auto const catalog = at_once(where, 8, [&](int) { return routes.catalog.get("filter"); });
  auto const login = at_once(where, 8, [&](int) { return routes.login.sign_in("linus"); });
  auto const payment =
      at_once(where, 8, [&](int i) { return routes.payment.pay(fmt::format("paused-{}", i), 390); });
  auto const health = at_once(where, 8, [&](int) { return routes.health.check(); });
  auto const seen = routes.metrics();
  where.end(condition::paused);
  auto const back = where.run(with_time(routes.login.sign_in("barbara")));
  auto const product = where.run(routes.catalog.get("filter"));
  auto const paid = where.run(routes.payment.pay("resumed", 390));
  auto const well = where.run(routes.health.check());

  bool bounded = true;
  std::string waits;
  auto hold = [&](std::string_view route, answers const& all, redoubt::duration worst_case) {
    bounded = bounded && longest_ms(all) <= milliseconds(worst_case + tolerance);
    waits += fmt::format("{}{} {:.0f}/{:.0f}", waits.empty() ? "" : ", ", route, longest_ms(all),
                         milliseconds(worst_case));
  };
  hold("catalog", catalog, routes.catalog.worst_case());
  hold("login", login, routes.login.worst_case());
  hold("payment", payment, routes.payment.worst_case());
  hold("health", health, routes.health.worst_case());

  return {
      {.name = "while paused, no wait beyond the worst case + 20 ms", .ok = bounded, .detail = waits + " ms"},
      {.name = "four separate numbers tell what happened",
       .ok = seen.redis_errors == 24 && seen.database_fallbacks == 8 && seen.login_limit_reached == 0 &&
             seen.protection_unavailable == 16,
       .detail = fmt::format("Redis errors {}, database instead {}, over limit {}, unprotected {}",
                             seen.redis_errors, seen.database_fallbacks, seen.login_limit_reached,
                             seen.protection_unavailable)},
      {.name = "after the pause every route works again",
       .ok = back.value.status == 200 && product.status == 200 && product.label == "database" &&
             paid.status == 200 && well.status == 200,
       .detail =
           fmt::format("login {} after {:.1f} ms, catalog {} {}, payment {}, health {}", back.value.status,
                       milliseconds(back.took), product.status, product.label, paid.status, well.status)}};
}

}  // namespace

void check_expectations(lab& where, report& to) {
  to.begin_expectations();
  to.add(one_read_for_two_requests(where));
  to.add(paused_redis_reads_the_database(where));
  to.add(full_bulkhead_refuses(where));
  to.add(eight_logins_admit_five(where));
  to.add(no_redis_no_charge(where));
  to.add(double_click_charges_once(where));
  to.add(lost_reply_charges_once(where));
  for (auto& e : pause_is_bounded_and_ends(where)) to.add(std::move(e));
}

}  // namespace outage
