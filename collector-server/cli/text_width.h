/* How wide UTF-8 text is on a terminal, and what of it a terminal may be given. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TEXT_WIDTH_H
#define SJ_COLLECTOR_SERVER_CLI_TEXT_WIDTH_H

#include <stddef.h>
#include <stdio.h>

/* sj_text_width counts the columns that UTF-8 text takes on a terminal; bad bytes count one. */
int sj_text_width(const char *text);

/* sj_text_cut returns how many bytes of `text` take at most `width` columns. */
size_t sj_text_cut(const char *text, int width);

/* sj_text_write writes the first `bytes` of a text to a terminal or file: each control character
 * (U+0000-U+001F, U+007F-U+009F) and each byte that is not UTF-8 as '?', so that no text paints or
 * steers a terminal. */
void sj_text_write(FILE *file, const char *text, size_t bytes);

/* sj_text_clean puts '?' in the places of the same in a string. */
void sj_text_clean(char *text);

#endif
