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

/* Starts to read the JSON value of a file. */
void sj_json_scan_init(sj_json_scan *scan, sj_source *source);

/* Reads the next token. Returns SJ_ECORRUPT, with the offset, if the file is not JSON, and
 * SJ_ELIMIT if values are nested too deeply. */
SJ_MUST_CHECK sj_status sj_json_next(sj_json_scan *scan);

/* Skips the rest of the value whose first token was read last. Returns errors of sj_json_next. */
SJ_MUST_CHECK sj_status sj_json_skip(sj_json_scan *scan);

/* Reads the next token. Returns SJ_ECORRUPT if it is not `token`, and errors of sj_json_next.
 * `what` names the expected token in the message. */
SJ_MUST_CHECK sj_status sj_json_expect(sj_json_scan *scan, sj_json_token token, const char *what);

/* True if the key or string that was read last is `text`. */
bool sj_json_is(const sj_json_scan *scan, const char *text);

/* Returns the text of the token. It is valid until the next token is read. */
static inline sj_slice sj_json_slice(const sj_json_scan *scan)
{
    return (sj_slice){.data = (const uint8_t *)scan->text, .size = scan->size};
}

/* Parses the number that was read last, times 10^shift. Returns SJ_ECORRUPT if the token is not a
 * number, and SJ_ELIMIT if the number does not fit. `what` names the number in the message. */
SJ_MUST_CHECK sj_status sj_json_decimal(const sj_json_scan *scan, const char *what, int shift,
                                        sj_decimal *value);

#endif
