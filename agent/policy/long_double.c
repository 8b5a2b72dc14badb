/* Design notes.
 *
 * A binary128 is an integer times a power of two. A fraction n / 2^k equals n * 5^k / 10^k. So its
 * digits are always those of an integer, which this file multiplies out. */
#include "agent/policy/long_double.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    DIGITS_X87 = 21,
    DIGITS_BINARY128 = 36,
    LIMB = 1000000000, /* a word holds nine digits */
    LIMB_DIGITS = 9,
    LIMBS = 1300,      /* 5^16494 times 113 bits has fewer than 11,570 digits */
    LIMBS_WRITTEN = 5, /* limbs that hold DIGITS_BINARY128 digits and more */
    WRITTEN_BYTES = LIMBS_WRITTEN * LIMB_DIGITS + 1
};

/* An integer: the lowest nine digits first. */
typedef struct big_number {
    size_t count;
    uint32_t limbs[LIMBS];
} big_number;

/* The digits of a number. The decimal point follows the first digit; the value is multiplied by ten
 * to the power of `exponent`. */
typedef struct decimal {
    char digits[DIGITS_BINARY128 + 1];
    int exponent;
} decimal;

void sj_long_double_write_x87(const char bytes[10], char text[SJ_LONG_DOUBLE_TEXT_BYTES])
{
    enum { EXPONENT = 0x7fff, BIAS = 16383 + 63 };
    uint64_t fraction = 0;
    uint16_t top = 0;
    memcpy(&fraction, bytes, sizeof(fraction));
    memcpy(&top, bytes + sizeof(fraction), sizeof(top));
    const char *sign = (top & (EXPONENT + 1)) != 0 ? "-" : "";
    if ((top & EXPONENT) == EXPONENT) {
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s%s", sign, fraction << 1 == 0 ? "inf" : "nan");
    } else {
        const int exponent = (top & EXPONENT) != 0 ? top & EXPONENT : 1;
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s%.*Lg", sign, DIGITS_X87,
                 ldexpl((long double)fraction, exponent - BIAS));
    }
}

/* Computes number * factor + addend, and stores the result in `number`. */
static void multiply(big_number *number, uint32_t factor, uint32_t addend)
{
    uint64_t carry = addend;
    for (size_t i = 0; i < number->count; i++) {
        carry += (uint64_t)number->limbs[i] * factor;
        number->limbs[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    while (carry != 0 && number->count < LIMBS) {
        number->limbs[number->count++] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
}

/* Multiplies by 2 or 5 to the power of `power`. `step` is the largest power of the base that fits
 * into 32 bits; its exponent is `step_exponent`. */
static void multiply_by_power(big_number *number, uint32_t base, uint32_t power, uint32_t step,
                              uint32_t step_exponent)
{
    for (; power >= step_exponent; power -= step_exponent) {
        multiply(number, step, 0);
    }
    for (; power > 0; power--) {
        multiply(number, base, 0);
    }
}

/* Writes the first limbs of a number; returns the number of digits. */
static size_t write_first(const big_number *number, char digits[WRITTEN_BYTES])
{
    size_t at = 0;
    for (size_t i = number->count; i-- > 0 && number->count - i <= LIMBS_WRITTEN;) {
        const int least = i + 1 == number->count ? 1 : LIMB_DIGITS;
        at += (size_t)snprintf(digits + at, WRITTEN_BYTES - at, "%0*u", least, number->limbs[i]);
    }
    return at;
}

/* True if the digits after the kept ones round the number up. */
static bool is_rounded_up(const big_number *number, const char *digits, size_t written)
{
    const char *rest = digits + DIGITS_BINARY128;
    bool is_half = rest[0] == '5';
    for (size_t i = 1; i + DIGITS_BINARY128 < written; i++) {
        is_half = is_half && rest[i] == '0';
    }
    for (size_t i = 0; i + LIMBS_WRITTEN < number->count; i++) {
        is_half = is_half && number->limbs[i] == 0;
    }
    return is_half ? (rest[-1] - '0') % 2 != 0 : rest[0] >= '5';
}

/* Rounds a nonzero number to the digits of a text, without trailing zeros. */
static void round_digits(const big_number *number, decimal *rounded)
{
    char digits[WRITTEN_BYTES] = "";
    const size_t written = write_first(number, digits);
    const size_t unwritten_limbs =
        number->count > LIMBS_WRITTEN ? number->count - LIMBS_WRITTEN : 0;
    size_t kept = written < DIGITS_BINARY128 ? written : DIGITS_BINARY128;
    rounded->exponent = (int)(written + unwritten_limbs * LIMB_DIGITS) - 1;
    if (written > DIGITS_BINARY128 && is_rounded_up(number, digits, written)) {
        while (kept > 0 && digits[kept - 1] == '9') {
            kept--;
        }
        if (kept != 0) {
            digits[kept - 1]++;
        } else { /* only nines */
            digits[kept++] = '1';
            rounded->exponent++;
        }
    }
    while (kept > 1 && digits[kept - 1] == '0') {
        kept--;
    }
    memcpy(rounded->digits, digits, kept);
    rounded->digits[kept] = '\0';
}

/* Writes a number like printf's %g. */
static void write_decimal(const decimal *number, const char *sign,
                          char text[SJ_LONG_DOUBLE_TEXT_BYTES])
{
    const char *digits = number->digits;
    const int count = (int)strlen(digits);
    const int whole = number->exponent + 1;
    if (number->exponent < -4 || number->exponent >= DIGITS_BINARY128) {
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s%c%s%se%+03d", sign, digits[0],
                 count > 1 ? "." : "", digits + 1, number->exponent);
    } else if (whole <= 0) {
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s0.%.*s%s", sign, -whole, "0000", digits);
    } else if (whole >= count) {
        char padded[DIGITS_BINARY128];
        memset(padded, '0', sizeof(padded));
        memcpy(padded, digits, (size_t)count);
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s%.*s", sign, whole, padded);
    } else {
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s%.*s.%s", sign, whole, digits, digits + whole);
    }
}

/* Computes the digits of (high * 2^64 + low) * 2^exponent, which is not 0. */
static void make_number(uint64_t high, uint64_t low, int exponent, decimal *made)
{
    big_number number = {.count = 0};
    const uint32_t parts[4] = {(uint32_t)(high >> 32), (uint32_t)high, (uint32_t)(low >> 32),
                               (uint32_t)low};
    for (size_t i = 0; i < 4; i++) {
        multiply(&number, UINT32_C(1) << 31, 0);
        multiply(&number, 2, parts[i]);
    }
    if (exponent >= 0) {
        multiply_by_power(&number, 2, (uint32_t)exponent, UINT32_C(1) << 29, 29);
    } else {
        multiply_by_power(&number, 5, (uint32_t)-exponent, 1220703125, 13); /* 5^13 */
    }
    round_digits(&number, made);
    made->exponent += exponent < 0 ? exponent : 0;
}

void sj_long_double_write_binary128(const char bytes[16], char text[SJ_LONG_DOUBLE_TEXT_BYTES])
{
    enum { EXPONENT = 0x7fff, EXPONENT_SHIFT = 48, BIAS = 16383 + 112 };
    uint64_t low = 0;
    uint64_t high = 0;
    memcpy(&low, bytes, sizeof(low));
    memcpy(&high, bytes + sizeof(low), sizeof(high));
    const char *sign = high >> 63 != 0 ? "-" : "";
    const int stored = (int)(high >> EXPONENT_SHIFT) & EXPONENT;
    high &= (UINT64_C(1) << EXPONENT_SHIFT) - 1;
    if (stored == EXPONENT) {
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s%s", sign, (high | low) == 0 ? "inf" : "nan");
        return;
    }
    if (stored == 0 && (high | low) == 0) {
        snprintf(text, SJ_LONG_DOUBLE_TEXT_BYTES, "%s0", sign);
        return;
    }
    high |= stored != 0 ? UINT64_C(1) << EXPONENT_SHIFT : 0;
    int exponent = (stored != 0 ? stored : 1) - BIAS;
    for (; (low & 1) == 0 && exponent < 0; exponent++) { /* removes factors of two */
        low = low >> 1 | high << 63;
        high >>= 1;
    }
    decimal number;
    make_number(high, low, exponent, &number);
    write_decimal(&number, sign, text);
}
