#include "collector-server/http/http.h"

#include "collector-server/http/assets.h"
#include "collector-server/http/context.h"
#include "collector-server/http/guard.h"
#include "collector-server/http/post.h"
#include "collector-server/http/reply.h"
#include "collector-server/http/route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { WORKER_THREADS = 4, CONNECTION_MEMORY_BYTES = 32 << 10 };

struct sj_http {
    sj_http_context context;
    struct MHD_Daemon *daemon;
    char *database_path;
    char url[96];
};

/* True if a path accepts POST. */
static bool accepts_post(const char *path)
{
    int64_t id = 0;
    const sj_route *route = sj_route_find(path, &id);
    return route != NULL && route->post != NULL;
}

/* True if a request is a POST that changes something. */
static bool is_action(const char *path, const char *method)
{
    int64_t id = 0;
    const sj_route *route = sj_route_find(path, &id);
    return strcmp(method, "POST") == 0 && route != NULL && route->action != NULL;
}

/* Returns the role that a request needs. On the loopback, the dashboard's files need none: they are
 * the same everywhere, and a page must be able to ask for the token. A method that a path does not
 * accept is refused later, but only to clients with a token. */
static sj_role needed_role(const sj_http_context *context, const char *path, const char *method,
                           bool reads)
{
    int64_t id;
    const sj_route *route = sj_route_find(path, &id);
    if (route == NULL) {
        return context->is_remote || !reads ? SJ_ROLE_READER : SJ_ROLE_NONE;
    }
    if (reads && route->is_public) {
        return SJ_ROLE_NONE;
    }
    const bool is_post = strcmp(method, "POST") == 0 && route->post != NULL;
    const sj_role role = is_post ? route->post_role : reads ? route->role : SJ_ROLE_READER;
    return role != SJ_ROLE_NONE ? role : SJ_ROLE_ADMIN;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

typedef struct header_count {
    const char *name;
    unsigned count;
} header_count;

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    header_count *counted = context;
    (void)kind;
    (void)value;
    counted->count += strcasecmp(name, counted->name) == 0;
    return MHD_YES;
}

/* True if a header that determines the request's origin or its end occurs twice, or if two
 * headers determine its end. A proxy in front might use the other one. */
static bool is_ambiguous(struct MHD_Connection *connection)
{
    static const char *const single[] = {
        MHD_HTTP_HEADER_HOST,   MHD_HTTP_HEADER_CONTENT_LENGTH, MHD_HTTP_HEADER_TRANSFER_ENCODING,
        MHD_HTTP_HEADER_ORIGIN, MHD_HTTP_HEADER_AUTHORIZATION,  "Sec-Fetch-Site"};
    for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
        header_count counted = {.name = single[i]};
        MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &counted);
        if (counted.count > 1) {
            return true;
        }
    }
    return header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH) != NULL &&
           header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
}

/* Returns why a request is refused because of its origin, or NULL. */
static const char *refuse_site(const sj_http_context *context, struct MHD_Connection *connection,
                               const char *path)
{
    int64_t id;
    const char *host = header_of(connection, MHD_HTTP_HEADER_HOST);
    const char *origin = header_of(connection, MHD_HTTP_HEADER_ORIGIN);
    if (!context->is_remote && !sj_guard_host_allowed(host, context->port)) {
        return "this server answers only to its own loopback address";
    }
    const bool is_own = context->is_remote ? sj_guard_origin_is_host(origin, host)
                                           : sj_guard_origin_allowed(origin, context->port);
    const bool is_allowed = sj_guard_site_allowed(
        header_of(connection, "Sec-Fetch-Site"), header_of(connection, "Sec-Fetch-Mode"),
        header_of(connection, "Sec-Fetch-Dest"), sj_route_find(path, &id) == NULL);
    return (origin != NULL && !is_own) || !is_allowed ? "requests of other sites are refused"
                                                      : NULL;
}

/* A refusal of a request. */
typedef struct denial {
    unsigned code;
    bool is_audited; /* a visitor's role forbids an action */
    char of_role[SJ_LOGIN_WHO_BYTES + 100];
} denial;

/* Returns why a visitor is refused, or NULL. */
static const char *refuse_visitor(const sj_http_context *context, const sj_visitor *visitor,
                                  sj_role needed, denial *denied)
{
    if (visitor->role >= needed) {
        return NULL;
    }
    if (visitor->role != SJ_ROLE_NONE) {
        sj_role_refusal(visitor, needed, denied->of_role, sizeof(denied->of_role));
        denied->code = MHD_HTTP_FORBIDDEN;
        return denied->of_role;
    }
    denied->code = MHD_HTTP_UNAUTHORIZED;
    return context->is_remote
               ? "show a token of the collector, as password (any name) or as \"Authorization: "
                 "Bearer TOKEN\"; `sojourn token add` makes one, and the admin's is in the file "
                 "DATABASE.token beside the collector's database"
               : context->login.refusal;
}

/* Returns why a request is refused before its path is handled, or NULL. Finds its visitor. */
static const char *refuse_request(const sj_http_context *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, sj_visitor *visitor,
                                  denial *denied)
{
    const bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const char *refusal = refuse_site(context, connection, path);
    unsigned *code = &denied->code;
    *code = MHD_HTTP_BAD_REQUEST;
    if (is_ambiguous(connection)) {
        return "a header is there twice, or Content-Length beside Transfer-Encoding";
    }
    *code = MHD_HTTP_FORBIDDEN;
    if (refusal != NULL) {
        return refusal;
    }
    sj_login_identify(&context->login, context->is_remote, connection, visitor);
    refusal = refuse_visitor(context, visitor, needed_role(context, path, method, reads), denied);
    if (refusal != NULL) {
        denied->is_audited =
            *code == MHD_HTTP_FORBIDDEN && context->mirror == NULL && is_action(path, method);
        return refusal;
    }
    if (strcmp(method, "POST") == 0 && accepts_post(path)) {
        if (context->mirror != NULL) {
            return "this server shows a cluster and takes no changes; the labs do";
        }
        return sj_post_refusal(&context->login, visitor, connection, code);
    }
    if (!reads) {
        *code = MHD_HTTP_METHOD_NOT_ALLOWED;
        return "only GET and HEAD are served here";
    }
    if (header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ||
        header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH) != NULL) {
        *code = MHD_HTTP_CONTENT_TOO_LARGE;
        return "requests have no body here";
    }
    return NULL;
}

/* State of a request between calls of `handle_request`. */
typedef struct exchange {
    bool is_post;
    bool is_asked; /* the pool has `job`, or has finished it */
    char refusal[sizeof(((denial *)NULL)->of_role)];
    sj_post_body posted;
    sj_request_job job;
} exchange;

static void free_exchange(exchange *held)
{
    if (held->job.response != NULL) {
        MHD_destroy_response(held->job.response);
    }
    free(held->posted.bytes);
    free(held);
}

/* Gives the request to the request pool, which suspends the connection until the response is
 * made. */
static enum MHD_Result ask(sj_http *server, exchange *held, const sj_request *request,
                           const sj_route *route)
{
    held->job.request = *request;
    held->job.route = route;
    held->job.posted = held->is_post ? &held->posted : NULL;
    held->is_asked = true;
    return sj_request_pool_add(server->context.requests, &held->job)
               ? MHD_YES
               : sj_reply_error(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                                "the server is stopping");
}

/* Queues the response to a complete request. Runs again when the request pool has made the
 * response, and then sends it. */
static enum MHD_Result answer_path(sj_http *server, struct MHD_Connection *connection,
                                   const char *path, const sj_visitor *visitor, exchange *held)
{
    if (held->is_asked) {
        struct MHD_Response *response = held->job.response;
        held->job.response = NULL;
        return sj_reply_send(connection, held->job.status, response);
    }
    sj_request request = {
        .connection = connection, .context = &server->context, .visitor = *visitor};
    const sj_route *route = sj_route_find(path, &request.id);
    if (route != NULL) {
        return held->is_post || held->job.refusal != NULL || route->run != NULL
                   ? ask(server, held, &request, route)
                   : route->respond(&request);
    }
    const sj_asset *asset = sj_asset_find(path);
    if (asset != NULL) {
        return sj_reply_asset(connection, asset);
    }
    return sj_reply_error(connection, MHD_HTTP_NOT_FOUND, "there is nothing here");
}

/* Answers a request that is refused. The request pool writes those that belong into the audit,
 * because that waits for other writers. */
static enum MHD_Result refuse(sj_http *server, struct MHD_Connection *connection, const char *path,
                              const sj_visitor *visitor, const denial *denied, const char *refusal,
                              exchange **held)
{
    if (!denied->is_audited && (*held == NULL || (*held)->job.refusal == NULL)) {
        return denied->code == MHD_HTTP_UNAUTHORIZED
                   ? sj_reply_login(connection, refusal, server->context.is_remote)
                   : sj_reply_error(connection, denied->code, refusal);
    }
    if (*held == NULL) {
        *held = calloc(1, sizeof(**held));
    }
    if (*held == NULL) {
        return MHD_NO;
    }
    if (!(*held)->is_asked) {
        memcpy((*held)->refusal, denied->of_role, sizeof((*held)->refusal));
        (*held)->job.refusal = (*held)->refusal;
    }
    return answer_path(server, connection, path, visitor, *held);
}

/* Handles a request. libmicrohttpd calls it with the headers, then with each piece of the body,
 * then without a piece. It calls once more when a suspended connection resumes. */
static enum MHD_Result handle_request(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *upload, size_t *upload_size,
                                      void **request_context)
{
    sj_http *server = context;
    exchange *held = *request_context;
    sj_visitor visitor = {.role = SJ_ROLE_NONE};
    denial denied = {.code = 0};
    (void)version;
    const char *refusal =
        refuse_request(&server->context, connection, url, method, &visitor, &denied);
    /* The server sends a refusal before the request has arrived completely, so the client loses
     * its connection. It answers other requests after they have arrived. */
    if (refusal == NULL && held == NULL) {
        *request_context = held = calloc(1, sizeof(*held));
        if (held != NULL) {
            held->is_post = strcmp(method, "POST") == 0;
        }
        return held != NULL ? MHD_YES : MHD_NO;
    }
    if (refusal == NULL && held->is_post && *upload_size != 0) {
        sj_post_body_add(&held->posted, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    sj_connection_watch_answering(server->context.watch, connection,
                                  refusal == NULL && strcmp(url, "/api/v1/events") == 0);
    if (refusal != NULL) {
        const enum MHD_Result result =
            refuse(server, connection, url, &visitor, &denied, refusal, &held);
        *request_context = held;
        return result;
    }
    return answer_path(server, connection, url, &visitor, held);
}

static void request_completed(void *context, struct MHD_Connection *connection,
                              void **request_context, enum MHD_RequestTerminationCode code)
{
    sj_http *server = context;
    (void)code;
    if (*request_context != NULL) {
        free_exchange(*request_context);
        *request_context = NULL;
    }
    sj_connection_watch_answered(server->context.watch, connection);
}

static sj_status resolve_address(const sj_http_options *options, struct sockaddr_storage *address,
                                 bool *is_remote, sj_error *error)
{
    const char *text = options->address != NULL ? options->address : "127.0.0.1";
    *is_remote = !sj_guard_address_is_loopback(text);
    if (*is_remote && (options->token_path == NULL || options->certificate == NULL)) {
        return sj_fail(error, SJ_EPERM,
                       "address '%s' is refused: without TLS and login, the dashboard is served on "
                       "loopback addresses only (127.0.0.1, ::1); sojournd serves others, or reach "
                       "it with 'ssh -L PORT:127.0.0.1:PORT'",
                       text);
    }
    memset(address, 0, sizeof(*address));
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(options->port);
        return SJ_OK;
    }
    memset(address, 0, sizeof(*address));
    v4->sin_family = AF_INET;
    v4->sin_port = htons(options->port);
    if (inet_pton(AF_INET, strcmp(text, "localhost") == 0 ? "127.0.0.1" : text, &v4->sin_addr) !=
        1) {
        return sj_fail(error, SJ_EINVAL, "'%s' is not a numeric IPv4 or IPv6 address", text);
    }
    return SJ_OK;
}

/* Listens before libmicrohttpd starts, because the port must be known before the first request is
 * checked. This also gives the user the reason if the port cannot be used. */
static sj_status open_listener(sj_http *server, const struct sockaddr_storage *address,
                               int *socket_fd, sj_error *error)
{
    const bool v6 = address->ss_family == AF_INET6;
    struct sockaddr_storage bound = *address;
    socklen_t length = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    const int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    if (fd < 0) {
        return sj_fail(error, SJ_EIO, "cannot make a socket: %s", strerror(errno));
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (const struct sockaddr *)address, length) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
        const int code = errno;
        close(fd);
        return sj_fail(error, SJ_EIO, "cannot listen on port %u: %s",
                       ntohs(((const struct sockaddr_in *)address)->sin_port), strerror(code));
    }
    /* The port is at the same position in both kinds of address. */
    server->context.port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(bound.ss_family,
              v6 ? (void *)&((struct sockaddr_in6 *)&bound)->sin6_addr
                 : (void *)&((struct sockaddr_in *)&bound)->sin_addr,
              text, sizeof(text));
    snprintf(server->url, sizeof(server->url), v6 ? "%s://[%s]:%u/" : "%s://%s:%u/",
             server->context.is_remote ? "https" : "http", text, server->context.port);
    *socket_fd = fd;
    return SJ_OK;
}

/* Decodes a path, unless it contains a NUL, which would hide the rest of the path from every check.
 * No resource has a name with "%00". */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strstr(text, "%00") != NULL ? strlen(text) : MHD_http_unescape(text);
}

static void log_nothing(void *context, const char *format, va_list arguments)
{
    (void)context;
    (void)format;
    (void)arguments;
}

static sj_status start_daemon(sj_http *server, const sj_http_options *options, int socket_fd,
                              sj_error *error)
{
    static char versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_PRIORITIES, 0, versions},
                                   {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)options->certificate},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)options->key},
                                   {MHD_OPTION_END, 0, NULL}};
    const bool is_remote = server->context.is_remote;
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            (is_remote ? MHD_USE_TLS : 0),
        0, NULL, NULL, handle_request, server, MHD_OPTION_EXTERNAL_LOGGER, log_nothing,
        NULL, /* first, so that mistakes of peers are not logged */
        MHD_OPTION_LISTEN_SOCKET, socket_fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)WORKER_THREADS,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)SJ_HTTP_CONNECTIONS_AT_ONCE,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SJ_HTTP_RESPONSE_SECONDS,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, sj_connection_watch_notify, server->context.watch,
        MHD_OPTION_NOTIFY_COMPLETED, request_completed, server, MHD_OPTION_ARRAY,
        is_remote ? tls : &tls[3], MHD_OPTION_END);
    if (server->daemon == NULL) {
        close(socket_fd);
        return sj_fail(error, SJ_EIO, "cannot start the HTTP server: %s",
                       is_remote ? "certificate or key cannot be used" : strerror(errno));
    }
    return SJ_OK;
}

static sj_status start_parts(sj_http *server, const sj_http_options *options, sj_error *error)
{
    struct sockaddr_storage address;
    int socket_fd = -1;
    sqlite3 *tokens = NULL;
    sj_http_context *context = &server->context;
    context->database_path = server->database_path;
    context->mirror = options->mirror;
    context->metrics_context = options->metrics_context;
    context->write_metrics = options->write_metrics;
    context->check = options->check;
    SJ_TRY(resolve_address(options, &address, &context->is_remote, error));
    SJ_TRY(options->token_path != NULL ? sj_login_load(options->token_path, &context->login, error)
                                       : sj_login_make(&context->login, error));
    context->audits_questions = options->token_path != NULL && options->mirror == NULL;
    SJ_TRY(sj_database_pool_new(options->database_path, &context->databases, error));
    SJ_TRY(sj_database_pool_open(context->databases, &tokens, error));
    SJ_TRY(sj_token_reader_open(tokens, &context->tokens, error));
    context->login.tokens = context->tokens;
    if (sj_connection_watch_new(&context->watch) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    /* one heap, because otherwise each thread of the request pool would have its own */
    mallopt(M_ARENA_MAX, 1);
    SJ_TRY(sj_question_pool_new(options->database_path, &sj_question_default_limits,
                                &context->questions, error));
    SJ_TRY(sj_request_pool_start(&context->requests, error));
    SJ_TRY(sj_event_hub_start(context->databases, context->watch, &context->login, &context->events,
                              error));
    SJ_TRY(open_listener(server, &address, &socket_fd, error));
    return start_daemon(server, options, socket_fd, error);
}

sj_status sj_http_start(const sj_http_options *options, sj_http **server, sj_error *error)
{
    if (options->database_path == NULL) {
        return sj_fail(error, SJ_EINVAL, "no database is named");
    }
    sj_http *made = calloc(1, sizeof(*made));
    if (made == NULL || (made->database_path = strdup(options->database_path)) == NULL) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = start_parts(made, options, error);
    if (status != SJ_OK) {
        sj_http_stop(made);
        return status;
    }
    *server = made;
    return SJ_OK;
}

void sj_http_stop(sj_http *server)
{
    if (server == NULL) {
        return;
    }
    if (server->context.events != NULL) {
        sj_event_hub_stop(server->context.events);
    }
    if (server->context.requests != NULL) {
        sj_request_pool_stop(server->context.requests);
    }
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
    }
    sj_event_hub_free(server->context.events);
    sj_request_pool_free(server->context.requests);
    sj_question_pool_free(server->context.questions);
    sj_connection_watch_free(server->context.watch);
    sj_database_pool_free(server->context.databases);
    sj_token_reader_close(server->context.tokens);
    free(server->database_path);
    free(server);
}

const char *sj_http_url(const sj_http *server)
{
    return server->url;
}

const char *sj_http_token(const sj_http *server)
{
    return server->context.login.token;
}
