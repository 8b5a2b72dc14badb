/* Text as a word for a shell, for commands that a user copies. */
#ifndef SJ_COLLECTOR_SERVER_CLI_SHELL_WORD_H
#define SJ_COLLECTOR_SERVER_CLI_SHELL_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* True if a shell does not change the text: it is one word or, if `may_have_spaces`, several. */
bool sj_shell_is_plain(const char *text, bool may_have_spaces);

/* Returns `text` as a word for a shell: `text` itself, or `word` with quotation marks. Returns NULL
 * if it cannot be shown as one word: it has a control character or a quotation mark, or it does not
 * fit into `capacity` bytes. */
const char *sj_shell_word(const char *text, char *word, size_t capacity);

#endif
