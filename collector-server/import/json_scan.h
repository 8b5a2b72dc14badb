/* A JSON reader that holds only one value in memory, for files of any size (RFC 8259). Not
 * thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_JSON_SCAN_H
#define SJ_COLLECTOR_SERVER_IMPORT_JSON_SCAN_H

#include "collector-server/import/decimal.h"
#include "collector-server/import/source.h"

enum { SJ_JSON_TEXT_BYTES = 64 * 1024, SJ_JSON_DEPTH = 512 };

typedef enum sj_json_token {
    SJ_JSON_END, /* the file has ended */
    SJ_JSON_OBJECT,
    SJ_JSON_OBJECT_END,
    SJ_JSON_ARRAY,
    SJ_JSON_ARRAY_END,
    SJ_JSON_KEY, /* its value is the next token */
    SJ_JSON_STRING,
    SJ_JSON_NUMBER,
    SJ_JSON_TRUE,
    SJ_JSON_FALSE,
    SJ_JSON_NULL
} sj_json_token;

typedef struct sj_json_scan {
    sj_source *source; /* borrowed */
    sj_json_token token;
    uint64_t at; /* offset of the token */
    /* Content of a KEY or STRING without its escapes, or the digits of a NUMBER; ends with a NUL
     * byte. Texts are cut to fit, and `is_cut` says so. */
    char text[SJ_JSON_TEXT_BYTES + 8];
    size_t size;
    bool is_cut;
    bool is_object[SJ_JSON_DEPTH]; /* by depth: an object, not an array */
    size_t depth;
    bool needs_value; /* after a key */
    bool needs_comma; /* after a value */
} sj_json_scan;

void sj_json_scan_init(sj_json_scan *scan, sj_source *source);

/* Reads the next token. Returns SJ_ECORRUPT, with the offset, if the file is not JSON; SJ_ELIMIT if
 * it is nested too deeply. */
SJ_MUST_CHECK sj_status sj_json_next(sj_json_scan *scan);

/* Skips the rest of the value whose first token was read last. */
SJ_MUST_CHECK sj_status sj_json_skip(sj_json_scan *scan);

/* Reads the next token and fails with SJ_ECORRUPT if it is another one. `what` names it. */
SJ_MUST_CHECK sj_status sj_json_expect(sj_json_scan *scan, sj_json_token token, const char *what);

/* True if the key, or the string, is `text`. */
bool sj_json_is(const sj_json_scan *scan, const char *text);

/* Returns the text of the token. */
static inline sj_slice sj_json_slice(const sj_json_scan *scan)
{
    return (sj_slice){.data = (const uint8_t *)scan->text, .size = scan->size};
}

/* Parses the number, which was read last, times 10^shift. Returns SJ_ECORRUPT if the token is not a
 * number; `what` names it. */
SJ_MUST_CHECK sj_status sj_json_decimal(const sj_json_scan *scan, const char *what, int shift,
                                        sj_decimal *value);

#endif
