#include "collector-server/cli/terminal.h"

#include "collector-server/cli/text_width.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The choices of --color and --no-pager. */
static struct {
    bool always_colour;
    bool never_colour;
    bool has_no_pager;
} choices;

bool sj_terminal_set_colour(const char *when)
{
    choices.always_colour = strcmp(when, "always") == 0;
    choices.never_colour = strcmp(when, "never") == 0;
    return choices.always_colour || choices.never_colour || strcmp(when, "auto") == 0;
}

void sj_terminal_forbid_pager(void)
{
    choices.has_no_pager = true;
}

/* Returns the number in an environment variable; 0 unless it is from 1 to SHRT_MAX. */
static int size_in(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    const long number = text != NULL ? strtol(text, &end, 10) : 0;
    return end != NULL && end != text && *end == '\0' && number > 0 && number <= SHRT_MAX
               ? (int)number
               : 0;
}

static int first_size(int wanted, int measured, int usual)
{
    return wanted != 0 ? wanted : measured != 0 ? measured : usual;
}

static bool knows_sequences(void)
{
    const char *kind = getenv("TERM");
    return kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

void sj_terminal_describe(int fd, sj_terminal *terminal)
{
    struct winsize size = {0};
    *terminal = (sj_terminal){.is_terminal = isatty(fd) != 0};
    terminal->colour = choices.always_colour;
    if (!terminal->is_terminal) {
        terminal->columns = size_in("COLUMNS");
        return;
    }
    if (ioctl(fd, TIOCGWINSZ, &size) != 0) {
        size = (struct winsize){0};
    }
    terminal->columns = first_size(size_in("COLUMNS"), size.ws_col, 80);
    terminal->rows = first_size(size_in("LINES"), size.ws_row, 24);
    const char *no_colour = getenv("NO_COLOR");
    terminal->colour |=
        !choices.never_colour && (no_colour == NULL || no_colour[0] == '\0') && knows_sequences();
}

void sj_terminal_open(sj_terminal *terminal)
{
    sj_terminal_describe(STDOUT_FILENO, terminal);
}

void sj_terminal_begin_line(FILE *file, const sj_terminal *terminal)
{
    if (terminal->is_terminal && knows_sequences()) {
        /* the spaces wrap to a new line if the cursor is not in column 0 */
        fprintf(file, "%*s\r\033[K", terminal->columns, "");
    }
}

/* Returns how many bytes of a line to print in `columns`. Breaks the line before a space if
 * possible. Returns `length` if not even one character fits. */
static size_t fit_words(const char *line, size_t length, int columns)
{
    size_t end = sj_text_cut(line, columns);
    if (end >= length) {
        return length;
    }
    const size_t most = end;
    while (end > 0 && line[end] != ' ') {
        end--;
    }
    return end != 0 ? end : most != 0 ? most : length;
}

/* True if a line is an indented command, which a user copies as one line. */
static bool is_command(const char *line)
{
    static const char program[] = "sojourn ";
    const size_t spaces = strspn(line, " ");
    return spaces != 0 && strncmp(line + spaces, program, strlen(program)) == 0;
}

void sj_terminal_wrap(FILE *file, const sj_terminal *terminal, const char *text, int indent)
{
    const int columns = terminal->columns > 2 * indent ? terminal->columns : SJ_TERMINAL_UNLIMITED;
    while (*text != '\0') {
        size_t left = strcspn(text, "\n");
        int space = is_command(text) ? SJ_TERMINAL_UNLIMITED : columns;
        while (space != SJ_TERMINAL_UNLIMITED && left > (size_t)space) {
            const size_t shown = fit_words(text, left, space);
            if (shown == left) {
                break;
            }
            fprintf(file, "%.*s\n%*s", (int)shown, text, indent, "");
            text += shown;
            left -= shown;
            while (*text == ' ') {
                text++;
                left--;
            }
            space = columns - indent;
        }
        fprintf(file, "%.*s\n", (int)left, text);
        text += left + (text[left] == '\n');
    }
}

/* True if the first word of a command line is an executable path or is found in $PATH. */
static bool can_run(const char *command)
{
    char word[PATH_MAX];
    char file[PATH_MAX];
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(command, " \t"), command);
    if (strchr(word, '/') != NULL) {
        return access(word, X_OK) == 0;
    }
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");
        const int written = snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, word);
        if (written > 0 && (size_t)written < sizeof(file) && access(file, X_OK) == 0) {
            return true;
        }
        path += length + (path[length] == ':');
    }
    return false;
}

static const char *choose_pager(void)
{
    const char *pager = getenv("SOJOURN_PAGER");
    pager = pager != NULL ? pager : getenv("PAGER");
    pager = pager != NULL ? pager : "less";
    return pager[0] == '\0' || strcmp(pager, "cat") == 0 || !can_run(pager) ? NULL : pager;
}

/* Starts the pager with the read end of the pipe as its standard input. Returns its process id, or
 * 0 on failure. */
static pid_t start_pager(const char *pager, const int pipe_ends[2])
{
    /* Default options of less. F: quit if the text fits on the screen. R: show colours. X: leave
     * the text on the screen after quitting. */
    if (setenv("LESS", "FRX", 0) != 0) {
        return 0;
    }
    char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)pager, NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return 0;
    }
    pid_t child = 0;
    if (posix_spawn_file_actions_adddup2(&actions, pipe_ends[0], STDIN_FILENO) != 0 ||
        posix_spawn_file_actions_addclose(&actions, pipe_ends[0]) != 0 ||
        posix_spawn_file_actions_addclose(&actions, pipe_ends[1]) != 0 ||
        posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, environ) != 0) {
        child = 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

void sj_terminal_page(sj_terminal *terminal)
{
    int pipe_ends[2];
    const char *pager = terminal->is_terminal && !choices.has_no_pager ? choose_pager() : NULL;
    if (pager == NULL || terminal->pager != 0 || fflush(stdout) != 0 || pipe(pipe_ends) != 0) {
        return;
    }
    const int screen = dup(STDOUT_FILENO);
    const pid_t child = screen >= 0 ? start_pager(pager, pipe_ends) : 0;
    if (child != 0 && dup2(pipe_ends[1], STDOUT_FILENO) >= 0) {
        terminal->pager = child;
        terminal->screen = screen;
    } else if (screen >= 0) {
        close(screen);
    }
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

bool sj_terminal_close(sj_terminal *terminal)
{
    const bool written = fflush(stdout) == 0 && !ferror(stdout);
    if (terminal->pager != 0) {
        /* Closes the last write end of the pipe, so that the pager sees the end of its input. */
        const bool restored = dup2(terminal->screen, STDOUT_FILENO) >= 0;
        close(terminal->screen);
        if (!restored) {
            close(STDOUT_FILENO);
        }
        while (waitpid(terminal->pager, NULL, 0) < 0 && errno == EINTR) {
        }
        terminal->pager = 0;
    }
    return written;
}
