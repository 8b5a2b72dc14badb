/* A plain HTTP client for the tests. It sends any bytes that it gets. */
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

/* Returns a connected socket with a receive timeout of 30 s. */
int client_connect(const sj_http *server);

/* Sends bytes on a new connection. Reads until the server closes or the response's Content-Length
 * is complete. */
client_response client_exchange(const sj_http *server, const char *bytes, size_t size);

/* Returns the header line with the server's token, "A: b\r\n". Use on one thread; valid until the
 * next call. */
const char *client_login(const sj_http *server);

/* Sends a well-formed GET with the token and further header lines ("A: b\r\n" each; NULL: none). */
client_response client_get(const sj_http *server, const char *target, const char *headers);

/* Calls client_get, expects the status and parses the body. The caller owns the result. */
json_t *client_json(const sj_http *server, const char *target, int status);

void client_free(client_response *response);
unsigned client_port(const sj_http *server);

#endif
