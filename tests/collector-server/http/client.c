#include "tests/collector-server/http/client.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

unsigned client_port(const sj_http *server)
{
    return (unsigned)atoi(strrchr(sj_http_url(server), ':') + 1);
}

int client_connect(const sj_http *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)client_port(server))};
    const struct timeval patience = {.tv_sec = 30};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("connect");
        abort();
    }
    return fd;
}

static void read_response(int fd, client_response *response)
{
    size_t size = 0;
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    ssize_t got;
    size_t wanted = SIZE_MAX;
    while (size < wanted && (got = recv(fd, text + size, capacity - size - 1, 0)) > 0) {
        size += (size_t)got;
        text[size] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        const char *length = strcasestr(text, "\r\nContent-Length:");
        if (end != NULL && length != NULL && length < end) {
            wanted = (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10);
        }
        if (capacity - size < 2) {
            capacity *= 2;
            text = realloc(text, capacity);
        }
    }
    text[size] = '\0';
    response->text = text;
    const char *end = strstr(text, "\r\n\r\n");
    response->body = end != NULL ? end + 4 : text + size;
    response->body_size = size - (size_t)(response->body - text);
    response->status = strncmp(text, "HTTP/1.", 7) == 0 ? atoi(text + 9) : 0;
}

client_response client_exchange(const sj_http *server, const char *bytes, size_t size)
{
    client_response response = {0};
    const int fd = client_connect(server);
    for (size_t sent = 0; sent < size;) {
        const ssize_t now = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (now <= 0) {
            break;
        }
        sent += (size_t)now;
    }
    read_response(fd, &response);
    close(fd);
    return response;
}

const char *client_login(const sj_http *server)
{
    static char line[160];
    snprintf(line, sizeof(line), "Authorization: Bearer %s\r\n", sj_http_token(server));
    return line;
}

client_response client_get(const sj_http *server, const char *target, const char *headers)
{
    char *request = NULL;
    const int size =
        asprintf(&request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s\r\n", target,
                 client_port(server), client_login(server), headers != NULL ? headers : "");
    client_response response = client_exchange(server, request, (size_t)size);
    free(request);
    return response;
}

json_t *client_json(const sj_http *server, const char *target, int status)
{
    client_response response = client_get(server, target, NULL);
    json_error_t error;
    json_t *body = json_loadb(response.body, response.body_size, 0, &error);
    if (response.status != status || body == NULL) {
        fprintf(stderr, "%s: expected %d, got:\n%s\n", target, status, response.text);
        abort();
    }
    client_free(&response);
    return body;
}

void client_free(client_response *response)
{
    free(response->text);
    *response = (client_response){0};
}
