/* Standard output on a terminal: its size, whether colours are wanted, and a pager. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TERMINAL_H
#define SJ_COLLECTOR_SERVER_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The number of columns and rows of an output that is not a terminal. Lines may have any length, if
 * $COLUMNS does not limit them. */
#define SJ_TERMINAL_UNLIMITED 0

typedef struct sj_terminal {
    bool is_terminal;
    bool colour; /* a terminal that supports colours, without NO_COLOR; or --color decides */
    int columns; /* SJ_TERMINAL_UNLIMITED: not a terminal, and $COLUMNS is not set */
    int rows;    /* SJ_TERMINAL_UNLIMITED: not a terminal */
    pid_t pager; /* process of the pager; 0: none runs */
    int screen;  /* while a pager runs: a descriptor of the original standard output */
} sj_terminal;

/* Sets the colours of all terminals: "always", "never", or "auto" (the default). Returns false for
 * other words. Not thread-safe. */
bool sj_terminal_set_colour(const char *when);

/* Makes sj_terminal_page do nothing. Not thread-safe. */
void sj_terminal_forbid_pager(void);

/* Writes the properties of standard output. $COLUMNS and $LINES override the terminal's own size. A
 * terminal without a size has 80 columns and 24 rows. Does not block. */
void sj_terminal_open(sj_terminal *terminal);

/* Writes the properties of `fd` like sj_terminal_open. */
void sj_terminal_describe(int fd, sj_terminal *terminal);

/* Moves the cursor to column 0, on a new line if the cursor is in another column. To do so, prints
 * one line of spaces and a carriage return. Does nothing if the output is not a terminal or does
 * not know escape sequences. */
void sj_terminal_begin_line(FILE *file, const sj_terminal *terminal);

/* Writes text. A line that is wider than the terminal continues on the next line after `indent`
 * spaces. Does not wrap if the terminal has at most 2 * `indent` columns. */
void sj_terminal_wrap(FILE *file, const sj_terminal *terminal, const char *text, int indent);

/* Sends standard output through $SOJOURN_PAGER, else $PAGER, else less, until sj_terminal_close.
 * Does nothing if standard output is not a terminal, the variable is empty or "cat", or the program
 * does not exist. Not thread-safe. */
void sj_terminal_page(sj_terminal *terminal);

/* Flushes standard output and waits until the user leaves the pager. Returns false if a write
 * failed. */
bool sj_terminal_close(sj_terminal *terminal);

#endif
