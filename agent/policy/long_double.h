/* Converts long doubles of recorded programs to text, independent of this machine's own format. */
#ifndef SJ_AGENT_POLICY_LONG_DOUBLE_H
#define SJ_AGENT_POLICY_LONG_DOUBLE_H

#include <stdint.h>

enum { SJ_LONG_DOUBLE_TEXT_BYTES = 48 }; /* size of the longest text, including its terminator */

/* Writes a long double of the x87: 64 bits of which the highest is 1, then sign and exponent. Uses
 * 21 digits, which distinguish all values, in the form of printf's %Lg. */
void sj_long_double_write_x87(const char bytes[10], char text[SJ_LONG_DOUBLE_TEXT_BYTES]);

/* Writes a binary128 of IEEE 754 with 36 digits, rounded to nearest, ties to even. */
void sj_long_double_write_binary128(const char bytes[16], char text[SJ_LONG_DOUBLE_TEXT_BYTES]);

#endif
