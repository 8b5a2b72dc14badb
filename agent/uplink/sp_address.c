#include "agent/uplink/sp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { LOOPBACK_NET = 127, HOST_BYTES = 64 };

static sj_status read_ipc(const char *url, const char *path, sj_sp_address *address,
                          sj_error *error)
{
    struct sockaddr_un *local = (struct sockaddr_un *)(void *)&address->socket;
    if (path[0] == '\0' || strlen(path) >= sizeof(local->sun_path)) {
        return sj_fail(error, SJ_EINVAL, "%.200s: the path of a socket has 1 to %zu bytes", url,
                       sizeof(local->sun_path) - 1);
    }
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, strlen(path) + 1);
    address->is_ipc = true;
    address->bytes = sizeof(*local);
    return SJ_OK;
}

/* Splits HOST:PORT or [HOST]:PORT. Returns false if the text is neither. */
static bool split_host(const char *text, char *host, uint16_t *port)
{
    const char *colon = strrchr(text, ':');
    const bool is_bracketed = text[0] == '[' && colon != NULL && colon > text && colon[-1] == ']';
    const char *begin = is_bracketed ? text + 1 : text;
    const char *end = is_bracketed ? colon - 1 : colon;
    if (colon == NULL || end <= begin || (size_t)(end - begin) >= HOST_BYTES ||
        (!is_bracketed && memchr(begin, ':', (size_t)(end - begin)) != NULL)) {
        return false;
    }
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    char *rest = NULL;
    const unsigned long number = strtoul(colon + 1, &rest, 10);
    *port = (uint16_t)number;
    return colon[1] >= '0' && colon[1] <= '9' && *rest == '\0' && number != 0 &&
           number <= UINT16_MAX;
}

static bool read_host(const char *host, uint16_t port, sj_sp_address *address)
{
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&address->socket;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&address->socket;
    struct in_addr in_four;
    struct in6_addr in_six;
    if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &in_four) == 1 &&
        ntohl(in_four.s_addr) >> 24 == LOOPBACK_NET) {
        *four = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = in_four};
        address->bytes = sizeof(*four);
        return true;
    }
    if (inet_pton(AF_INET6, host, &in_six) == 1 && IN6_IS_ADDR_LOOPBACK(&in_six)) {
        *six = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in_six};
        address->bytes = sizeof(*six);
        return true;
    }
    return false;
}

sj_status sj_sp_address_read(const char *url, sj_sp_address *address, sj_error *error)
{
    static const char tcp[] = "tcp://";
    static const char ipc[] = "ipc://";
    char host[HOST_BYTES];
    uint16_t port = 0;
    *address = (sj_sp_address){0};
    if (strncmp(url, ipc, sizeof(ipc) - 1) == 0) {
        return read_ipc(url, url + sizeof(ipc) - 1, address, error);
    }
    if (strncmp(url, tcp, sizeof(tcp) - 1) == 0 && split_host(url + sizeof(tcp) - 1, host, &port) &&
        read_host(host, port, address)) {
        return SJ_OK;
    }
    return sj_fail(error, SJ_EINVAL,
                   "%.200s: only a collector on this machine can be reached from inside of a "
                   "program: tcp://127.0.0.1:PORT, tcp://[::1]:PORT or ipc:///PATH; for another "
                   "machine run sojourn-device",
                   url);
}
