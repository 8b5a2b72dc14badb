#include "collector-server/edge/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* UNACKNOWLEDGED_MS also ends an idle connection if that much time has passed and a probe is
 * unanswered. It must be longer than IDLE_S, because otherwise one lost probe would end the
 * connection. */
enum { BACKLOG = 4096, IDLE_S = 30, PROBE_S = 10, PROBES = 3, UNACKNOWLEDGED_MS = 55000 };

static const char *const schemes[] = {"tcp://", "tls+tcp://", "ipc://", "abstract://"};
enum { SCHEME_TCP, SCHEME_TLS, SCHEME_IPC, SCHEME_ABSTRACT, SCHEMES };

static int scheme_of(const char *url)
{
    int scheme = 0;
    while (scheme < SCHEMES && strncmp(url, schemes[scheme], strlen(schemes[scheme])) != 0) {
        scheme++;
    }
    return scheme;
}

bool sj_endpoint_is_url(const char *url)
{
    return scheme_of(url) < SCHEMES;
}

const char *sj_edge_peer_text(const sj_edge_peer *peer, char text[SJ_EDGE_PEER_TEXT_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (peer->family != AF_INET && peer->family != AF_INET6) {
        snprintf(text, SJ_EDGE_PEER_TEXT_BYTES, "a peer on this machine");
        return text;
    }
    inet_ntop(peer->family, peer->address, host, sizeof(host));
    snprintf(text, SJ_EDGE_PEER_TEXT_BYTES, peer->family == AF_INET ? "%s:%u" : "[%s]:%u", host,
             peer->port);
    return text;
}

static sj_status failed(sj_endpoint *endpoint, const char *url, int problem, sj_error *error)
{
    sj_endpoint_close(endpoint);
    return sj_fail(error, problem == EADDRINUSE ? SJ_EEXIST : SJ_EIO, "cannot listen on %s: %s",
                   url, strerror(problem));
}

static sj_status listen_locally(sj_endpoint *endpoint, const char *url, const char *name,
                                bool is_abstract, sj_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(name);
    if (length == 0 || length + 1 >= sizeof(address.sun_path)) {
        return sj_fail(error, SJ_EINVAL, "%s: the path has 1 to %zu bytes", url,
                       sizeof(address.sun_path) - 2);
    }
    memcpy(address.sun_path + 1, name,
           length); /* after the null byte that makes the address abstract */
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    endpoint->descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const bool is_bound =
        endpoint->descriptor >= 0 &&
        (is_abstract ? bind(endpoint->descriptor, (const struct sockaddr *)&address, size) == 0
                     : sj_socket_file_bind(&endpoint->file, endpoint->descriptor, name));
    return is_bound ? SJ_OK : failed(endpoint, url, errno, error);
}

/* Splits HOST:PORT. An IPv6 host is in brackets; "*" and "" mean every address. */
static sj_status split_host(const char *url, const char *place, char host[256], const char **port,
                            sj_error *error)
{
    const char *colon = strrchr(place, ':');
    size_t length = colon != NULL ? (size_t)(colon - place) : 0;
    if (colon == NULL || colon[1] == '\0' || length >= 256) {
        return sj_fail(error, SJ_EINVAL, "%s: give HOST:PORT", url);
    }
    if (length >= 2 && place[0] == '[' && colon[-1] == ']') {
        place++;
        length -= 2;
    }
    memcpy(host, place, length);
    host[length] = '\0';
    if (strcmp(host, "*") == 0) {
        host[0] = '\0';
    }
    *port = colon + 1;
    /* the resolver would cut a larger number to 16 bits */
    return strspn(*port, "0123456789") != strlen(*port) || strtoul(*port, NULL, 10) <= UINT16_MAX
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "%s: a port is at most %d", url, UINT16_MAX);
}

static sj_status listen_on_network(sj_endpoint *endpoint, const char *url, const char *place,
                                   sj_error *error)
{
    const struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char host[256];
    const char *port = NULL;
    const int one = 1;
    SJ_TRY(split_host(url, place, host, &port, error));
    const int result = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hint, &found);
    if (result != 0) {
        return sj_fail(error, SJ_EINVAL, "cannot listen on %s: %s", url, gai_strerror(result));
    }
    endpoint->descriptor =
        socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol);
    const bool is_bound =
        endpoint->descriptor >= 0 &&
        setsockopt(endpoint->descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        bind(endpoint->descriptor, found->ai_addr, found->ai_addrlen) == 0;
    const int problem = errno;
    freeaddrinfo(found);
    return is_bound ? SJ_OK : failed(endpoint, url, problem, error);
}

sj_status sj_endpoint_open(sj_endpoint *endpoint, const char *url, sj_error *error)
{
    const int scheme = scheme_of(url);
    *endpoint = (sj_endpoint){.descriptor = -1,
                              .is_tls = scheme == SCHEME_TLS,
                              .is_ipc = scheme == SCHEME_IPC || scheme == SCHEME_ABSTRACT};
    if (scheme == SCHEMES) {
        return sj_fail(error, SJ_EINVAL, "%s: addresses begin with tcp://, tls+tcp:// or ipc://",
                       url);
    }
    const char *place = url + strlen(schemes[scheme]);
    SJ_TRY(endpoint->is_ipc ? listen_locally(endpoint, url, place, scheme == SCHEME_ABSTRACT, error)
                            : listen_on_network(endpoint, url, place, error));
    return listen(endpoint->descriptor, BACKLOG) == 0 ? SJ_OK : failed(endpoint, url, errno, error);
}

/* Detects a peer that vanished, within a minute, even if the connection is idle. */
static void keep_alive(int descriptor)
{
    const struct {
        int level, option, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},       {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S}, {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBES},  {IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS}};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        (void)setsockopt(descriptor, options[i].level, options[i].option, &options[i].value,
                         sizeof(options[i].value));
    }
}

static void note_peer(sj_edge_peer *peer, const struct sockaddr_storage *from)
{
    *peer = (sj_edge_peer){.family = (uint8_t)from->ss_family};
    if (from->ss_family == AF_INET) {
        struct sockaddr_in address;
        memcpy(&address, from, sizeof(address));
        memcpy(peer->address, &address.sin_addr, sizeof(address.sin_addr));
        peer->port = ntohs(address.sin_port);
    } else if (from->ss_family == AF_INET6) {
        struct sockaddr_in6 address;
        memcpy(&address, from, sizeof(address));
        memcpy(peer->address, &address.sin6_addr, sizeof(address.sin6_addr));
        peer->port = ntohs(address.sin6_port);
    }
}

int sj_endpoint_accept(const sj_endpoint *endpoint, sj_edge_peer *peer)
{
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof(from);
    const int descriptor = accept4(endpoint->descriptor, (struct sockaddr *)&from, &size,
                                   SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
        return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ? -2 : -1;
    }
    if (endpoint->is_ipc) {
        *peer = (sj_edge_peer){.family = AF_UNIX};
    } else {
        note_peer(peer, &from);
        keep_alive(descriptor);
    }
    return descriptor;
}

void sj_endpoint_close(sj_endpoint *endpoint)
{
    sj_socket_file_remove(&endpoint->file);
    if (endpoint->descriptor >= 0) {
        close(endpoint->descriptor);
    }
    *endpoint = (sj_endpoint){.descriptor = -1};
}
