#include "agent/policy/function_place.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define OFFSET_SIGN "+0x"

/* Returns the last OFFSET_SIGN in a text, because names of modules may contain one; NULL: none. */
static const char *find_offset(const char *text)
{
    const char *found = NULL;
    for (const char *at = strstr(text, OFFSET_SIGN); at != NULL; at = strstr(at + 1, OFFSET_SIGN)) {
        found = at;
    }
    return found;
}

bool sj_function_place_is(const char *text)
{
    const char *sign = find_offset(text);
    return sign != NULL && sign != text;
}

/* Reads "0xDIGITS" and moves `*at` behind it. */
static bool read_offset(const char **at, uint64_t *offset)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    if (strncmp(*at, "0x", 2) != 0) {
        return false;
    }
    const char *start = *at + 2;
    const size_t count = strspn(start, digits);
    if (count == 0 || count > 16) {
        return false;
    }
    *offset = strtoull(start, NULL, 16);
    *at = start + count;
    return true;
}

static bool is_build_id(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789abcdefABCDEF")] == '\0';
}

sj_status sj_function_place_parse(const char *text, sj_function_place *place, sj_error *error)
{
    const char *at = find_offset(text);
    *place = (sj_function_place){0};
    if (at == NULL || at == text || strlen(text) >= SJ_FUNCTION_PLACE_BYTES) {
        return sj_fail(error, SJ_EINVAL, "\"%s\" is not MODULE+0xOFFSET", text);
    }
    memcpy(place->module, text, (size_t)(at - text));
    at++;
    bool is_valid = read_offset(&at, &place->low);
    place->high = place->low;
    if (is_valid && at[0] == '-') {
        at++;
        is_valid = read_offset(&at, &place->high) && place->high >= place->low;
    }
    if (is_valid && at[0] == '@') {
        is_valid = is_build_id(++at);
        snprintf(place->build_id, sizeof(place->build_id), "%s", at);
        at += strlen(at);
    }
    if (!is_valid || at[0] != '\0') {
        return sj_fail(error, SJ_EINVAL,
                       "\"%s\": a place is MODULE+0xOFFSET or MODULE+0xFROM-0xTO, "
                       "optionally with @BUILD-ID at its end",
                       text);
    }
    return SJ_OK;
}

void sj_function_keys_init(sj_function_keys *keys, const char *path, const uint8_t *build_id,
                           size_t build_id_bytes)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    keys->module[0] = '\0';
    keys->build_id[0] = '\0';
    if (strlen(name) < sizeof(keys->module) && strpbrk(name, "!:\x1f") == NULL) {
        snprintf(keys->module, sizeof(keys->module), "%s", name);
    }
    for (size_t i = 0; i < build_id_bytes && 2 * i + 2 < sizeof(keys->build_id); i++) {
        snprintf(keys->build_id + 2 * i, 3, "%02x", build_id[i]);
    }
}

const char *sj_function_key(sj_function_keys *keys, const char *symbol, uint64_t offset)
{
    const bool is_method = (symbol[0] == '-' || symbol[0] == '+') && symbol[1] == '[';
    if (keys->module[0] == '\0' || is_method) {
        return symbol;
    }
    const int length = snprintf(keys->key, sizeof(keys->key), "%s%c%s+0x%" PRIx64 "@%s", symbol,
                                SJ_FUNCTION_KEY_PLACE, keys->module, offset, keys->build_id);
    return length > 0 && length < SJ_FUNCTION_KEY_BYTES ? keys->key : symbol;
}

bool sj_function_place_has(const sj_function_place *place, const char *key)
{
    const char *text = strrchr(key, SJ_FUNCTION_KEY_PLACE);
    sj_function_place found;
    const char *at = text != NULL ? find_offset(text) : NULL;
    if (at == NULL) {
        return false;
    }
    snprintf(found.module, sizeof(found.module), "%.*s", (int)(at - text - 1), text + 1);
    at++;
    return read_offset(&at, &found.low) && found.low >= place->low && found.low <= place->high &&
           strncasecmp(at + 1, place->build_id, strlen(place->build_id)) == 0 &&
           fnmatch(place->module, found.module, 0) == 0;
}
