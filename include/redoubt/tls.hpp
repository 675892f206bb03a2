// SPDX-License-Identifier: BSL-1.0
//
// TLS for the client: the component `redoubt::tls`. Programs that do not link it link no OpenSSL.
#pragma once

namespace redoubt {

/// Lets clients that are made from now on speak TLS (`rediss://` URLs, `client_options::tls`), in the whole
/// program. Without it such a client's constructor throws and says so. Call it once, early in `main`;
/// repeating it does nothing. Thread-safe.
void enable_tls() noexcept;

}  // namespace redoubt
