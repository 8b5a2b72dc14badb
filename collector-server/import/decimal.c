#include "collector-server/import/decimal.h"

#include <stdbool.h>

enum { PART_DIGITS = 9, PARTS = 1000000000, MOST_DIGITS = 400, MOST_EXPONENT = 400 };

typedef struct digits {
    char digit[MOST_DIGITS];
    int count;
    int point; /* number of digits before the point */
} digits;

/* Reads the digits before and after the point. Returns the length of the text that it read, or 0
 * if it has no digits, or too many. */
static size_t read_digits(const char *text, size_t size, digits *read)
{
    size_t at = 0;
    bool has_point = false;
    *read = (digits){.count = 0};
    for (; at < size; at++) {
        if (text[at] == '.' && !has_point) {
            has_point = true;
            read->point = read->count;
        } else if (text[at] >= '0' && text[at] <= '9' && read->count < MOST_DIGITS) {
            read->digit[read->count++] = (char)(text[at] - '0');
        } else {
            break;
        }
    }
    read->point = has_point ? read->point : read->count;
    return read->count != 0 && !(at < size && text[at] >= '0' && text[at] <= '9') ? at : 0;
}

/* Reads the digits of an exponent. Returns false if the text is not an exponent. */
static bool read_exponent(const char *text, size_t size, int *exponent)
{
    size_t at = 0;
    const bool is_negative = size != 0 && text[0] == '-';
    at += size != 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    int value = 0;
    if (at == size) {
        return false;
    }
    for (; at < size; at++) {
        if (text[at] < '0' || text[at] > '9') {
            return false;
        }
        value = value < MOST_EXPONENT ? value * 10 + (text[at] - '0') : value;
    }
    *exponent = is_negative ? -value : value;
    return true;
}

static int digit_at(const digits *read, int place)
{
    return place >= 0 && place < read->count ? read->digit[place] : 0;
}

sj_status sj_decimal_parse(const char *text, size_t size, int shift, sj_decimal *value)
{
    digits read;
    const bool is_negative = size != 0 && text[0] == '-';
    size_t at = size != 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    const size_t length = read_digits(text + at, size - at, &read);
    at += length;
    int exponent = 0;
    if (length == 0) {
        return SJ_ECORRUPT;
    }
    if (at < size && (text[at] == 'e' || text[at] == 'E')) {
        if (!read_exponent(text + at + 1, size - at - 1, &exponent)) {
            return SJ_ECORRUPT;
        }
    } else if (at < size) {
        return SJ_ECORRUPT;
    }
    const int point = read.point + exponent + shift;
    int64_t units = 0;
    for (int i = 0; i < point; i++) {
        if (__builtin_mul_overflow(units, 10, &units) ||
            __builtin_add_overflow(units, digit_at(&read, i), &units)) {
            return SJ_ELIMIT;
        }
    }
    uint32_t parts = 0;
    for (int i = 0; i < PART_DIGITS; i++) {
        parts = parts * 10 + (uint32_t)digit_at(&read, point + i);
    }
    *value = (sj_decimal){.units = units, .parts = parts};
    if (is_negative) {
        value->units = parts != 0 ? -units - 1 : -units;
        value->parts = parts != 0 ? PARTS - parts : 0;
    }
    return SJ_OK;
}

sj_status sj_decimal_add(const sj_decimal *left, const sj_decimal *right, sj_decimal *sum)
{
    const uint32_t parts = left->parts + right->parts;
    int64_t units;
    if (__builtin_add_overflow(left->units, right->units, &units) ||
        __builtin_add_overflow(units, parts >= PARTS ? 1 : 0, &units)) {
        return SJ_ELIMIT;
    }
    *sum = (sj_decimal){.units = units, .parts = parts % PARTS};
    return SJ_OK;
}
