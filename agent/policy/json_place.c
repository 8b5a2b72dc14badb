#include "agent/policy/json_place.h"

#include <string.h>

typedef struct json_scan {
    const char *text;
    size_t size;
    size_t at;
} json_scan;

static char peek_byte(const json_scan *scan)
{
    return scan->at < scan->size ? scan->text[scan->at] : '\0';
}

static void skip_blanks(json_scan *scan)
{
    while (scan->at < scan->size && strchr(" \t\r\n", scan->text[scan->at]) != NULL) {
        scan->at++;
    }
}

static void skip_string(json_scan *scan)
{
    scan->at++;
    while (scan->at < scan->size && scan->text[scan->at] != '"') {
        scan->at += scan->text[scan->at] == '\\' ? 2 : 1;
    }
    scan->at++;
}

/* Moves past one value and everything nested in it. */
static void skip_value(json_scan *scan)
{
    size_t depth = 0;
    do {
        skip_blanks(scan);
        const char c = peek_byte(scan);
        if (c == '"') {
            skip_string(scan);
        } else if (c == '{' || c == '[') {
            depth++;
            scan->at++;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
            scan->at++;
        } else if (c == ',' || c == ':') {
            scan->at++;
        } else {
            while (scan->at < scan->size && strchr(",:]}[{\" \t\r\n", peek_byte(scan)) == NULL) {
                scan->at++;
            }
        }
        skip_blanks(scan);
    } while (depth > 0 && scan->at < scan->size);
}

/* Moves to the value of a key. If the key occurs more than once, uses the last one, like jansson.
 * `*key_at` is the place of the key. */
static bool enter_object(json_scan *scan, const char *key, size_t *key_at)
{
    const size_t bytes = strlen(key);
    size_t found = 0;
    scan->at++;
    for (;;) {
        skip_blanks(scan);
        const size_t start = scan->at;
        if (peek_byte(scan) != '"') {
            break;
        }
        skip_string(scan);
        const bool same = scan->at <= scan->size && scan->at - start == bytes + 2 &&
                          memcmp(scan->text + start + 1, key, bytes) == 0;
        skip_blanks(scan);
        scan->at++; /* colon */
        skip_blanks(scan);
        if (same) {
            *key_at = start;
            found = scan->at;
        }
        skip_value(scan);
        if (peek_byte(scan) != ',') {
            break;
        }
        scan->at++;
    }
    scan->at = found;
    return found != 0;
}

static bool enter_array(json_scan *scan, size_t index)
{
    scan->at++;
    for (size_t i = 0; i < index; i++) {
        skip_value(scan);
        if (peek_byte(scan) != ',') {
            return false;
        }
        scan->at++;
    }
    skip_blanks(scan);
    return scan->at < scan->size && peek_byte(scan) != ']';
}

static sj_json_place place_at(const char *text, size_t at)
{
    sj_json_place place = {.line = 1, .column = 1};
    for (size_t i = 0; i < at; i++) {
        place.line += text[i] == '\n';
        place.column = text[i] == '\n' ? 1 : place.column + 1;
    }
    return place;
}

sj_json_place sj_json_find(const char *text, size_t size, const sj_json_step *steps, size_t count,
                           bool want_key)
{
    json_scan scan = {.text = text, .size = size};
    skip_blanks(&scan);
    size_t reached = scan.at;
    for (size_t i = 0; i < count; i++) {
        size_t key_at = scan.at;
        const bool is_object = steps[i].key != NULL;
        if (peek_byte(&scan) != (is_object ? '{' : '[') ||
            !(is_object ? enter_object(&scan, steps[i].key, &key_at)
                        : enter_array(&scan, steps[i].index))) {
            break;
        }
        reached = want_key && is_object && i + 1 == count ? key_at : scan.at;
    }
    return place_at(text, reached < size ? reached : size);
}
