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

/* A floating-point number: mantissa * 2^exponent. */
typedef struct real_parts {
    uint64_t mantissa;
    int32_t exponent;
    bool is_negative;
} real_parts;

static real_parts split_real(uint64_t bits, bool is_single)
{
    const uint32_t width = is_single ? 23 : 52;
    const uint32_t most = is_single ? 0xff : 0x7ff;
    const uint32_t biased = (uint32_t)(bits >> width) & most;
    const uint64_t fraction = bits & ((UINT64_C(1) << width) - 1);
    const int32_t bias = (int32_t)(most >> 1) + (int32_t)width;
    return (real_parts){.mantissa = fraction | (biased != 0 ? UINT64_C(1) << width : 0),
                        .exponent = (int32_t)(biased != 0 ? biased : 1) - bias,
                        .is_negative = (bits >> (is_single ? 31 : 63) & 1) != 0};
}

/* Appends a decimal point and the fewest digits of remainder / 2^shift that differ from it by less
 * than half a unit of the mantissa. Returns false if they round up to 1; then appends nothing. */
static bool add_fraction(sj_value_text *text, unsigned __int128 remainder, uint32_t shift)
{
    enum { DIGITS_MAX = 64 };
    const unsigned __int128 one = (unsigned __int128)1 << shift;
    unsigned __int128 slack =
        1; /* half a unit, because `shift` has one more bit than the mantissa */
    char digits[DIGITS_MAX] = ".0";
    uint32_t used = 1;
    bool is_last = remainder == 0;
    while (!is_last && used < DIGITS_MAX - 1) {
        remainder *= 10;
        slack *= 10;
        char digit = (char)('0' + (uint32_t)(remainder >> shift));
        remainder &= one - 1;
        is_last = remainder < slack || one - remainder < slack;
        if (is_last && remainder << 1 > one) {
            digit++;
        }
        digits[used++] = digit;
    }
    if (used == 2 && digits[1] > '9') {
        return false;
    }
    digits[used > 2 ? used : 2] = '\0';
    sj_value_text_add(text, digits);
    return true;
}

void sj_value_text_add_real(sj_value_text *text, uint64_t bits, bool is_single)
{
    enum { SHIFT_MAX = 120, WHOLE_EXPONENT_MAX = 10 };
    const real_parts parts = split_real(bits, is_single);
    const bool is_shifted = parts.exponent < 0 && parts.mantissa != 0;
    const uint32_t shift = is_shifted ? (uint32_t)-parts.exponent + 1 : 1;
    if (parts.mantissa != 0 && (parts.exponent > WHOLE_EXPONENT_MAX || shift > SHIFT_MAX)) {
        sj_value_text_add(text, "0x");
        sj_value_text_add_number(text, bits, 16);
        return;
    }
    const unsigned __int128 scaled = (unsigned __int128)parts.mantissa
                                     << (parts.exponent < 0 ? 1 : parts.exponent + 1);
    const uint64_t whole = (uint64_t)(scaled >> shift);
    const sj_value_text before = *text;
    sj_value_text_add(text, parts.is_negative ? "-" : "");
    sj_value_text_add_number(text, whole, 10);
    if (!add_fraction(text, scaled - ((unsigned __int128)whole << shift), shift)) {
        *text = before;
        sj_value_text_add(text, parts.is_negative ? "-" : "");
        sj_value_text_add_number(text, whole + 1, 10);
        sj_value_text_add(text, ".0");
    }
}
