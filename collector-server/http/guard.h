/* Checks whether a request may be answered, by its headers. The functions only read their
 * arguments. Thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_HTTP_GUARD_H
#define SJ_COLLECTOR_SERVER_HTTP_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* True if a Host header names the loopback and either `port`, this server's port, or no port. False
 * for NULL (no header). This is the only check that detects DNS rebinding. */
bool sj_guard_host_allowed(const char *host, uint16_t port);

/* True if an Origin header has the scheme http, names the loopback, and names either `port` or no
 * port. False for NULL. */
bool sj_guard_origin_allowed(const char *origin, uint16_t port);

/* True if an Origin header has the scheme https and the same host and port as the request's Host
 * header. For servers beyond the loopback, which cannot know the names by which clients reach
 * them. */
bool sj_guard_origin_is_host(const char *origin, const char *host);

/* True if a browser may send a request, by its headers Sec-Fetch-Site, Sec-Fetch-Mode and
 * Sec-Fetch-Dest (NULL: not sent). Pages of other sites, and of other ports of this host, may only
 * link to a page of the dashboard (`is_page`). True if `site` is NULL: then only the token
 * protects. */
bool sj_guard_site_allowed(const char *site, const char *mode, const char *destination,
                           bool is_page);

/* True if the header Sec-Fetch-Site says that the dashboard or the user made the request, or if
 * `site` is NULL. */
bool sj_guard_site_is_own(const char *site);

/* True if `address` is "localhost", ::1, or an address of 127.0.0.0/8. */
bool sj_guard_address_is_loopback(const char *address);

#endif
