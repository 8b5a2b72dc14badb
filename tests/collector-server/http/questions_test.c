/* Processes that answer questions: what they may use, and what happens to those that use more. */
#include "collector-server/http/question_pool.h"
#include "collector-server/http/question_worker.h"
#include "tests/collector-server/http/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MIB = 1 << 20, QUICK_MS = 200, PATIENT_MS = 60000 };

/* The limits are small, so that a question exceeds them soon. */
static const sj_question_limits small = {
    .heap_bytes = 96 * MIB, .data_bytes = 256 * MIB, .file_bytes = 2 * MIB};

static char database_path[64];
static sj_question_pool *pool;

static int start_pool(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "http_questions_test.%d.db", (int)getpid());
    sqlite3_close(fixture_create(database_path, 0));
    return sj_question_pool_new(database_path, &small, &pool, &error) == SJ_OK ? 0 : -1;
}

static int stop_pool(void **state)
{
    (void)state;
    sj_question_pool_free(pool);
    return unlink(database_path);
}

/* Runs `sql`. `said` receives the answer or the error's text. */
static sj_status ask_pool(sj_question_pool *asked, const char *sql, int time_ms,
                          bool (*is_wanted)(void *), char *said, size_t size)
{
    sj_error error = {0};
    char *reply = NULL;
    json_t *question = json_pack("{ss sI sI s{}}", "sql", sql, "rows", (json_int_t)20000, "ms",
                                 (json_int_t)time_ms, "values");
    const sj_status status = sj_question_pool_ask(asked, question, is_wanted, NULL, &reply, &error);
    snprintf(said, size, "%s", status == SJ_OK ? reply : error.text);
    free(reply);
    json_decref(question);
    return status;
}

static sj_status ask(const char *sql, int time_ms, bool (*is_wanted)(void *), char *said,
                     size_t size)
{
    return ask_pool(pool, sql, time_ms, is_wanted, said, size);
}

static void assert_still_well(void)
{
    char said[512];
    assert_int_equal(
        ask("SELECT count(*) AS n FROM sessions", PATIENT_MS, NULL, said, sizeof(said)), SJ_OK);
    assert_non_null(strstr(said, "\"rows\":[[3]]"));
}

/* Returns the first child of this process, or 0 if there is none. */
static pid_t find_worker(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    (void)!fscanf(file, "%d", &pid);
    fclose(file);
    return pid;
}

static void one_process_answers_one_question_after_the_other(void **state)
{
    (void)state;
    assert_still_well();
    const pid_t first = find_worker();
    assert_true(first > 0);
    for (int i = 0; i < 3; i++) {
        assert_still_well();
    }
    assert_int_equal(find_worker(), first);
}

/* True if a process has the database open. */
static bool has_database_open(pid_t pid)
{
    char folder[64];
    char link[128];
    char target[PATH_MAX];
    bool is_open = false;
    snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (const struct dirent *entry; !is_open && (entry = readdir(files)) != NULL;) {
        snprintf(link, sizeof(link), "%s/%.20s", folder, entry->d_name);
        const ssize_t size = readlink(link, target, sizeof(target) - 1);
        target[size > 0 ? size : 0] = '\0';
        const char *name = strrchr(target, '/');
        is_open = name != NULL && strcmp(name + 1, database_path) == 0;
    }
    closedir(files);
    return is_open;
}

static void wait_for_open_database(void)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int waited_ms = 0; !has_database_open(find_worker()); waited_ms += 5) {
        assert_true(waited_ms < PATIENT_MS);
        nanosleep(&pause, NULL);
    }
}

/* Opening a connection takes longer than most questions, so no question waits for it. */
static void a_waiting_process_has_opened_its_next_connection(void **state)
{
    (void)state;
    assert_still_well();
    wait_for_open_database();
    assert_still_well();
}

static void a_waiting_process_reads_the_file_that_replaced_the_database(void **state)
{
    (void)state;
    char said[512];
    char other[80];
    snprintf(other, sizeof(other), "other_%s", database_path);
    sqlite3 *database = fixture_create(other, 0);
    fixture_add_session(database, "fourth", 1);
    sqlite3_close(database);
    assert_still_well();
    wait_for_open_database();
    assert_int_equal(rename(other, database_path), 0);
    assert_int_equal(
        ask("SELECT count(*) AS n FROM sessions", PATIENT_MS, NULL, said, sizeof(said)), SJ_OK);
    assert_non_null(strstr(said, "\"rows\":[[4]]"));
}

/* Each question would use more than a machine has, or would never end. */
static void hostile_questions_end_with_a_sentence(void **state)
{
    (void)state;
    static const char numbers[] =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) ";
    static const struct {
        const char *sql;
        sj_status status;
        const char *said;
        int time_ms;
    } questions[] = {
        {"SELECT json_group_array(a.i) FROM n a, n b", SJ_ELIMIT, "more memory than it may have",
         PATIENT_MS},
        {"SELECT a.i FROM n a, n b WHERE b.i < 9 ORDER BY randomblob(200)", SJ_ELIMIT,
         "temporary files", PATIENT_MS},
        {"SELECT count(*) FROM n a, n b, n c", SJ_ETIMEDOUT, "limit of 200 ms", QUICK_MS},
        {"SELECT * FROM (WITH RECURSIVE e(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM e) SELECT * "
         "FROM e) WHERE i < 0",
         SJ_ETIMEDOUT, "limit of 200 ms", QUICK_MS},
        {"SELECT * FROM (WITH RECURSIVE e(t) AS (SELECT 'x' UNION SELECT t || t FROM e) SELECT * "
         "FROM e) WHERE t = ''",
         SJ_ELIMIT, "", PATIENT_MS}};
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        char sql[512];
        char said[512];
        snprintf(sql, sizeof(sql), "%s%s", numbers, questions[i].sql);
        const sj_status status = ask(sql, questions[i].time_ms, NULL, said, sizeof(said));
        if (status != questions[i].status || strstr(said, questions[i].said) == NULL) {
            fail_msg("%s gave %d: %s", questions[i].sql, status, said);
        }
        assert_still_well();
    }
}

/* Each file is small, but all together would not be. */
static void temporary_files_are_few(void **state)
{
    enum { TABLES = 16, SQL_BYTES = 4096 };
    const sj_question_limits limits = {
        .heap_bytes = 96 * MIB, .data_bytes = 256 * MIB, .file_bytes = 16 * MIB};
    sj_question_pool *own = NULL;
    sj_error error;
    char said[512];
    char with[SQL_BYTES] = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT "
                           "1000)";
    char from[SQL_BYTES / 4] = "";
    char sql[2 * SQL_BYTES];
    (void)state;
    for (int i = 0; i < TABLES; i++) {
        snprintf(with + strlen(with), sizeof(with) - strlen(with),
                 ", t%d AS MATERIALIZED (SELECT i, zeroblob(3000) AS z FROM n)", i);
        snprintf(from + strlen(from), sizeof(from) - strlen(from), "%st%d", i == 0 ? "" : ", ", i);
    }
    snprintf(sql, sizeof(sql), "%s SELECT length(t0.z) FROM %s LIMIT 1", with, from);
    assert_int_equal(sj_question_pool_new(database_path, &limits, &own, &error), SJ_OK);
    assert_int_equal(ask_pool(own, sql, PATIENT_MS, NULL, said, sizeof(said)), SJ_ELIMIT);
    assert_non_null(strstr(said, "more temporary files"));
    assert_int_equal(ask_pool(own, "SELECT 1", PATIENT_MS, NULL, said, sizeof(said)), SJ_OK);
    sj_question_pool_free(own);
}

static bool kill_worker(void *context)
{
    (void)context;
    return kill(find_worker(), SIGKILL) == 0;
}

/* The kernel kills a process this way when memory runs out. */
static void a_process_that_ends_is_replaced(void **state)
{
    (void)state;
    siginfo_t ended;
    char said[512];
    assert_still_well();
    const pid_t before = find_worker();
    assert_int_equal(ask("WITH RECURSIVE e(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM e) SELECT "
                         "count(*) FROM e",
                         PATIENT_MS, kill_worker, said, sizeof(said)),
                     SJ_ELIMIT);
    assert_non_null(strstr(said, "has ended (signal 9)"));
    const pid_t idle = find_worker();
    assert_int_not_equal(idle, before);
    assert_int_equal(kill(idle, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)idle, &ended, WEXITED | WNOWAIT), 0);
    assert_still_well(); /* no other question was harmed */
    assert_int_not_equal(find_worker(), idle);
}

/* Asks under a filter that forbids to limit files. Returns the number of the step that failed, or
 * 0. */
static int ask_unconfinable(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RLIMIT_NOFILE, 0, 1), /* sanitizers set other limits */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    sj_question_pool *own = NULL;
    sj_error error;
    char said[512];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ||
        sj_question_pool_new(database_path, &small, &own, &error) != SJ_OK) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if (ask_pool(own, "SELECT 1", PATIENT_MS, NULL, said, sizeof(said)) != SJ_EIO ||
            strstr(said, "cannot be confined") == NULL) {
            return 2 + i;
        }
    }
    sj_question_pool_free(own);
    return 0;
}

static void a_worker_that_cannot_be_confined_reports_it(void **state)
{
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(ask_unconfinable());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_process_that_does_not_answer_is_killed(void **state)
{
    (void)state;
    char said[512];
    assert_still_well();
    const pid_t before = find_worker();
    assert_int_equal(kill(before, SIGSTOP), 0);
    assert_int_equal(ask("SELECT 1", 1, NULL, said, sizeof(said)), SJ_ETIMEDOUT);
    assert_still_well();
    assert_int_not_equal(find_worker(), before);
    assert_int_equal(kill(before, 0), -1);
}

static bool no_client_waits(void *context)
{
    (void)context;
    return false;
}

static void a_question_that_nobody_waits_for_ends(void **state)
{
    (void)state;
    char said[512];
    assert_int_equal(ask("WITH RECURSIVE e(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM e) SELECT "
                         "count(*) FROM e",
                         PATIENT_MS, no_client_waits, said, sizeof(said)),
                     SJ_ECLOSED);
    assert_still_well();
}

/* The limit of processor time is the question's 60 s, plus less than 60 s for what the process used
 * before. */
static void processor_time_is_limited(void **state)
{
    (void)state;
    struct rlimit limit;
    assert_still_well();
    assert_int_equal(prlimit(find_worker(), RLIMIT_CPU, NULL, &limit), 0);
    assert_true(limit.rlim_cur >= PATIENT_MS / 1000 && limit.rlim_cur < PATIENT_MS / 1000 + 60);
    assert_int_equal(prlimit(find_worker(), RLIMIT_FSIZE, NULL, &limit), 0);
    assert_int_equal(limit.rlim_cur, small.file_bytes);
}

static void a_worker_has_a_lower_priority_than_the_server(void **state)
{
    enum { LOWEST = 19 };
    (void)state;
    const int own = getpriority(PRIO_PROCESS, 0);
    const int wanted = own + SJ_QUESTION_NICE < LOWEST ? own + SJ_QUESTION_NICE : LOWEST;
    assert_still_well();
    assert_int_equal(getpriority(PRIO_PROCESS, (id_t)find_worker()), wanted);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), own);
}

static bool is_refused(long result)
{
    return result < 0 && errno == EPERM;
}

/* Returns the number of the first step that a confined process can do but should not, or cannot but
 * should, or 0. */
static int try_what_is_forbidden(void)
{
    sj_error error;
    char *none[] = {NULL};
    struct rlimit more = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    if (sj_question_confine(&small, &error) != SJ_OK) {
        return 1;
    }
    const bool forbidden[] = {is_refused(socket(AF_INET, SOCK_STREAM, 0)),
                              is_refused(socket(AF_UNIX, SOCK_STREAM, 0)),
                              is_refused(execve("/bin/true", none, none)),
                              is_refused(fork()),
                              is_refused(kill(getppid(), 0)),
                              is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)),
                              is_refused(rename("a", "b")),
                              is_refused(mkdir("a", 0700)),
                              is_refused(setrlimit(RLIMIT_FSIZE, &more)),
                              is_refused(chdir("/"))};
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (!forbidden[i]) {
            return 2 + (int)i;
        }
    }
    return open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0 ? 0 : 99;
}

static void a_confined_process_has_files_and_memory_only(void **state)
{
    (void)state;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(try_what_is_forbidden());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The environment of a program whose main() does not begin with sj_question_worker_main. */
#define FORGETFUL "SJ_TEST_QUESTIONS_FORGETFUL"

/* Its exit codes as a worker, if it was refused a pool, or got one. */
enum { REFUSED_A_POOL = 41, GOT_A_POOL = 42 };

static int run_forgetful_worker(void)
{
    sj_error error;
    sj_question_pool *further = NULL;
    const sj_status status = sj_question_pool_new(database_path, &small, &further, &error);
    sj_question_pool_free(further);
    return status == SJ_EPERM ? REFUSED_A_POOL : GOT_A_POOL;
}

static void a_worker_starts_no_workers(void **state)
{
    (void)state;
    sj_error error;
    char said[512];
    char wanted[32];
    sj_question_pool *started = NULL;
    assert_int_equal(setenv(FORGETFUL, "1", 1), 0);
    assert_int_equal(sj_question_pool_new(database_path, &small, &started, &error), SJ_OK);
    assert_int_equal(ask_pool(started, "select 1", PATIENT_MS, NULL, said, sizeof(said)),
                     SJ_ELIMIT);
    assert_int_equal(unsetenv(FORGETFUL), 0);
    sj_question_pool_free(started);
    snprintf(wanted, sizeof(wanted), "(exit code %d)", REFUSED_A_POOL);
    assert_non_null(strstr(said, wanted));
}

int main(int argc, char **argv)
{
    if (getenv(FORGETFUL) != NULL) {
        return run_forgetful_worker();
    }
    sj_question_worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_answers_one_question_after_the_other),
        cmocka_unit_test(a_waiting_process_has_opened_its_next_connection),
        cmocka_unit_test(hostile_questions_end_with_a_sentence),
        cmocka_unit_test(temporary_files_are_few),
        cmocka_unit_test(a_process_that_ends_is_replaced),
        cmocka_unit_test(a_worker_that_cannot_be_confined_reports_it),
        cmocka_unit_test(a_process_that_does_not_answer_is_killed),
        cmocka_unit_test(a_question_that_nobody_waits_for_ends),
        cmocka_unit_test(processor_time_is_limited),
        cmocka_unit_test(a_worker_has_a_lower_priority_than_the_server),
        cmocka_unit_test(a_confined_process_has_files_and_memory_only),
        cmocka_unit_test(a_worker_starts_no_workers),
        cmocka_unit_test(a_waiting_process_reads_the_file_that_replaced_the_database),
    };
    return cmocka_run_group_tests(tests, start_pool, stop_pool);
}
