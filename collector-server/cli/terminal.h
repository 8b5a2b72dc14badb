/* Standard output on a terminal: its size, whether colours are wanted, and a pager. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TERMINAL_H
#define SJ_COLLECTOR_SERVER_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Number of columns of output that is not a terminal. Lines are as long as necessary. */
#define SJ_TERMINAL_UNLIMITED 0

typedef struct sj_terminal {
    bool is_terminal;
    bool colour; /* a terminal that supports colours, without NO_COLOR */
    int columns; /* SJ_TERMINAL_UNLIMITED: not a terminal */
    int rows;    /* SJ_TERMINAL_UNLIMITED: not a terminal */
    pid_t pager; /* process of the pager; 0: none runs */
    int screen;  /* with a pager: descriptor of the terminal that standard output was */
} sj_terminal;

/* Describes standard output. $COLUMNS and $LINES override the terminal's own size. A terminal
 * without a size has 80 columns and 24 rows. Does not block. */
void sj_terminal_open(sj_terminal *terminal);

/* Describes another file descriptor in the same way. */
void sj_terminal_describe(int fd, sj_terminal *terminal);

/* Moves to column 0, on a new line if the cursor is not there already. Another program may have
 * left the cursor anywhere. Prints one line of spaces and a carriage return. */
void sj_terminal_begin_line(FILE *file, const sj_terminal *terminal);

/* Writes text. A line that is wider than the terminal continues on the next line after `indent`
 * spaces. If the terminal is narrower than twice `indent`, the text is not wrapped. */
void sj_terminal_wrap(FILE *file, const sj_terminal *terminal, const char *text, int indent);

/* Sends standard output through $SOJOURN_PAGER, $PAGER or less until sj_terminal_close. Does
 * nothing without a terminal, if the variable is empty or "cat", or if the program does not exist.
 * One thread at a time. */
void sj_terminal_page(sj_terminal *terminal);

/* Flushes standard output and waits until the user leaves the pager. Returns false if a write
 * failed. */
bool sj_terminal_close(sj_terminal *terminal);

#endif
