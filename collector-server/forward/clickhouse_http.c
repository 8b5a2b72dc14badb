#include "collector-server/forward/clickhouse_http.h"

#include "collector-server/forward/clickhouse.h"
#include "collector-server/forward/clickhouse_refusal.h"
#include "proto/base/array.h"
#include "proto/base/late_library.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_MS = 5000,
    UPLOAD_BYTES = 512 << 10,
    WRITE_MS = 90000,
    SILENCE_S = 60, /* a request fails after this time without a byte in either direction */
    REPLY_MAX_BYTES = 256 << 20,
    HTTP_OK = 200
};

/* Functions of libcurl, loaded when needed: its 30 libraries would cost each command 4 ms at its
 * start. */
typedef struct curl_functions {
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_escape) *easy_escape;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_free) *free;
} curl_functions;

struct sj_clickhouse_curl {
    curl_functions functions;
    CURL *handle;
};

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    sj_clickhouse_text *reply = context;
    const size_t more = size * count;
    if (reply->size + more > REPLY_MAX_BYTES ||
        sj_array_reserve(&reply->bytes, &reply->capacity, reply->size, more + 1, 1) != SJ_OK) {
        return 0;
    }
    memcpy(reply->bytes + reply->size, bytes, more);
    reply->size += more;
    reply->bytes[reply->size] = '\0';
    return more;
}

static int check_for_stop(void *context, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                          curl_off_t up)
{
    const sj_forward_target *target = context;
    (void)down_all, (void)down, (void)up_all, (void)up;
    return target->stop != NULL && atomic_load(target->stop);
}

static sj_status load_curl(curl_functions *functions, sj_error *error)
{
#define SYMBOL(name)                                                                               \
    {                                                                                              \
        "curl_" #name, offsetof(curl_functions, name)                                              \
    }
    static const sj_late_symbol symbols[] = {
        SYMBOL(easy_cleanup), SYMBOL(easy_init),      SYMBOL(easy_reset),    SYMBOL(easy_escape),
        SYMBOL(easy_setopt),  SYMBOL(easy_perform),   SYMBOL(easy_strerror), SYMBOL(easy_getinfo),
        SYMBOL(slist_append), SYMBOL(slist_free_all), SYMBOL(free)};
#undef SYMBOL
    return sj_late_library_load("libcurl-gnutls.so.4", symbols,
                                sizeof(symbols) / sizeof(symbols[0]), functions, error);
}

bool sj_clickhouse_is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return text[0] != '\0' && strspn(text, letters) == strlen(text);
}

static sj_status read_password(const char *path, char **password, sj_error *error)
{
    char line[256];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return sj_fail(error, SJ_EIO, "cannot read the password in %s: %s", path, strerror(errno));
    }
    const bool is_read = fgets(line, sizeof(line), file) != NULL;
    fclose(file);
    if (is_read) {
        line[strcspn(line, "\r\n")] = '\0';
    }
    *password = is_read ? strdup(line) : NULL;
    return *password != NULL ? SJ_OK
                             : sj_fail(error, SJ_EINVAL, "%s: the first line is no password", path);
}

void sj_clickhouse_close(sj_forward_target *target)
{
    if (target == NULL) {
        return;
    }
    if (target->curl != NULL && target->curl->handle != NULL) {
        target->curl->functions.easy_cleanup(target->curl->handle);
    }
    free(target->curl);
    free(target->url);
    free(target->user);
    free(target->password);
    free(target->ca_file);
    free(target);
}

static sj_status read_options(sj_forward_target *target, const sj_forward_options *options,
                              sj_error *error)
{
    const char *database = options->database != NULL ? options->database : "sojourn";
    if (strncmp(options->url, "http://", 7) != 0 && strncmp(options->url, "https://", 8) != 0) {
        return sj_fail(error, SJ_EINVAL,
                       "%s: give http://HOST:8123 or https://HOST:8443, a node of ClickHouse",
                       options->url);
    }
    if (!sj_clickhouse_is_name(database) || strlen(database) >= sizeof(target->database)) {
        return sj_fail(error, SJ_EINVAL, "%s: not the name of a database", database);
    }
    snprintf(target->database, sizeof(target->database), "%s", database);
    if (options->password_file != NULL) {
        SJ_TRY(read_password(options->password_file, &target->password, error));
    }
    target->stop = options->stop;
    target->limit_ms = options->limit_ms != 0 ? options->limit_ms : WRITE_MS;
    target->curl = calloc(1, sizeof(*target->curl));
    if (target->curl == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    SJ_TRY(load_curl(&target->curl->functions, error));
    target->curl->handle = target->curl->functions.easy_init();
    target->url = strdup(options->url);
    target->user = strdup(options->user != NULL ? options->user : "default");
    target->ca_file = options->ca_file != NULL ? strdup(options->ca_file) : NULL;
    return target->curl->handle != NULL && target->url != NULL && target->user != NULL &&
                   (options->ca_file == NULL || target->ca_file != NULL)
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "out of memory");
}

sj_status sj_clickhouse_open(const sj_forward_options *options, sj_forward_target **target,
                             sj_error *error)
{
    sj_forward_target *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = read_options(made, options, error);
    if (status != SJ_OK) {
        sj_clickhouse_close(made);
        return status;
    }
    *target = made;
    return SJ_OK;
}

/* The position in a request's body. */
typedef struct body_reader {
    const sj_clickhouse_question *request;
    size_t piece, offset;
} body_reader;

static size_t give_body(char *to, size_t size, size_t count, void *context)
{
    body_reader *body = context;
    size_t given = 0;
    while (given < size * count && body->piece < body->request->piece_count) {
        const sj_slice *piece = &body->request->pieces[body->piece];
        const size_t left = piece->size - body->offset;
        const size_t taken = left < size * count - given ? left : size * count - given;
        memcpy(to + given, piece->data + body->offset, taken);
        given += taken;
        body->offset += taken;
        if (body->offset == piece->size) {
            body->piece++;
            body->offset = 0;
        }
    }
    return given;
}

/* Rewinds the body, because the server had closed the connection and curl resends the request on
 * another one. */
static int rewind_body(void *context, curl_off_t offset, int origin)
{
    body_reader *body = context;
    body->piece = body->offset = 0;
    return offset == 0 && origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK;
}

static curl_off_t body_bytes(const sj_clickhouse_question *request)
{
    size_t sum = 0;
    for (size_t i = 0; i < request->piece_count; i++) {
        sum += request->pieces[i].size;
    }
    return (curl_off_t)sum;
}

static CURLcode perform(sj_forward_target *target, const sj_clickhouse_question *request,
                        sj_clickhouse_text *reply, char *problem)
{
    CURL *curl = target->curl->handle;
    const curl_functions *http = &target->curl->functions;
    body_reader body = {.request = request};
    struct curl_slist *headers = http->slist_append(NULL, "Expect:");
    char header[512];
    char *query = request->query != NULL ? http->easy_escape(curl, request->query, 0) : NULL;
    char *url = NULL;
    http->easy_reset(curl);
    snprintf(header, sizeof(header), "X-ClickHouse-User: %.400s", target->user);
    headers = http->slist_append(headers, header);
    if (target->password != NULL) {
        snprintf(header, sizeof(header), "X-ClickHouse-Key: %.400s", target->password);
        headers = http->slist_append(headers, header);
    }
    const size_t capacity =
        strlen(target->url) + strlen(request->settings) + (query != NULL ? strlen(query) : 0) + 32;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (headers != NULL && (url = malloc(capacity)) != NULL &&
        (request->query == NULL || query != NULL)) {
        snprintf(url, capacity, "%s/?%s%s%s", target->url,
                 query != NULL ? "query=" : "wait_end_of_query=1", query != NULL ? query : "",
                 request->settings);
        http->easy_setopt(curl, CURLOPT_URL, url);
        http->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        http->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        http->easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        http->easy_setopt(curl, CURLOPT_POST, 1L);
        http->easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, body_bytes(request));
        http->easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
        http->easy_setopt(curl, CURLOPT_READFUNCTION, give_body);
        http->easy_setopt(curl, CURLOPT_READDATA, &body);
        http->easy_setopt(curl, CURLOPT_SEEKFUNCTION, rewind_body);
        http->easy_setopt(curl, CURLOPT_SEEKDATA, &body);
        http->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
        http->easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
        http->easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
        http->easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
        http->easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
        http->easy_setopt(curl, CURLOPT_WRITEDATA, reply);
        http->easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        http->easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, check_for_stop);
        http->easy_setopt(curl, CURLOPT_XFERINFODATA, target);
        http->easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
        if (target->ca_file != NULL) {
            http->easy_setopt(curl, CURLOPT_CAINFO, target->ca_file);
        }
        code = http->easy_perform(curl);
    }
    http->slist_free_all(headers);
    http->free(query);
    free(url);
    return code;
}

sj_status sj_clickhouse_request(sj_forward_target *target, const sj_clickhouse_question *request,
                                sj_clickhouse_text *reply, sj_error *error)
{
    char problem[CURL_ERROR_SIZE] = "";
    long http = 0;
    const CURLcode code = perform(target, request, reply, problem);
    if (code == CURLE_OUT_OF_MEMORY) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (code != CURLE_OK) {
        return sj_fail(error, SJ_EAGAIN, "%s is not reached: %s", target->url,
                       problem[0] != '\0' ? problem : target->curl->functions.easy_strerror(code));
    }
    target->curl->functions.easy_getinfo(target->curl->handle, CURLINFO_RESPONSE_CODE, &http);
    return http == HTTP_OK ? SJ_OK
                           : sj_clickhouse_refusal(target->url, target->user, http,
                                                   reply->bytes != NULL ? reply->bytes : "", error);
}

sj_status sj_clickhouse_run(sj_forward_target *target, const char *sql, sj_error *error)
{
    sj_clickhouse_text reply = {0};
    const sj_slice body = {.data = (const uint8_t *)sql, .size = strlen(sql)};
    const sj_clickhouse_question request = {.settings = "", .pieces = &body, .piece_count = 1};
    const sj_status status = sj_clickhouse_request(target, &request, &reply, error);
    free(reply.bytes);
    return status;
}

sj_status sj_clickhouse_ask(sj_forward_target *target, const char *sql, const char *settings,
                            int64_t timeout_ms, char **reply, size_t *size, sj_error *error)
{
    sj_clickhouse_text text = {0};
    char limits[512];
    const sj_slice body = {.data = (const uint8_t *)sql, .size = strlen(sql)};
    const sj_clickhouse_question request = {
        .settings = limits, .pieces = &body, .piece_count = 1, .timeout_ms = timeout_ms};
    const int database = snprintf(limits, sizeof(limits), "&database=%s", target->database);
    if (!target->is_read_only) {
        snprintf(limits + database, sizeof(limits) - (size_t)database, "&readonly=1%s", settings);
    }
    sj_status status = sj_clickhouse_request(target, &request, &text, error);
    if (status == SJ_EPERM && !target->is_read_only && text.bytes != NULL &&
        sj_clickhouse_refuses_settings(text.bytes)) {
        target->is_read_only = true; /* the limits in the user's profile apply instead */
        limits[database] = '\0';
        text.size = 0;
        status = sj_clickhouse_request(target, &request, &text, error);
    }
    if (status != SJ_OK || (text.bytes == NULL && (text.bytes = strdup("")) == NULL)) {
        free(text.bytes);
        return status != SJ_OK ? status : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *reply = text.bytes;
    *size = text.size;
    return SJ_OK;
}
