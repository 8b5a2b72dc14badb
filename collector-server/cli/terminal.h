/* Standard output as people read it: its size, whether colours are wanted, and a pager. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TERMINAL_H
#define SJ_COLLECTOR_SERVER_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Columns of output that is not a terminal: lines are as long as they need to be. */
#define SJ_TERMINAL_UNLIMITED 0

typedef struct sj_terminal {
    bool is_terminal;
    bool colour; /* a terminal that knows colours, without NO_COLOR */
    int columns; /* SJ_TERMINAL_UNLIMITED: no terminal */
    int rows;    /* SJ_TERMINAL_UNLIMITED: no terminal */
    pid_t pager; /* 0: none runs */
    int screen;  /* with a pager: the terminal, as standard output was */
} sj_terminal;

/* sj_terminal_open describes standard output. $COLUMNS and $LINES go before the terminal's own
 * size; a terminal without a size has 80 columns and 24 rows. Does not block. */
void sj_terminal_open(sj_terminal *terminal);

/* sj_terminal_describe does the same for another file descriptor. */
void sj_terminal_describe(int fd, sj_terminal *terminal);

/* sj_terminal_begin_line makes the next output begin a line, wherever another program has left the
 * cursor: a line full of spaces ends on this line from its first column on, else on the next one.
 */
void sj_terminal_begin_line(FILE *file, const sj_terminal *terminal);

/* sj_terminal_wrap writes lines: one that is wider than the terminal goes on in the next, behind
 * `indent` spaces. Narrower terminals than twice that get it as it is. */
void sj_terminal_wrap(FILE *file, const sj_terminal *terminal, const char *text, int indent);

/* sj_terminal_page sends standard output through $SOJOURN_PAGER, $PAGER or less until
 * sj_terminal_close. Nothing happens without a terminal, when the variable is empty or "cat", or
 * when there is no such program. One thread at a time. */
void sj_terminal_page(sj_terminal *terminal);

/* sj_terminal_close writes what standard output holds and waits until the pager is left. False when
 * writing failed. */
bool sj_terminal_close(sj_terminal *terminal);

#endif
