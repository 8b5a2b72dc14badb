#include "collector-server/import/json_scan.h"

#include <stdlib.h>

void sj_json_scan_init(sj_json_scan *scan, sj_source *source)
{
    scan->source = source;
    scan->token = SJ_JSON_NULL;
    scan->size = scan->depth = 0;
    scan->needs_value = true;
    scan->needs_comma = false;
}

static sj_status fail(const sj_json_scan *scan, const char *what)
{
    return sj_source_fail(scan->source, SJ_ECORRUPT, sj_source_offset(scan->source), "%s", what);
}

static void skip_space(sj_source *source)
{
    int byte = sj_source_peek(source);
    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        (void)sj_source_get(source);
        byte = sj_source_peek(source);
    }
}

static void append(sj_json_scan *scan, int byte)
{
    if (scan->size < SJ_JSON_TEXT_BYTES) {
        scan->text[scan->size++] = (char)byte;
    } else {
        scan->is_cut = true;
    }
}

static void append_code(sj_json_scan *scan, uint32_t code)
{
    if (code < 0x80) {
        append(scan, (int)code);
    } else if (code < 0x800) {
        append(scan, (int)(0xc0 | code >> 6));
        append(scan, (int)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        append(scan, (int)(0xe0 | code >> 12));
        append(scan, (int)(0x80 | (code >> 6 & 0x3f)));
        append(scan, (int)(0x80 | (code & 0x3f)));
    } else {
        append(scan, (int)(0xf0 | code >> 18));
        append(scan, (int)(0x80 | (code >> 12 & 0x3f)));
        append(scan, (int)(0x80 | (code >> 6 & 0x3f)));
        append(scan, (int)(0x80 | (code & 0x3f)));
    }
}

static sj_status read_hex(sj_json_scan *scan, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        const int byte = sj_source_get(scan->source);
        const int digit = byte >= '0' && byte <= '9'   ? byte - '0'
                          : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                          : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                                       : -1;
        if (digit < 0) {
            return fail(scan, "\\u needs four hexadecimal digits");
        }
        *code = *code << 4 | (uint32_t)digit;
    }
    return SJ_OK;
}

/* Reads the character after a backslash, other than u. */
static sj_status read_plain_escape(sj_json_scan *scan)
{
    static const char plain[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const int byte = sj_source_get(scan->source);
    const char *found = byte > 0 ? strchr(plain, byte) : NULL;
    if (found == NULL) {
        return fail(scan, "an unknown escape in a string");
    }
    append(scan, meant[found - plain]);
    return SJ_OK;
}

/* Reads the digits of \u, and the second half of a surrogate pair. Lone halves become U+FFFD. */
static sj_status read_code(sj_json_scan *scan)
{
    uint32_t code;
    SJ_TRY(read_hex(scan, &code));
    while (code >= 0xd800 && code < 0xdc00 && sj_source_peek(scan->source) == '\\') {
        (void)sj_source_get(scan->source);
        if (sj_source_peek(scan->source) != 'u') {
            append_code(scan, 0xfffd);
            return read_plain_escape(scan);
        }
        (void)sj_source_get(scan->source);
        uint32_t low;
        SJ_TRY(read_hex(scan, &low));
        if (low >= 0xdc00 && low < 0xe000) {
            append_code(scan, 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
            return SJ_OK;
        }
        append_code(scan, 0xfffd);
        code = low;
    }
    append_code(scan, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    return SJ_OK;
}

static sj_status read_escape(sj_json_scan *scan)
{
    if (sj_source_peek(scan->source) != 'u') {
        return read_plain_escape(scan);
    }
    (void)sj_source_get(scan->source);
    return read_code(scan);
}

static sj_status read_string(sj_json_scan *scan)
{
    scan->size = 0;
    scan->is_cut = false;
    (void)sj_source_get(scan->source);
    while (true) {
        const int byte = sj_source_get(scan->source);
        if (byte == '"') {
            break;
        }
        if (byte == SJ_SOURCE_END) {
            return fail(scan, "the file ends in a string: it is cut");
        }
        if (byte < 0x20) {
            return fail(scan, "a control character in a string");
        }
        if (byte == '\\') {
            SJ_TRY(read_escape(scan));
        } else {
            append(scan, byte);
        }
    }
    scan->text[scan->size] = '\0';
    return SJ_OK;
}

static sj_status read_number(sj_json_scan *scan)
{
    scan->size = 0;
    scan->is_cut = false;
    for (int byte = sj_source_peek(scan->source);
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' ||
         byte == 'E';
         byte = sj_source_peek(scan->source)) {
        append(scan, sj_source_get(scan->source));
    }
    scan->text[scan->size] = '\0';
    scan->token = SJ_JSON_NUMBER;
    return scan->size != 0 ? SJ_OK : fail(scan, "a value is missing, or is not JSON");
}

static sj_status read_word(sj_json_scan *scan, const char *word, sj_json_token token)
{
    for (const char *at = word; *at != '\0'; at++) {
        if (sj_source_get(scan->source) != *at) {
            return fail(scan, "a value that is not JSON");
        }
    }
    scan->token = token;
    return SJ_OK;
}

static sj_status open_value(sj_json_scan *scan, bool is_object)
{
    (void)sj_source_get(scan->source);
    if (scan->depth == SJ_JSON_DEPTH) {
        return sj_source_fail(scan->source, SJ_ELIMIT, sj_source_offset(scan->source),
                              "values are nested more than %d deep", SJ_JSON_DEPTH);
    }
    scan->is_object[scan->depth++] = is_object;
    scan->token = is_object ? SJ_JSON_OBJECT : SJ_JSON_ARRAY;
    scan->needs_comma = scan->needs_value = false;
    return SJ_OK;
}

static sj_status close_value(sj_json_scan *scan, bool is_object)
{
    if (scan->depth == 0 || scan->is_object[scan->depth - 1] != is_object || scan->needs_value) {
        return fail(scan, is_object ? "'}' does not end an object here"
                                    : "']' does not end an array here");
    }
    (void)sj_source_get(scan->source);
    scan->depth--;
    scan->token = is_object ? SJ_JSON_OBJECT_END : SJ_JSON_ARRAY_END;
    scan->needs_comma = true;
    return SJ_OK;
}

static sj_status read_key(sj_json_scan *scan)
{
    SJ_TRY(read_string(scan));
    skip_space(scan->source);
    if (sj_source_get(scan->source) != ':') {
        return fail(scan, "a key needs ':'");
    }
    scan->token = SJ_JSON_KEY;
    scan->needs_value = true;
    return SJ_OK;
}

static sj_status read_value(sj_json_scan *scan, int byte)
{
    if (byte == '{' || byte == '[') {
        return open_value(scan, byte == '{');
    }
    scan->needs_value = false;
    scan->needs_comma = true;
    switch (byte) {
    case '"':
        scan->token = SJ_JSON_STRING;
        return read_string(scan);
    case 't':
        return read_word(scan, "true", SJ_JSON_TRUE);
    case 'f':
        return read_word(scan, "false", SJ_JSON_FALSE);
    case 'n':
        return read_word(scan, "null", SJ_JSON_NULL);
    default:
        return read_number(scan);
    }
}

sj_status sj_json_next(sj_json_scan *scan)
{
    sj_source *source = scan->source;
    skip_space(source);
    scan->at = sj_source_offset(source);
    int byte = sj_source_peek(source);
    if (scan->depth == 0 && !scan->needs_value) {
        scan->token = SJ_JSON_END;
        return byte == SJ_SOURCE_END ? SJ_OK : fail(scan, "text after the end of the JSON value");
    }
    if (byte == SJ_SOURCE_END) {
        return fail(scan, "the file ends inside a value: it is cut");
    }
    if (byte == '}' || byte == ']') {
        return close_value(scan, byte == '}');
    }
    if (scan->needs_comma) {
        if (byte != ',') {
            return fail(scan, "',' is missing between two values");
        }
        (void)sj_source_get(source);
        skip_space(source);
        scan->needs_comma = false;
        scan->at = sj_source_offset(source);
        byte = sj_source_peek(source);
        if (byte == '}' || byte == ']' || byte == SJ_SOURCE_END) {
            return fail(scan, "a value is missing after ','");
        }
    }
    const bool is_key = scan->depth != 0 && scan->is_object[scan->depth - 1] && !scan->needs_value;
    if (is_key && byte != '"') {
        return fail(scan, "an object needs a key here");
    }
    return is_key ? read_key(scan) : read_value(scan, byte);
}

sj_status sj_json_skip(sj_json_scan *scan)
{
    if (scan->token != SJ_JSON_OBJECT && scan->token != SJ_JSON_ARRAY) {
        return SJ_OK;
    }
    const size_t outside = scan->depth - 1;
    while (scan->depth != outside) {
        SJ_TRY(sj_json_next(scan));
    }
    return SJ_OK;
}

sj_status sj_json_expect(sj_json_scan *scan, sj_json_token token, const char *what)
{
    SJ_TRY(sj_json_next(scan));
    return scan->token == token
               ? SJ_OK
               : sj_source_fail(scan->source, SJ_ECORRUPT, scan->at, "%s is missing", what);
}

bool sj_json_is(const sj_json_scan *scan, const char *text)
{
    return !scan->is_cut && scan->size == strlen(text) && memcmp(scan->text, text, scan->size) == 0;
}

sj_status sj_json_decimal(const sj_json_scan *scan, const char *what, int shift, sj_decimal *value)
{
    if (scan->token != SJ_JSON_NUMBER) {
        return sj_source_fail(scan->source, SJ_ECORRUPT, scan->at, "%s is not a number", what);
    }
    const sj_status status = sj_decimal_parse(scan->text, scan->size, shift, value);
    return status == SJ_OK
               ? SJ_OK
               : sj_source_fail(scan->source, status, scan->at,
                                "%s is a number that cannot be read: %.40s", what, scan->text);
}
