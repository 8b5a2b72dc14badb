#include "agent/inproc/recorder/value_text.h"

#include <stdbool.h>
#include <string.h>

enum {
    REPLACEMENT = 0xfffd,
    SURROGATE = 0xd800,
    LOW_SURROGATE = 0xdc00,
    SURROGATE_END = 0xe000,
    AT_ONCE = 4 /* ASCII letters that are appended together */
};

void sj_value_text_add_bytes(sj_value_text *text, const char *bytes, uint32_t count)
{
    if (text->note == SJ_VALUE_CUT || text->used + count > SJ_VALUE_TEXT_BYTES) {
        text->note = SJ_VALUE_CUT;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        text->bytes[text->used++] = bytes[i];
    }
}

void sj_value_text_add(sj_value_text *text, const char *plain)
{
    for (; *plain != '\0' && text->note != SJ_VALUE_CUT; plain++) {
        sj_value_text_add_bytes(text, plain, 1);
    }
}

void sj_value_text_add_code(sj_value_text *text, uint32_t code)
{
    const char bytes[] = {(char)(0xf0 | code >> 18), (char)(0x80 | (code >> 12 & 0x3f)),
                          (char)(0x80 | (code >> 6 & 0x3f)), (char)(0x80 | (code & 0x3f))};
    if (code < 0x80) {
        const char plain = (char)(code != 0 ? code : ' ');
        sj_value_text_add_bytes(text, &plain, 1);
    } else if (code < 0x800) {
        const char two[] = {(char)(0xc0 | code >> 6), bytes[3]};
        sj_value_text_add_bytes(text, two, sizeof(two));
    } else if (code < 0x10000) {
        const char three[] = {(char)(0xe0 | code >> 12), bytes[2], bytes[3]};
        sj_value_text_add_bytes(text, three, sizeof(three));
    } else {
        sj_value_text_add_bytes(text, bytes, sizeof(bytes));
    }
}

/* Appends four ASCII letters at once. Returns false if one of them is 0 or not ASCII. */
static bool add_ascii(sj_value_text *text, const uint16_t *units)
{
    const uint64_t ones = UINT64_C(0x0001000100010001);
    uint64_t word = 0;
    /* not libc's memcpy, which may be recorded itself */
    __builtin_memcpy(&word, units, sizeof(word));
    if ((word & (ones * 0xff80)) != 0 || ((word - ones) & (ones << 15)) != 0) {
        return false;
    }
    word |= word >> 8;
    word = (word & 0xffff) | (word >> 16 & 0xffff0000);
    __builtin_memcpy(text->bytes + text->used, &word, AT_ONCE);
    text->used += AT_ONCE;
    return true;
}

/* Appends the ASCII letters that the units begin with, as far as they fit. Returns how many. */
static int32_t add_plain_units(sj_value_text *text, const uint16_t *units, int32_t count)
{
    int32_t at = 0;
    while (count - at >= AT_ONCE && SJ_VALUE_TEXT_BYTES - text->used >= AT_ONCE &&
           add_ascii(text, units + at)) {
        at += AT_ONCE;
    }
    while (at < count && text->used < SJ_VALUE_TEXT_BYTES && units[at] - 1U < 0x7f) {
        text->bytes[text->used++] = (char)units[at++];
    }
    return at;
}

void sj_value_text_add_units(sj_value_text *text, const uint16_t *units, int32_t count)
{
    int32_t at = text->note == SJ_VALUE_WHOLE ? add_plain_units(text, units, count) : 0;
    while (at < count && text->note != SJ_VALUE_CUT) {
        uint32_t code = units[at++];
        if (code >= SURROGATE && code < SURROGATE_END) {
            const bool is_pair = code < LOW_SURROGATE && at < count && units[at] >= LOW_SURROGATE &&
                                 units[at] < SURROGATE_END;
            code = is_pair ? 0x10000 + ((code - SURROGATE) << 10) + (units[at++] - LOW_SURROGATE)
                           : (uint32_t)REPLACEMENT;
        }
        sj_value_text_add_code(text, code);
    }
}

void sj_value_text_add_number(sj_value_text *text, uint64_t number, uint32_t base)
{
    char digits[24];
    uint32_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    sj_value_text_add(text, digits + at);
}
