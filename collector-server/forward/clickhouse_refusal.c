#include "collector-server/forward/clickhouse_refusal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    HTTP_UNAUTHORIZED = 401,
    HTTP_FORBIDDEN = 403,
    HTTP_UNAVAILABLE = 503,
    CODE_UNKNOWN_TABLE = 60,
    CODE_UNKNOWN_DATABASE = 81,
    CODE_UNKNOWN_USER = 192,
    CODE_TIMEOUT = 159,
    CODE_READONLY_USER = 164,
    CODE_WRONG_PASSWORD = 193,
    CODE_TOO_MANY_QUERIES = 202,
    CODE_MEMORY_LIMIT = 241,
    CODE_READ_ONLY = 242,
    CODE_NO_SPACE = 243,
    CODE_TOO_MANY_PARTS = 252,
    CODE_NO_CONNECTION = 279, /* to a shard */
    CODE_ACCESS_DENIED = 497,
    CODE_AUTHENTICATION = 516
};

static bool is_login(long code, long http)
{
    return code == CODE_WRONG_PASSWORD || code == CODE_UNKNOWN_USER ||
           code == CODE_AUTHENTICATION || http == HTTP_UNAUTHORIZED || http == HTTP_FORBIDDEN;
}

/* True if the refusal is temporary: the server lacks time, memory or space now. */
static bool is_passing(long code, long http)
{
    static const long codes[] = {CODE_TIMEOUT,   CODE_TOO_MANY_QUERIES, CODE_MEMORY_LIMIT,
                                 CODE_READ_ONLY, CODE_NO_SPACE,         CODE_TOO_MANY_PARTS};
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
        if (code == codes[i]) {
            return true;
        }
    }
    return http == HTTP_UNAVAILABLE;
}

/* True if a disk of the server is full. Errors of many codes contain the system's message. */
static bool is_full(long code, const char *text)
{
    return code == CODE_NO_SPACE || strcasestr(text, "No space left on device") != NULL;
}

/* True if one insert has too many partitions. Its code is also used for too many parts, which is
 * temporary. */
static bool has_many_partitions(long code, const char *text)
{
    return code == CODE_TOO_MANY_PARTS && strcasestr(text, "partitions") != NULL;
}

static long code_of(const char *text)
{
    return strncmp(text, "Code: ", 6) == 0 ? strtol(text + 6, NULL, 10) : 0;
}

bool sj_clickhouse_refuses_settings(const char *text)
{
    return code_of(text) == CODE_READONLY_USER && strcasestr(text, "setting") != NULL;
}

/* True if a library of the server could not write a file, mostly its log, and does not say why:
 * "Poco::Exception. Code: 1000, e.code() = 0, e.displayText() = Cannot write file: /log". The
 * reason is usually a full disk. */
static bool is_unexplained_write(const char *text)
{
    return strstr(text, "Cannot write file: ") != NULL && !is_full(0, text);
}

/* Finds the server's own words in "Code: 193, e.displayText() = DB::Exception: Wrong password,
 * e.what() = DB::Exception" and the forms of other versions. */
static const char *find_words(const char *text, int *length)
{
    static const char *const prefixes[] = {"Exception: ", "displayText() = "};
    enum { MOST_BYTES = 600 };
    const char *words = text;
    for (size_t i = 0; words == text && i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        const char *head = strstr(text, prefixes[i]);
        words = head != NULL ? head + strlen(prefixes[i]) : text;
    }
    const char *end = strstr(words, ", e.what()");
    const size_t size = end != NULL ? (size_t)(end - words) : strcspn(words, "\n");
    *length = size < MOST_BYTES ? (int)size : MOST_BYTES;
    return words;
}

sj_status sj_clickhouse_refusal(const char *url, const char *user, long http, const char *text,
                                sj_error *error)
{
    const long code = code_of(text);
    int length = 0;
    const char *words = find_words(text, &length);
    if (is_login(code, http)) {
        return sj_fail(error, SJ_EPERM, "%s does not let %s in: %.*s", url, user,
                       length < 300 ? length : 300, words);
    }
    if (code == CODE_ACCESS_DENIED || code == CODE_READONLY_USER) {
        return sj_fail(error, SJ_EPERM, "%s does not allow this to the user %s: %.*s", url, user,
                       length < 300 ? length : 300, words);
    }
    if (has_many_partitions(code, text)) {
        return sj_fail(error, SJ_ELIMIT, "%s refuses (%ld): %.*s", url, http, length, words);
    }
    const bool is_missing = code == CODE_UNKNOWN_TABLE || code == CODE_UNKNOWN_DATABASE;
    const bool is_unexplained = is_unexplained_write(text);
    const bool has_no_space = is_full(code, text);
    const bool is_for_now = has_no_space || is_unexplained || is_passing(code, http);
    return sj_fail(error,
                   is_missing   ? SJ_ENOTFOUND
                   : is_for_now ? SJ_EAGAIN
                                : SJ_EINVAL,
                   "%s refuses (%ld): %s%.*s%s", url, http,
                   code == CODE_NO_CONNECTION ? "a shard does not answer: " : "", length, words,
                   is_unexplained ? ": check the disk space of the server"
                   : has_no_space ? ": a disk of the server is full; free space there"
                                  : "");
}
