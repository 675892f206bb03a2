// SPDX-License-Identifier: BSL-1.0
#include <functional>
#include <string>

#include "outage/checks.hpp"
#include "outage/store.hpp"

namespace outage {
namespace {

/// What the four routes are expected to answer.
struct expected_routes {
  route_row catalog, login, payment, health;
};

/// Login and payment refuse, the catalog answers from the database, all for the same reason.
expected_routes without_writes(std::string const& cause, std::string const& health) {
  return {.catalog = {.status = 200, .label = "database, cache: " + cause},
          .login = {.status = 503, .label = "unavailable: " + cause},
          .payment = {.status = 503, .label = "unavailable: " + cause},
          .health = {.status = 503, .label = health + ": " + cause}};
}

void tour(lab& where, report& to, condition c, std::string const& state, expected_routes const& expected) {
  store here(where, c);
  auto& routes = here.routes;
  std::string const sku = "moka-" + state;  // one that no other server of the lab has cached
  here.table.put(sku, {.cents = 2'490, .name = "Moka pot"});
  where.run(routes.catalog.get(sku));  // the shop is open, and its cache is warm as far as Redis lets it
  where.begin(c);

  auto visit = [&](std::string const& route, redoubt::duration worst_case,
                   asio::awaitable<shop::response> going, route_row const& wanted) {
    auto const seen = where.run(with_time(std::move(going)));
    to.add({.state = state,
            .route = route,
            .status = seen.value.status,
            .label = seen.value.label,
            .ms = milliseconds(seen.took),
            .at_most = milliseconds(worst_case + tolerance)},
           wanted);
  };
  visit("catalog", routes.catalog.worst_case(), routes.catalog.get(sku), expected.catalog);
  visit("login", routes.login.worst_case(), routes.login.sign_in("ada-" + state), expected.login);
  visit("payment", routes.payment.worst_case(), routes.payment.pay("order-" + state, 2'490),
        expected.payment);
  visit("health", routes.health.worst_case(), routes.health.check(), expected.health);
  where.end(c);
}

}  // namespace

void tour_routes(lab& where, report& to) {
  to.begin_routes();
  tour(where, to, condition::healthy, "healthy",
       {.catalog = {.status = 200, .label = "cached"},
        .login = {.status = 200, .label = "admitted"},
        .payment = {.status = 200, .label = "charged"},
        .health = {.status = 200, .label = "writes"}});
  tour(where, to, condition::paused, "paused", without_writes("deadline_exceeded", "no answer"));
  tour(where, to, condition::killed, "killed", without_writes("connection_refused", "no answer"));
  tour(where, to, condition::full, "full", without_writes("OOM", "no writes"));
  tour(where, to, condition::replica, "replica", without_writes("READONLY", "no writes"));
}

}  // namespace outage
