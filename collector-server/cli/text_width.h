/* Width of UTF-8 text on a terminal, and text that is safe to print there. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TEXT_WIDTH_H
#define SJ_COLLECTOR_SERVER_CLI_TEXT_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* True if the user's locale is C or POSIX: $LC_ALL, $LC_CTYPE or $LANG, the first that is set.
 * Commands then write only ASCII. Without these variables, they write UTF-8. */
bool sj_text_is_ascii(void);

/* Returns the sign, one column wide, for text that was cut. */
const char *sj_text_ellipsis(void);

/* Returns the number of columns that UTF-8 text needs on a terminal. A byte that is not UTF-8 takes
 * 1 column. */
int sj_text_width(const char *text);

/* Returns how many bytes of `text` fit in `width` columns, as whole characters. */
size_t sj_text_cut(const char *text, int width);

/* Writes the first `bytes` bytes of a text. Writes '?' for each control character (U+0000-U+001F,
 * U+007F-U+009F) and for each byte that is not UTF-8, so that no text can control a terminal. If
 * sj_text_is_ascii, writes '?' for each character that is not ASCII, too. */
void sj_text_write(FILE *file, const char *text, size_t bytes);

/* Replaces in a string the characters and bytes for which sj_text_write writes '?'. */
void sj_text_clean(char *text);

#endif
