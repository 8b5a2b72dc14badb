#include "collector-server/cli/replay.h"

#include "collector-server/cli/function_name.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/text_width.h"
#include "collector-server/export/json_text.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"
#include "proto/block/block.h"
#include "schema/queries/cli/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FOLLOW_PAUSE_NS = 200 * 1000 * 1000 };
enum { DURATION_BYTES = 1 + SJ_DURATION_TEXT_BYTES };
enum { FIRST_STREAMS = 16, MAX_LEVELS = 40 };
/* Widths in columns of the terminal. FIGURES_WIDTH: all before the name, without the thread. */
enum { FIGURES_WIDTH = 29, THREAD_WIDTH = 7, LEAST_NAME = 15 };

typedef enum call_column {
    CALL_ID,
    CALL_START,
    CALL_DURATION,
    CALL_DEPTH,
    CALL_ENDING,
    CALL_NAME,
    CALL_FLAGS
} call_column;

/* A stream whose calls are read in the order of their entries. */
typedef struct replay_stream {
    int64_t stream_id, thread, first_enter_ns;
    sqlite3_stmt *calls; /* its row is the next call; NULL: not begun, or no more calls */
    int64_t next_call;   /* calls with a smaller id were already printed */
    bool begun;          /* `calls` was prepared */
    bool printed;        /* a call of this stream was printed */
} replay_stream;

typedef struct replay {
    sqlite3 *database;
    const sj_replay_request *request;
    const sj_terminal *terminal;
    replay_stream *streams;        /* sorted by first_enter_ns */
    size_t count, capacity, begun; /* of `streams` */
    sqlite3_stmt *gaps;            /* NULL: no more gaps */
    sqlite3_stmt *values;          /* the values of one call; NULL: the session has none */
    int64_t gaps_from_ns;          /* gaps that begin earlier were already printed */
    int64_t objects;               /* number of printed JSON objects */
    int64_t printed;               /* number of printed calls */
    int result;                    /* SQLITE_OK, or the latest error code of SQLite */
} replay;

static int prepare(replay *self, const char *sql, sqlite3_stmt **statement)
{
    const int result = sqlite3_prepare_v2(self->database, sql, -1, statement, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(*statement, 1, self->request->session_id);
        sqlite3_bind_int64(*statement, 2, self->request->from_ns);
        sqlite3_bind_int64(*statement, 3, self->request->to_ns);
    }
    return result;
}

/* Moves a statement to its next row. After the last row or an error, finalizes the statement and
 * sets it to NULL. */
static void step(replay *self, sqlite3_stmt **statement)
{
    const int result = sqlite3_step(*statement);
    if (result != SQLITE_ROW) {
        self->result = result != SQLITE_DONE ? result : self->result;
        sqlite3_finalize(*statement);
        *statement = NULL;
    }
}

static bool add_stream(replay *self, sqlite3_stmt *row)
{
    for (size_t i = 0; self->request->follow && i < self->count; i++) {
        if (self->streams[i].stream_id == sqlite3_column_int64(row, 0)) {
            return true;
        }
    }
    if (self->count == self->capacity) {
        const size_t capacity = self->capacity == 0 ? FIRST_STREAMS : self->capacity * 2;
        replay_stream *grown = reallocarray(self->streams, capacity, sizeof(*grown));
        if (grown == NULL) {
            self->result = SQLITE_NOMEM;
            return false;
        }
        self->streams = grown;
        self->capacity = capacity;
    }
    self->streams[self->count++] = (replay_stream){.stream_id = sqlite3_column_int64(row, 0),
                                                   .thread = sqlite3_column_int64(row, 1),
                                                   .first_enter_ns = sqlite3_column_int64(row, 2)};
    return true;
}

static void find_streams(replay *self)
{
    sqlite3_stmt *row = NULL;
    self->result = prepare(self, sj_replay_streams_sql, &row);
    if (self->result != SQLITE_OK) {
        return;
    }
    sqlite3_bind_text(row, 4, self->request->thread, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 5, self->request->first_call);
    sqlite3_bind_int64(row, 6, self->request->last_call);
    step(self, &row);
    while (row != NULL && add_stream(self, row)) {
        step(self, &row);
    }
    sqlite3_finalize(row);
}

static void begin_stream(replay *self, replay_stream *stream)
{
    stream->begun = true;
    const int result = prepare(self, sj_replay_calls_sql, &stream->calls);
    if (result != SQLITE_OK) {
        self->result = result;
        return;
    }
    sqlite3_bind_int64(stream->calls, 4, stream->stream_id);
    const int64_t first = self->request->first_call;
    sqlite3_bind_int64(stream->calls, 5, stream->next_call > first ? stream->next_call : first);
    sqlite3_bind_int64(stream->calls, 6, self->request->last_call);
    step(self, &stream->calls);
}

/* Returns the stream whose next call is the earliest, or NULL if there are no more calls. Begins a
 * stream only when its first call may be the earliest, so that few statements are open. */
static replay_stream *first_stream(replay *self)
{
    replay_stream *first = NULL;
    int64_t start = INT64_MAX;
    for (size_t i = 0; i < self->count && self->result == SQLITE_OK; i++) {
        replay_stream *stream = &self->streams[i];
        if (!stream->begun && stream->first_enter_ns <= start) {
            begin_stream(self, stream);
        }
        if (stream->calls != NULL && sqlite3_column_int64(stream->calls, CALL_START) < start) {
            first = stream;
            start = sqlite3_column_int64(stream->calls, CALL_START);
        }
    }
    return first;
}

/* Prints a name, indented by its depth. Cuts it so that `extra` columns of the line remain. */
static void print_name(const replay *self, const char *name, int64_t depth, int extra)
{
    char fitted[SJ_FUNCTION_NAME_BYTES];
    const int columns = self->terminal->columns;
    const int left = columns - FIGURES_WIDTH - (self->count > 1 ? THREAD_WIDTH : 0) - extra;
    int most = columns == SJ_TERMINAL_UNLIMITED ? MAX_LEVELS : (left - LEAST_NAME) / 2;
    most = most < 0 ? 0 : most < MAX_LEVELS ? most : MAX_LEVELS;
    int used = 2 * (depth > most ? most : (int)depth);
    printf("%*s", used, "");
    if (depth > most) {
        used += printf("(%lld) ", (long long)depth);
    }
    const int space = left - used < LEAST_NAME ? LEAST_NAME : left - used;
    const bool is_uncut = columns == SJ_TERMINAL_UNLIMITED || self->request->wide;
    fputs(sj_function_name_fit(name != NULL ? name : "(unknown function)", is_uncut ? 0 : space,
                               fitted),
          stdout);
}

static void print_figures(const replay *self, const char *sign, int64_t start_ns,
                          const char *duration, int64_t thread)
{
    printf("%s %14.9f %10s ", sign, (double)start_ns / 1e9, duration);
    if (self->count > 1) {
        char text[32];
        snprintf(text, sizeof(text), "[%lld]", (long long)thread);
        printf("%*s ", THREAD_WIDTH - 1, text);
    }
    putchar(' ');
}

static void open_values(replay *self)
{
    sqlite3_stmt *row = NULL;
    bool has_values = false;
    if (sqlite3_prepare_v2(self->database,
                           "SELECT EXISTS (SELECT 1 FROM arguments WHERE session_id = ?1)", -1,
                           &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, self->request->session_id);
        has_values = sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int(row, 0) != 0;
    }
    sqlite3_finalize(row);
    if (has_values && self->values == NULL) {
        self->result =
            sqlite3_prepare_v2(self->database, sj_replay_values_sql, -1, &self->values, NULL);
    }
}

/* Returns the stored values of a call as text, valid until the next call of this function. Returns
 * NULL if there are none. */
static const char *read_values(replay *self, int64_t call_id)
{
    if (self->values == NULL) {
        return NULL;
    }
    sqlite3_reset(self->values);
    sqlite3_bind_int64(self->values, 1, call_id);
    const char *text = sqlite3_step(self->values) == SQLITE_ROW
                           ? (const char *)sqlite3_column_text(self->values, 0)
                           : NULL;
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static void begin_object(replay *self, const char *type, int64_t start_ns, int64_t thread)
{
    printf("%s{\"type\":\"%s\",\"start_ns\":%lld,\"thread\":%lld",
           self->objects++ == 0 ? SJ_JSON_ROWS_BEGIN "\n" : ",\n", type, (long long)start_ns,
           (long long)thread);
}

static void print_text_member(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    if (text == NULL) {
        fputs("null", stdout);
    } else {
        sj_json_text(stdout, text);
    }
}

static void print_number_member(const char *name, sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        printf(",\"%s\":null", name);
    } else {
        printf(",\"%s\":%lld", name, (long long)sqlite3_column_int64(row, column));
    }
}

static bool is_estimate(sqlite3_stmt *row, int flags)
{
    return (sqlite3_column_int64(row, flags) & SJ_CALL_UNTIMED) != 0;
}

/* Writes the duration in the column `duration` to `text`, with "~" before an estimate. Does not
 * change `text` if the duration is NULL. */
static void format_duration(sqlite3_stmt *row, int duration, int flags, char text[DURATION_BYTES])
{
    if (sqlite3_column_type(row, duration) != SQLITE_NULL) {
        text[0] = '~';
        sj_format_duration(sqlite3_column_int64(row, duration), text + is_estimate(row, flags));
    }
}

static void print_call_object(replay *self, const replay_stream *stream)
{
    sqlite3_stmt *row = stream->calls;
    begin_object(self, "call", sqlite3_column_int64(row, CALL_START), stream->thread);
    printf(",\"call_id\":\"%lld\"", (long long)sqlite3_column_int64(row, CALL_ID));
    print_number_member("depth", row, CALL_DEPTH);
    print_number_member("duration_ns", row, CALL_DURATION);
    print_text_member("ending", (const char *)sqlite3_column_text(row, CALL_ENDING));
    print_text_member("function", (const char *)sqlite3_column_text(row, CALL_NAME));
    print_text_member("values", read_values(self, sqlite3_column_int64(row, CALL_ID)));
    printf(",\"is_estimate\":%s", is_estimate(row, CALL_FLAGS) ? "true" : "false");
    putchar('}');
}

/* Prints the callers of a call, which are the calls that were open at its entry. */
static void print_callers(replay *self, const replay_stream *stream, int64_t call_id)
{
    sqlite3_stmt *row = NULL;
    const int result = sqlite3_prepare_v2(
        self->database,
        "SELECT c.start_ns, c.duration_ns, c.depth, f.name, c.flags FROM ancestors(?1) AS c "
        "LEFT JOIN functions AS f ON f.function_id = c.function_id ORDER BY c.depth",
        -1, &row, NULL);
    if (result != SQLITE_OK) {
        self->result = result;
        return;
    }
    sqlite3_bind_int64(row, 1, call_id);
    for (step(self, &row); row != NULL; step(self, &row)) {
        char text[DURATION_BYTES] = "open";
        format_duration(row, 1, 4, text);
        fputs(self->terminal->colour ? "\033[2m" : "", stdout);
        print_figures(self, "^", sqlite3_column_int64(row, 0), text, stream->thread);
        print_name(self, (const char *)sqlite3_column_text(row, 3), sqlite3_column_int64(row, 2),
                   0);
        puts(self->terminal->colour ? "\033[0m" : "");
    }
}

/* Writes the values of a call to `text`. On a terminal, cuts them to a third of a line unless
 * --wide is given. Returns the width in columns. */
static int fit_values(replay *self, int64_t call_id, char text[SJ_FUNCTION_NAME_BYTES])
{
    const char *values = read_values(self, call_id);
    const int space = self->request->wide ? 0 : self->terminal->columns / 3;
    text[0] = '\0';
    if (values == NULL) {
        return 0;
    }
    sj_function_name_fit(values, 0, text);
    if (space != 0 && sj_text_width(text) > space) {
        snprintf(text + sj_text_cut(text, space - 1), 4, "%s", sj_text_ellipsis());
    }
    return sj_text_width(text);
}

static void print_call_line(replay *self, replay_stream *stream)
{
    sqlite3_stmt *row = stream->calls;
    const int64_t call_id = sqlite3_column_int64(row, CALL_ID);
    char text[DURATION_BYTES] = "open";
    if (!stream->printed && sqlite3_column_int64(row, CALL_DEPTH) > 0) {
        print_callers(self, stream, call_id);
    }
    stream->printed = true;
    format_duration(row, CALL_DURATION, CALL_FLAGS, text);
    const bool marked = call_id == self->request->marked_call;
    const char *ending = (const char *)sqlite3_column_text(row, CALL_ENDING);
    const bool is_usual =
        ending == NULL || strcmp(ending, "returned") == 0 || strcmp(ending, "open") == 0;
    fputs(marked && self->terminal->colour ? "\033[1;33m" : "", stdout);
    print_figures(self, marked ? ">" : " ", sqlite3_column_int64(row, CALL_START), text,
                  stream->thread);
    char values[SJ_FUNCTION_NAME_BYTES];
    const int extra = fit_values(self, call_id, values) + (is_usual ? 0 : (int)strlen(ending) + 3);
    print_name(self, (const char *)sqlite3_column_text(row, CALL_NAME),
               sqlite3_column_int64(row, CALL_DEPTH), extra);
    fputs(values, stdout);
    if (!is_usual) {
        printf(" (%s)", ending);
    }
    puts(marked && self->terminal->colour ? "\033[0m" : "");
}

static void print_call(replay *self, replay_stream *stream)
{
    stream->next_call = sqlite3_column_int64(stream->calls, CALL_ID) + 1;
    if (self->request->json) {
        print_call_object(self, stream);
    } else {
        print_call_line(self, stream);
    }
    self->printed++;
    step(self, &stream->calls);
}

/* True if the current gap is a wait: the thread waited for the recorder, and no calls were lost. */
static bool is_wait(const replay *self)
{
    const char *reason = (const char *)sqlite3_column_text(self->gaps, 3);
    return reason != NULL && strcmp(reason, "waited") == 0;
}

static void print_gap_object(replay *self)
{
    begin_object(self, is_wait(self) ? "wait" : "gap", sqlite3_column_int64(self->gaps, 0),
                 sqlite3_column_int64(self->gaps, 4));
    print_number_member("duration_ns", self->gaps, 1);
    print_number_member("lost_calls", self->gaps, 2);
    print_text_member("reason", (const char *)sqlite3_column_text(self->gaps, 3));
    putchar('}');
}

static void print_gap_line(replay *self)
{
    char text[SJ_DURATION_TEXT_BYTES];
    const bool waited = is_wait(self);
    fputs(!self->terminal->colour ? "" : waited ? "\033[2m" : "\033[1;31m", stdout);
    print_figures(self, waited ? "w" : "!", sqlite3_column_int64(self->gaps, 0),
                  sj_format_duration(sqlite3_column_int64(self->gaps, 1), text),
                  sqlite3_column_int64(self->gaps, 4));
    if (waited) {
        fputs("waited for the recorder; nothing was lost", stdout);
    } else {
        printf("gap: %s lost (%s)", SJ_COUNTED(sqlite3_column_int64(self->gaps, 2), "call"),
               (const char *)sqlite3_column_text(self->gaps, 3));
    }
    puts(self->terminal->colour ? "\033[0m" : "");
}

/* Prints the gaps that begin at `until_ns` or before. */
static void print_gaps(replay *self, int64_t until_ns)
{
    while (self->gaps != NULL && sqlite3_column_int64(self->gaps, 0) <= until_ns) {
        self->gaps_from_ns = sqlite3_column_int64(self->gaps, 0) + 1;
        if (self->request->json) {
            print_gap_object(self);
            step(self, &self->gaps);
            continue;
        }
        print_gap_line(self);
        step(self, &self->gaps);
    }
}

static void open_gaps(replay *self)
{
    const int result = prepare(self, sj_replay_gaps_sql, &self->gaps);
    if (result != SQLITE_OK) {
        self->result = result;
        return;
    }
    sqlite3_bind_int64(self->gaps, 4, self->request->first_call);
    sqlite3_bind_int64(self->gaps, 5, self->request->last_call);
    sqlite3_bind_text(self->gaps, 6, self->request->thread, -1, SQLITE_STATIC);
    if (self->gaps_from_ns > self->request->from_ns) {
        sqlite3_bind_int64(self->gaps, 2, self->gaps_from_ns);
    }
    step(self, &self->gaps);
}

static void print_heading(const replay *self)
{
    printf("  %14s %10s  %sfunction\n", "entered, s", "duration", self->count > 1 ? "thread " : "");
}

static void print_all(replay *self)
{
    const int64_t count = self->request->count;
    replay_stream *stream = first_stream(self);
    if (stream != NULL && !self->request->json && self->printed == 0) {
        print_heading(self);
    }
    while (stream != NULL && (count < 0 || self->printed < count) && !ferror(stdout)) {
        print_gaps(self, sqlite3_column_int64(stream->calls, CALL_START));
        print_call(self, stream);
        stream = first_stream(self);
    }
    if (stream == NULL && self->printed != 0 && self->result == SQLITE_OK) {
        print_gaps(self, self->request->marked_call != 0 ? INT64_MIN : INT64_MAX);
    } else if (stream != NULL && !self->request->json) {
        printf("\nmore calls follow from %.9fs on; --all shows them\n",
               (double)sqlite3_column_int64(stream->calls, CALL_START) / 1e9);
    }
}

/* True if the session is still being recorded. Call this before the stored calls are read. In the
 * other order, calls that are stored between the two would be missed. */
static bool is_recorded(replay *self)
{
    sqlite3_stmt *row = NULL;
    bool is = false;
    if (sqlite3_prepare_v2(self->database,
                           "SELECT state = 'recording' FROM sessions WHERE session_id = ?1", -1,
                           &row, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(row, 1, self->request->session_id);
        is = sqlite3_step(row) == SQLITE_ROW && sqlite3_column_int(row, 0) != 0;
    }
    sqlite3_finalize(row);
    return is;
}

/* Prints the stored calls that were not printed yet. With --follow, ends all reads of the database,
 * so that the next round sees new rows. */
static void print_round(replay *self)
{
    find_streams(self);
    open_values(self);
    if (self->result == SQLITE_OK && self->count != 0) {
        open_gaps(self);
        print_all(self);
    }
    sqlite3_finalize(self->gaps);
    self->gaps = NULL;
    if (self->values != NULL) {
        sqlite3_reset(self->values);
    }
    for (size_t i = 0; i < self->count && self->request->follow; i++) {
        sqlite3_finalize(self->streams[i].calls);
        self->streams[i].calls = NULL;
        self->streams[i].begun = false;
    }
}

sj_status sj_replay_print(sqlite3 *database, const sj_replay_request *request,
                          const sj_terminal *terminal, sj_error *error)
{
    replay self = {
        .database = database, .request = request, .terminal = terminal, .gaps_from_ns = INT64_MIN};
    bool may_continue = true;
    while (may_continue && self.result == SQLITE_OK && !ferror(stdout)) {
        may_continue = request->follow && is_recorded(&self);
        print_round(&self);
        if (may_continue) {
            const struct timespec pause = {.tv_nsec = FOLLOW_PAUSE_NS};
            fflush(stdout);
            nanosleep(&pause, NULL);
        }
    }
    if (request->json && self.result == SQLITE_OK &&
        !(self.count == 0 && request->thread != NULL)) {
        fputs(self.objects == 0 ? SJ_JSON_ROWS_BEGIN SJ_JSON_ROWS_END : SJ_JSON_ROWS_END, stdout);
    }
    sj_status status = SJ_OK;
    if (self.result != SQLITE_OK) {
        status = sj_fail(error, SJ_EIO, "%s", sqlite3_errstr(self.result));
    } else if (self.count == 0 && request->thread != NULL) {
        status = sj_fail(error, SJ_ENOTFOUND,
                         "no thread '%s' in this window; `sojourn sql "
                         "\"SELECT number, tid, name FROM threads\"` lists them",
                         request->thread);
    } else if (self.printed == 0 && !request->json) {
        status = sj_fail(error, SJ_ENOTFOUND, "no call was entered in this window");
    }
    for (size_t i = 0; i < self.count; i++) {
        sqlite3_finalize(self.streams[i].calls);
    }
    sqlite3_finalize(self.gaps);
    sqlite3_finalize(self.values);
    free(self.streams);
    return status;
}
