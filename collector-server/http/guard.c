#include "collector-server/http/guard.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const loopback_names[] = {"127.0.0.1", "localhost", "[::1]"};

/* True if `text` is empty, or a colon and `port` in decimal digits. */
static bool port_matches(const char *text, uint16_t port)
{
    if (text[0] == '\0') {
        return true;
    }
    if (text[0] != ':' || text[1] == '\0' || strlen(text) > 6 ||
        strspn(text + 1, "0123456789") != strlen(text + 1)) {
        return false;
    }
    return strtoul(text + 1, NULL, 10) == port;
}

bool sj_guard_host_allowed(const char *host, uint16_t port)
{
    if (host == NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof(loopback_names) / sizeof(loopback_names[0]); i++) {
        const size_t length = strlen(loopback_names[i]);
        if (strncasecmp(host, loopback_names[i], length) == 0 &&
            port_matches(host + length, port)) {
            return true;
        }
    }
    return false;
}

bool sj_guard_origin_allowed(const char *origin, uint16_t port)
{
    static const char scheme[] = "http://";
    if (origin == NULL || strncmp(origin, scheme, sizeof(scheme) - 1) != 0) {
        return false;
    }
    return sj_guard_host_allowed(origin + sizeof(scheme) - 1, port);
}

bool sj_guard_origin_is_host(const char *origin, const char *host)
{
    static const char scheme[] = "https://";
    return origin != NULL && host != NULL && strncmp(origin, scheme, sizeof(scheme) - 1) == 0 &&
           strcasecmp(origin + sizeof(scheme) - 1, host) == 0;
}

bool sj_guard_site_is_own(const char *site)
{
    return site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
}

bool sj_guard_site_allowed(const char *site, const char *mode, const char *destination,
                           bool is_page)
{
    const bool is_link = mode != NULL && strcmp(mode, "navigate") == 0 && destination != NULL &&
                         strcmp(destination, "document") == 0;
    return sj_guard_site_is_own(site) || (is_page && is_link);
}

bool sj_guard_address_is_loopback(const char *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp(address, "localhost") == 0) {
        return true;
    }
    if (inet_pton(AF_INET, address, &v4) == 1) {
        return ntohl(v4.s_addr) >> 24 == 127;
    }
    return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}
