/* Decimal numbers as fixed-point times, without rounding errors of floating-point numbers. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_DECIMAL_H
#define SJ_COLLECTOR_SERVER_IMPORT_DECIMAL_H

#include "proto/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A number of units and of billionths of a unit: units + parts / 10^9. */
typedef struct sj_decimal {
    int64_t units; /* rounded down */
    uint32_t parts;
} sj_decimal;

/* Parses "[-+]DIGITS[.DIGITS][e[-+]DIGITS]", times 10^shift. Digits beyond the ninth one after the
 * point are cut. Returns SJ_ECORRUPT if the text is not such a number, or SJ_ELIMIT if it does not
 * fit. */
SJ_MUST_CHECK sj_status sj_decimal_parse(const char *text, size_t size, int shift,
                                         sj_decimal *value);

/* Adds two numbers. Returns SJ_ELIMIT if the sum does not fit. */
SJ_MUST_CHECK sj_status sj_decimal_add(const sj_decimal *left, const sj_decimal *right,
                                       sj_decimal *sum);

#endif
