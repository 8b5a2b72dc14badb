#include "collector-server/http/question_worker.h"

#include "collector-server/http/question.h"
#include "collector-server/query/query.h"
#include "collector-server/query/sums_cache.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIPE = STDIN_FILENO, SUMS_MAX_BYTES = 24 << 20, FIRST_OTHER_FILE = 3 };

/* The connection of the next question. It is opened before the question arrives, because that takes
 * longer than most questions. */
typedef struct reader {
    const char *path;
    sj_sums_cache *sums;
    sqlite3 *next;    /* NULL: not open */
    struct stat file; /* of `next` */
} reader;

/* Opens the next connection. If that fails, take_connection tries again and reports it. */
static void open_ahead(reader *ahead)
{
    sj_error ignored;
    if (stat(ahead->path, &ahead->file) != 0 ||
        sj_query_open_reader(ahead->path, ahead->sums, &ahead->next, &ignored) != SJ_OK) {
        ahead->next = NULL;
    }
}

/* Returns a connection to the file that has the path now, owned by the caller. */
static sj_status take_connection(reader *ahead, sqlite3 **database, sj_error *error)
{
    struct stat now;
    *database = ahead->next;
    ahead->next = NULL;
    if (*database != NULL && stat(ahead->path, &now) == 0 && now.st_dev == ahead->file.st_dev &&
        now.st_ino == ahead->file.st_ino) {
        return SJ_OK;
    }
    sqlite3_close(*database);
    return sj_query_open_reader(ahead->path, ahead->sums, database, error);
}

static bool read_all(void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = read(PIPE, (char *)bytes + done, size - done);
        if (got <= 0) {
            return false; /* the server has ended */
        }
        done += (size_t)got;
    }
    return true;
}

static bool write_all(const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t put = write(PIPE, (const char *)bytes + done, size - done);
        if (put <= 0) {
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

/* Reads the next question, owned by the caller. Returns NULL if the server has ended. */
static json_t *read_question(void)
{
    sj_question_head head;
    if (!read_all(&head, sizeof(head))) {
        return NULL;
    }
    char *text = malloc(head.size);
    json_t *question = text != NULL && read_all(text, head.size)
                           ? json_loadb(text, head.size, JSON_ALLOW_NUL, NULL)
                           : NULL;
    free(text);
    return question;
}

/* Makes the answer as text, owned by the caller. Each question gets its own connection, so that
 * changes by a guard or a statement end with it. */
static sj_status make_result(reader *ahead, const json_t *question,
                             const sj_question_limits *limits, char **text, sj_error *error)
{
    sqlite3 *database = NULL;
    json_t *body = NULL;
    SJ_TRY(take_connection(ahead, &database, error));
    sj_status status =
        sj_question_run(database, question, limits->heap_bytes, NULL, NULL, &body, error);
    sqlite3_close(database);
    if (status == SJ_OK) {
        *text = json_dumps(body, JSON_COMPACT);
        status = *text != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    json_decref(body);
    return status == SJ_ENOMEM
               ? sj_fail(error, SJ_ELIMIT, "the query needs more memory than it may have")
               : status;
}

static bool write_result(sj_status status, const char *text)
{
    const sj_question_head head = {.status = (int32_t)status, .size = (uint32_t)strlen(text)};
    return write_all(&head, sizeof(head)) && write_all(text, head.size);
}

/* Answers one question. Returns false if the server has ended. */
static bool run(reader *ahead, const json_t *question, const sj_question_limits *limits)
{
    sj_error error = {0};
    char *text = NULL;
    const sj_status status = make_result(ahead, question, limits, &text, &error);
    const bool is_written = write_result(status, status == SJ_OK ? text : error.text);
    free(text);
    return is_written;
}

/* Answers each question with an error, because a process without limits must not answer any. */
static void refuse_all(const sj_error *why)
{
    sj_error error;
    json_t *question;
    (void)sj_fail(&error, why->status,
                  "the process for questions cannot be confined, so it answers none: %.150s",
                  why->text);
    while ((question = read_question()) != NULL) {
        json_decref(question);
        (void)write_result(error.status, error.text);
    }
}

void sj_question_worker_main(int argc, char **argv)
{
    enum { PATH = 1, HEAP, DATA, FILE_SIZE, COUNT };
    sj_error error = {0};
    if (argc != COUNT || strcmp(argv[0], SJ_QUESTION_WORKER) != 0) {
        return;
    }
    const sj_question_limits limits = {.heap_bytes = atoll(argv[HEAP]),
                                       .data_bytes = atoll(argv[DATA]),
                                       .file_bytes = atoll(argv[FILE_SIZE])};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close_range(FIRST_OTHER_FILE, ~0U, 0);
    reader ahead = {.path = argv[PATH], .sums = sj_sums_cache_new(SUMS_MAX_BYTES)};
    if (sj_question_confine(&limits, &error) != SJ_OK) {
        refuse_all(&error);
        _exit(1);
    }
    json_t *question;
    bool may_continue = true;
    open_ahead(&ahead);
    while (may_continue && (question = read_question()) != NULL) {
        may_continue = run(&ahead, question, &limits);
        json_decref(question);
        open_ahead(&ahead);
    }
    _exit(0);
}
