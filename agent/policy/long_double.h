/* Long doubles of recorded programs as texts, whatever this machine's own are. */
#ifndef SJ_AGENT_POLICY_LONG_DOUBLE_H
#define SJ_AGENT_POLICY_LONG_DOUBLE_H

#include <stdint.h>

enum { SJ_LONG_DOUBLE_TEXT_BYTES = 48 }; /* of the longest text, with its end */

/* sj_long_double_write_x87 writes what the ten bytes of a long double of the x87 mean: 64 bits, of
 * which the highest is 1, then its sign and exponent. With 21 digits, which distinguish all of
 * them, as printf's %Lg does. */
void sj_long_double_write_x87(const char bytes[10], char text[SJ_LONG_DOUBLE_TEXT_BYTES]);

/* sj_long_double_write_binary128 writes likewise what the sixteen bytes of a binary128 of IEEE 754
 * mean, with 36 digits, rounded to nearest, of two as near to the even one. */
void sj_long_double_write_binary128(const char bytes[16], char text[SJ_LONG_DOUBLE_TEXT_BYTES]);

#endif
