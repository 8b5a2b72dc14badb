/* A plain HTTP client for the tests: it sends whatever bytes it is given. */
#ifndef SJ_TESTS_COLLECTOR_SERVER_HTTP_CLIENT_H
#define SJ_TESTS_COLLECTOR_SERVER_HTTP_CLIENT_H

#include "collector-server/http/http.h"

#include <jansson.h>
#include <stddef.h>

typedef struct client_response {
    int status; /* 0: the server closed without an answer */
    char *text; /* whole response, NUL-terminated; owned */
    const char *body;
    size_t body_size;
} client_response;

/* client_connect returns a connected socket with a receive time-out of 30 s. */
int client_connect(const sj_http *server);

/* client_exchange sends bytes on a new connection and reads until the server closes or the
 * response's Content-Length is there. */
client_response client_exchange(const sj_http *server, const char *bytes, size_t size);

/* client_login is the header line that shows the server's token, "A: b\r\n". One thread; holds
 * until the next call. */
const char *client_login(const sj_http *server);

/* client_get sends a well-formed GET that shows the token, with further header lines ("A: b\r\n"
 * each; NULL: none). */
client_response client_get(const sj_http *server, const char *target, const char *headers);

/* client_json is client_get that expects a status and parses the body (owned by the caller). */
json_t *client_json(const sj_http *server, const char *target, int status);

void client_free(client_response *response);
unsigned client_port(const sj_http *server);

#endif
