#include "agent/link/link_server.h"

#include "agent/planner/plan_file.h"
#include "tests/support/check.h"
#include "tests/support/fail_alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A scripted agent speaks to the recorder's end of the link. The spool is real. */
typedef struct fixture {
    char directory[64];
    char spool_directory[96];
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_selection selection;
    sj_registry *registry;
    sj_link_server *server;
    uint64_t joined;
    char arena_name[64];
    char mark[300]; /* the last mark, with its kind */
    char document[300];
    _Atomic sj_status verdict; /* the reply to documents */
} fixture;

static atomic_int poll_failures; /* number of calls of poll that fail from now on */

int __real_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    if (atomic_load(&poll_failures) > 0) {
        atomic_fetch_sub(&poll_failures, 1);
        errno = ENOMEM;
        return -1;
    }
    return __real_poll(polled, count, timeout_ms);
}

static sj_status note_joined(void *context, const sj_link_process *process)
{
    fixture *f = context;
    f->joined = process->number;
    snprintf(f->arena_name, sizeof(f->arena_name), "%s", process->arena_name);
    return SJ_OK;
}

static sj_status note_mark(void *context, const char *name, bool end)
{
    fixture *f = context;
    snprintf(f->mark, sizeof(f->mark), "%s %s", end ? "end" : "begin", name);
    return strcmp(name, "full") == 0 ? SJ_EFULL : SJ_OK;
}

static sj_status accept_document(void *context, sj_slice document, int fd)
{
    fixture *f = context;
    snprintf(f->document, sizeof(f->document), "%.*s", (int)document.size,
             (const char *)document.data);
    if (f->verdict == SJ_OK) {
        sj_link_reply(fd, SJ_LINK_DONE, "it is obeyed");
    }
    return f->verdict;
}

/* Creates registry and server. With `ahead`, plans time out only after an hour. */
static void start(fixture *f, sj_plan_ahead *ahead, bool threadless)
{
    const sj_registry_options registry = {.writer = f->writer,
                                          .selection = &f->selection,
                                          .runtime_directory = f->directory,
                                          .cache_directory = ahead != NULL ? f->directory : NULL,
                                          .ahead = ahead,
                                          .plan_wait_ms = ahead != NULL ? 3600000 : 0};
    assert_int_equal(sj_registry_new(&registry, &f->registry), SJ_OK);
    const sj_link_server_options link = {.runtime_directory = f->directory,
                                         .welcome = {.max_threads = 3, .chunks_per_thread = 5},
                                         .registry = f->registry,
                                         .context = f,
                                         .joined = note_joined,
                                         .mark = note_mark,
                                         .policy = accept_document,
                                         .threadless = threadless};
    assert_int_equal(sj_link_server_start(&link, &f->server, NULL), SJ_OK);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    snprintf(f->directory, sizeof(f->directory), "/dev/shm/sj-link-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->spool_directory, sizeof(f->spool_directory), "%s/spool", f->directory);
    const sj_spool_options spool = {.directory = f->spool_directory};
    assert_int_equal(sj_spool_open(&spool, &f->spool, NULL), SJ_OK);
    const sj_frame_writer_options writer = {.spool = f->spool};
    assert_int_equal(sj_frame_writer_new(&writer, &f->writer), SJ_OK);
    start(f, NULL, false);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[256];
    sj_link_server_stop(f->server);
    sj_registry_free(f->registry);
    sj_frame_writer_free(f->writer);
    sj_spool_close(f->spool);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->directory);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static int connect_agent(const fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = 20};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", f->directory);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    return fd;
}

static void say(int fd, uint16_t version, uint16_t type, const void *payload, size_t bytes,
                const char *text)
{
    uint8_t packet[4096];
    sj_writer writer = sj_writer_of(packet, sizeof(packet));
    const sj_link_packet head = {
        .version = version, .type = type, .payload_bytes = (uint32_t)(bytes + strlen(text))};
    sj_write_bytes(&writer, &head, sizeof(head));
    sj_write_bytes(&writer, payload, bytes);
    sj_write_bytes(&writer, text, strlen(text));
    assert_int_equal(send(fd, packet, sj_writer_used(&writer), MSG_NOSIGNAL),
                     sj_writer_used(&writer));
}

/* Receives a reply and copies its payload to `payload`. Returns the reply's type, or 0 if the
 * server closed the connection. */
static int hear(int fd, void *payload, size_t capacity)
{
    uint8_t packet[8192];
    sj_link_packet head;
    const ssize_t got = recv(fd, packet, sizeof(packet), 0);
    if (got <= 0) {
        return 0;
    }
    assert_true((size_t)got >= sizeof(head));
    memcpy(&head, packet, sizeof(head));
    assert_int_equal(head.payload_bytes, (size_t)got - sizeof(head));
    if (capacity != 0) {
        memcpy(payload, packet + sizeof(head),
               head.payload_bytes < capacity ? head.payload_bytes : capacity);
    }
    return head.type;
}

static void say_hello(int fd, uint32_t pid, uint32_t occasion, const char *arena)
{
    sj_link_hello hello = {.pid = pid, .tid = pid, .occasion = occasion};
    snprintf(hello.arena_name, sizeof(hello.arena_name), "%s", arena);
    say(fd, SJ_LINK_VERSION, SJ_LINK_HELLO, &hello, sizeof(hello), "");
}

static void send_module(int fd, const char *path, bool is_main)
{
    const sj_link_module module = {
        .bias = 0x555500000000, .is_main = is_main, .path_bytes = (uint32_t)strlen(path)};
    say(fd, SJ_LINK_VERSION, SJ_LINK_MODULE, &module, sizeof(module), path);
}

static int say_module(int fd, const char *path, bool is_main, void *reply, size_t capacity)
{
    send_module(fd, path, is_main);
    return hear(fd, reply, capacity);
}

/* Waits until all failures of poll have happened. */
static void wait_for_failures(void)
{
    while (atomic_load(&poll_failures) > 0) {
        sched_yield();
    }
}

static void test_the_server_goes_on_after_poll_fails(void **state)
{
    fixture *f = *state;
    sj_link_welcome welcome;
    atomic_store(&poll_failures, 3);
    const int first = connect_agent(f); /* wakes the server from its current poll */
    wait_for_failures();
    const int second = connect_agent(f);
    say_hello(second, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
    assert_int_equal(hear(second, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    close(first);
    close(second);
}

static void test_the_server_ends_while_poll_fails(void **state)
{
    fixture *f = *state;
    atomic_store(&poll_failures, INT_MAX);
    const int fd = connect_agent(f);
    while (atomic_load(&poll_failures) == INT_MAX) {
        sched_yield();
    }
    sj_link_server_stop(f->server);
    f->server = NULL;
    atomic_store(&poll_failures, 0);
    close(fd);
}

static void test_whole_conversation(void **state)
{
    fixture *f = *state;
    sj_link_welcome welcome;
    struct {
        sj_link_plan plan;
        char path[512];
    } reply = {0};
    char self[512] = "";
    sj_link_server_counters counters;
    const int fd = connect_agent(f);
    say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    assert_int_equal(welcome.max_threads, 3);
    assert_int_equal(welcome.chunks_per_thread, 5);
    assert_int_equal(f->joined, 1);
    assert_string_equal(f->arena_name, "1.0.arena");
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    assert_int_equal(say_module(fd, self, true, &reply, sizeof(reply)), SJ_LINK_PLAN);
    assert_int_equal(reply.plan.first_function, 1);
    assert_int_equal(access(reply.path, R_OK), 0);
    const sj_link_applied applied = {.first_function = 1, .hooked = 10, .failed = 0};
    say(fd, SJ_LINK_VERSION, SJ_LINK_APPLIED, &applied, sizeof(applied), "");
    say(fd, SJ_LINK_VERSION, SJ_LINK_DONE, NULL, 0, "");
    assert_int_equal(hear(fd, NULL, 0), SJ_LINK_DONE);
    sj_link_server_get_counters(f->server, &counters);
    assert_int_equal(counters.ready, 1);
    assert_int_equal(counters.bad_packets, 0);
    sj_registry_counters registry;
    sj_registry_get_counters(f->registry, &registry);
    assert_int_equal(registry.hooked, 10);
    assert_true(registry.functions > 10);
    close(fd);
}

static void test_system_libraries_and_unplannable_files_are_skipped(void **state)
{
    fixture *f = *state;
    sj_link_skip skip = {0};
    sj_link_welcome welcome;
    const int fd = connect_agent(f);
    say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    assert_int_equal(say_module(fd, "/lib/x86_64-linux-gnu/libm.so.6", false, &skip, sizeof(skip)),
                     SJ_LINK_SKIP);
    assert_int_equal(say_module(fd, "/nowhere/app", true, &skip, sizeof(skip)), SJ_LINK_SKIP);
    assert_int_equal(skip.reason, SJ_SKIP_MODULE);
    sj_registry_counters counters;
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.plan_failures, 1);
    close(fd);
}

/* Reading the FIFO blocks the planner until the test opens a writer. */
static void a_process_that_waits_for_a_plan_holds_up_no_other(void **state)
{
    fixture *f = *state;
    char fifo[128];
    sj_link_welcome welcome;
    sj_link_skip skip;
    sj_link_plan plan;
    sj_plan_ahead *ahead = NULL;
    snprintf(fifo, sizeof(fifo), "%s/slow", f->directory);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const sj_planner_options planner = {.module_path = fifo, .cache_directory = f->directory};
    assert_int_equal(sj_plan_ahead_start(&planner, &ahead), SJ_OK);
    sj_link_server_stop(f->server);
    sj_registry_free(f->registry);
    start(f, ahead, false);
    int fds[3];
    for (uint32_t i = 0; i < 3; i++) {
        fds[i] = connect_agent(f);
        say_hello(fds[i], (uint32_t)getpid() + i, SJ_OCCASION_START, "1.0.arena");
        assert_int_equal(hear(fds[i], &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    }
    /* The server handles clients from the last to the first. */
    send_module(fds[2], fifo, true);
    send_module(fds[1], fifo, true);
    assert_int_equal(say_module(fds[0], "/proc/self/exe", true, &plan, sizeof(plan)), SJ_LINK_PLAN);
    close(fds[1]); /* this process ends while it waits */
    const int writer = open(fifo, O_RDWR | O_CLOEXEC);
    assert_int_equal(hear(fds[2], &skip, sizeof(skip)), SJ_LINK_SKIP);
    assert_int_equal(skip.reason, SJ_SKIP_MODULE);
    close(writer);
    close(fds[2]);
    close(fds[0]);
    sj_plan_ahead_free(ahead);
}

static int ask_about(int fd, uint16_t type, const char *path, void *reply, size_t capacity)
{
    const sj_link_module module = {
        .bias = 0x555500000000, .is_main = 1, .path_bytes = (uint32_t)strlen(path)};
    say(fd, SJ_LINK_VERSION, type, &module, sizeof(module), path);
    return hear(fd, reply, capacity);
}

/* True if the plan at `path` hooks the function. Writes the function's index in the plan. */
static bool is_hooked(const char *path, const char *name, uint32_t *place)
{
    sj_plan plan = {0};
    bool found = false;
    assert_int_equal(sj_plan_map(path, &plan), SJ_OK);
    for (uint32_t i = 0; i < plan.header->function_count; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan.header)[i];
        if (strcmp(sj_plan_string(plan.header, function->name), name) == 0) {
            *place = i;
            found = sj_plan_is_hooked(function);
        }
    }
    sj_plan_free(&plan);
    return found;
}

static void test_imports_come_with_the_policy_that_asks_for_them(void **state)
{
    fixture *f = *state;
    sj_link_welcome welcome;
    struct {
        sj_link_plan plan;
        char path[512];
    } reply = {0};
    char self[512] = "";
    const sj_selection with_calls = {.library_calls = true};
    sj_function_states states;
    int fd = connect_agent(f);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    assert_int_equal(welcome.runtimes & SJ_LINK_RUNTIME_LIBRARY_CALLS, 0);
    assert_int_equal(ask_about(fd, SJ_LINK_MODULE, self, &reply, sizeof(reply)), SJ_LINK_PLAN);
    assert_int_equal(ask_about(fd, SJ_LINK_IMPORTS, self, &reply, sizeof(reply)), SJ_LINK_SKIP);
    close(fd);

    assert_int_equal(sj_registry_select(f->registry, &with_calls, NULL, &states), SJ_OK);
    assert_true(states.other_modules);
    fd = connect_agent(f);
    say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_DLOPEN, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    assert_int_not_equal(welcome.runtimes & SJ_LINK_RUNTIME_LIBRARY_CALLS, 0);
    memset(&reply, 0, sizeof(reply));
    assert_int_equal(ask_about(fd, SJ_LINK_IMPORTS, self, &reply, sizeof(reply)), SJ_LINK_PLAN);
    /* Imports get their own ids after those of the functions, and the same ids when requested
     * again. */
    const uint32_t first = reply.plan.first_function;
    assert_int_equal(first, states.count);
    uint32_t place = 0;
    assert_false(is_hooked(reply.path, "main", &place));
    assert_int_equal(ask_about(fd, SJ_LINK_IMPORTS, self, &reply, sizeof(reply)), SJ_LINK_PLAN);
    assert_int_equal(reply.plan.first_function, first);
    sj_function_states_deinit(&states);

    const sj_selection without = {0};
    assert_int_equal(sj_registry_select(f->registry, &without, NULL, &states), SJ_OK);
    assert_true(states.count > first);
    for (uint32_t id = first; id < states.count; id++) {
        assert_int_not_equal(states.states[id], SJ_FUNCTION_WANTED);
    }
    sj_function_states_deinit(&states);
    close(fd);
}

static void test_a_review_gives_what_has_no_hooks_yet(void **state)
{
    fixture *f = *state;
    sj_link_welcome welcome;
    struct {
        sj_link_plan plan;
        char path[512];
    } reply = {0};
    char self[512] = "";
    uint32_t place = 0;
    const sj_selection everything = {0};
    sj_function_states states;
    const int fd = connect_agent(f);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    assert_int_equal(
        sj_selection_add(f->selection.functions, &f->selection.function_count, "main", NULL),
        SJ_OK);
    say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    assert_int_equal(ask_about(fd, SJ_LINK_MODULE, self, &reply, sizeof(reply)), SJ_LINK_PLAN);
    assert_true(is_hooked(reply.path, "main", &place));
    assert_false(is_hooked(reply.path, "tear_down", &place));
    /* The selection has not changed. */
    assert_int_equal(ask_about(fd, SJ_LINK_TRANSITION, self, &reply, sizeof(reply)), SJ_LINK_SKIP);

    assert_int_equal(sj_registry_select(f->registry, &everything, NULL, &states), SJ_OK);
    uint8_t *prepared = calloc(states.count, 1);
    (void)is_hooked(reply.path, "main", &place);
    assert_int_equal(states.states[1 + place], SJ_FUNCTION_WANTED);
    prepared[1 + place] = 1;
    sj_registry_begin_review(f->registry, 1, prepared, states.count);
    memset(&reply, 0, sizeof(reply));
    assert_int_equal(ask_about(fd, SJ_LINK_TRANSITION, self, &reply, sizeof(reply)), SJ_LINK_PLAN);
    assert_int_equal(reply.plan.first_function, 1);
    assert_false(is_hooked(reply.path, "main", &place));
    assert_true(is_hooked(reply.path, "tear_down", &place));
    memset(prepared, 1, states.count);
    assert_int_equal(ask_about(fd, SJ_LINK_TRANSITION, self, &reply, sizeof(reply)), SJ_LINK_SKIP);
    sj_registry_end_review(f->registry);
    sj_function_states_deinit(&states);

    assert_int_equal(sj_registry_select(f->registry, &f->selection, NULL, &states), SJ_OK);
    assert_int_equal(states.states[1 + place], SJ_FUNCTION_UNWANTED);
    sj_function_states_deinit(&states);
    free(prepared);
    sj_selection_free(&f->selection);
    close(fd);
}

static void the_recorder_uses_its_own_number_of_a_process(void **state)
{
    fixture *f = *state;
    sj_link_welcome welcome;
    uint64_t process = 0;
    const int fd = connect_agent(f);
    say_hello(fd, 1, SJ_OCCASION_START, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    assert_int_equal(sj_registry_find_process(f->registry, getpid(), &process), SJ_OK);
    assert_int_equal(sj_registry_find_process(f->registry, 1, &process), SJ_ENOTFOUND);
    close(fd);
}

static void test_second_start_of_a_pid_is_an_exec(void **state)
{
    fixture *f = *state;
    sj_link_welcome welcome;
    for (uint64_t number = 1; number <= 2; number++) {
        const int fd = connect_agent(f);
        say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
        assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
        assert_int_equal(f->joined, number);
        close(fd);
    }
    uint64_t number = 0;
    assert_int_equal(sj_registry_find_process(f->registry, getpid(), &number), SJ_OK);
    assert_int_equal(number, 2);
}

static void test_bad_packets_cost_the_connection_and_nothing_else(void **state)
{
    fixture *f = *state;
    sj_link_server_counters counters;
    sj_link_welcome welcome;
    const sj_link_module lying = {.path_bytes = 100000};
    const char *const names[] = {"", "../escape", ".hidden", "a/b"};
    uint64_t bad = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++, bad++) {
        const int fd = connect_agent(f);
        say_hello(fd, 1, SJ_OCCASION_START, names[i]);
        assert_int_equal(hear(fd, &welcome, sizeof(welcome)), 0);
        close(fd);
    }
    int fd = connect_agent(f);
    say(fd, SJ_LINK_VERSION, SJ_LINK_DONE, NULL, 0, ""); /* before HELLO */
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), 0);
    close(fd);
    fd = connect_agent(f);
    say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    say(fd, SJ_LINK_VERSION, SJ_LINK_MODULE, &lying, sizeof(lying), "short");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), 0);
    close(fd);
    fd = connect_agent(f);
    say(fd, SJ_LINK_VERSION + 1, SJ_LINK_HELLO, NULL, 0, "");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_REFUSED);
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), 0);
    close(fd);
    sj_link_server_get_counters(f->server, &counters);
    assert_int_equal(counters.bad_packets, bad + 3);
    /* The next agent is served normally. */
    fd = connect_agent(f);
    say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_DLOPEN, "1.0.arena");
    assert_int_equal(hear(fd, &welcome, sizeof(welcome)), SJ_LINK_WELCOME);
    close(fd);
}

static int say_mark(const fixture *f, uint32_t end, uint32_t name_bytes, const char *name)
{
    const sj_link_mark mark = {.end = end, .name_bytes = name_bytes};
    const int fd = connect_agent(f);
    say(fd, SJ_LINK_VERSION, SJ_LINK_MARK, &mark, sizeof(mark), name);
    const int reply = hear(fd, NULL, 0);
    close(fd);
    return reply;
}

static void test_marks_come_without_hello_and_are_checked(void **state)
{
    fixture *f = *state;
    char long_name[SJ_LINK_MARK_NAME_BYTES + 2] = "";
    memset(long_name, 'x', sizeof(long_name) - 1);
    assert_int_equal(say_mark(f, 0, 5, "login"), SJ_LINK_DONE);
    assert_string_equal(f->mark, "begin login");
    assert_int_equal(say_mark(f, 1, 5, "login"), SJ_LINK_DONE);
    assert_string_equal(f->mark, "end login");
    assert_int_equal(say_mark(f, 0, 4, "full"), SJ_LINK_REFUSED);
    f->mark[0] = '\0';
    assert_int_equal(say_mark(f, 2, 5, "login"), 0);
    assert_int_equal(say_mark(f, 0, 6, "login"), 0);
    assert_int_equal(say_mark(f, 0, 4, "login"), 0);
    assert_int_equal(say_mark(f, 0, 0, ""), 0);
    assert_int_equal(say_mark(f, 0, sizeof(long_name) - 1, long_name), 0);
    assert_string_equal(f->mark, "");
}

static int say_policy(const fixture *f, const char *document, char *told, size_t capacity)
{
    const int fd = connect_agent(f);
    memset(told, 0, capacity);
    say(fd, SJ_LINK_VERSION, SJ_LINK_POLICY, NULL, 0, document);
    const int reply = hear(fd, told, capacity - 1);
    close(fd);
    return reply;
}

static void test_policies_are_handed_over_and_answered(void **state)
{
    fixture *f = *state;
    char told[128];
    assert_int_equal(say_policy(f, "{\"policy\": 1}", told, sizeof(told)), SJ_LINK_DONE);
    assert_string_equal(f->document, "{\"policy\": 1}");
    assert_string_equal(told, "it is obeyed");
    f->verdict = SJ_EAGAIN;
    assert_int_equal(say_policy(f, "{}", told, sizeof(told)), SJ_LINK_REFUSED);
    assert_non_null(strstr(told, "try again"));
    f->verdict = SJ_EUNSUPPORTED;
    assert_int_equal(say_policy(f, "{}", told, sizeof(told)), SJ_LINK_REFUSED);
    assert_int_equal(say_policy(f, "", told, sizeof(told)), 0);
    /* This server has no function that shows the policy. */
    const int fd = connect_agent(f);
    say(fd, SJ_LINK_VERSION, SJ_LINK_POLICY_ASK, NULL, 0, "");
    assert_int_equal(hear(fd, NULL, 0), SJ_LINK_REFUSED);
    close(fd);
}

static void restart_without_thread(fixture *f)
{
    sj_link_server_stop(f->server);
    sj_registry_free(f->registry);
    start(f, NULL, true);
}

/* Serves the packets that have come, while the n-th allocation fails. True if one failed. */
static bool serve_without(const fixture *f, uint64_t n)
{
    fail_alloc_at(n);
    sj_link_server_step(f->server, 0);
    return fail_alloc_stop();
}

/* True if the session's frames have a report of what was not recorded. */
static bool has_report(const fixture *f)
{
    char command[256];
    snprintf(command, sizeof(command), "grep -qr not_recorded '%s'", f->spool_directory);
    return system(command) == 0;
}

static void a_process_that_lacks_memory_to_join_is_counted_and_reported(void **state)
{
    fixture *f = *state;
    sj_registry_counters counters;
    sj_link_welcome welcome;
    uint64_t refused = 0;
    bool has_failed = true;
    for (uint64_t n = 0; has_failed; n++) {
        restart_without_thread(f); /* a registry that has no memory of earlier processes */
        const int fd = connect_agent(f);
        sj_link_server_step(f->server, -1);
        say_hello(fd, 1000, SJ_OCCASION_START, "1.0.arena");
        has_failed = serve_without(f, n);
        const bool is_refused = hear(fd, &welcome, sizeof(welcome)) != SJ_LINK_WELCOME;
        sj_registry_get_counters(f->registry, &counters);
        assert_int_equal(counters.unjoined, is_refused);
        assert_true(!is_refused || strstr(counters.first_unjoined, sj_status_text(SJ_ENOMEM)));
        refused += is_refused;
        close(fd);
        sj_link_server_step(f->server, 0);
    }
    assert_true(refused > 1);
    assert_true(has_report(f));
    assert_int_equal(counters.plan_failures, 0);
}

static void a_module_that_lacks_memory_for_its_plan_is_counted_and_reported(void **state)
{
    fixture *f = *state;
    uint64_t failures = 0;
    bool has_failed = true;
    for (uint64_t n = 0; has_failed; n++) {
        sj_registry_counters counters;
        uint8_t reply[512];
        restart_without_thread(f);
        const int fd = connect_agent(f);
        sj_link_server_step(f->server, -1);
        say_hello(fd, (uint32_t)getpid(), SJ_OCCASION_START, "1.0.arena");
        sj_link_server_step(f->server, -1);
        assert_int_equal(hear(fd, reply, sizeof(reply)), SJ_LINK_WELCOME);
        send_module(fd, "/bin/true", true);
        has_failed = serve_without(f, n);
        const bool is_planned = hear(fd, reply, sizeof(reply)) == SJ_LINK_PLAN;
        sj_registry_get_counters(f->registry, &counters);
        assert_int_equal(counters.plan_failures, !is_planned);
        failures += !is_planned;
        assert_string_not_equal(counters.plan_failure, "/bin/true: ");
        close(fd);
    }
    assert_true(failures > 10);
    assert_true(has_report(f));
}

static void the_last_report_has_the_whole_number(void **state)
{
    fixture *f = *state;
    sj_frame_writer_counters before;
    sj_frame_writer_counters after;
    for (int i = 0; i < 4; i++) { /* the first, second and fourth report the number so far */
        sj_registry_note_unplanned(f->registry, "/app", SJ_ENOMEM);
    }
    sj_frame_writer_get_counters(f->writer, &before);
    sj_registry_end_unrecorded(f->registry); /* is reported already */
    sj_frame_writer_get_counters(f->writer, &after);
    assert_int_equal(after.frames, before.frames);
    sj_registry_note_unplanned(f->registry, "/app", SJ_ENOMEM);
    sj_frame_writer_get_counters(f->writer, &after);
    assert_int_equal(after.frames, before.frames);
    sj_registry_end_unrecorded(f->registry);
    sj_frame_writer_get_counters(f->writer, &after);
    assert_int_equal(after.frames, before.frames + 1);
}

static void test_a_server_leaves_the_socket_of_another_one(void **state)
{
    fixture *f = *state;
    const sj_link_server_options second = {.runtime_directory = f->directory,
                                           .registry = f->registry};
    sj_link_server *refused = NULL;
    sj_error error = {0};
    char path[96];
    assert_int_equal(sj_link_server_start(&second, &refused, &error), SJ_EIO);
    assert_non_null(strstr(error.text, "Address already in use"));
    close(connect_agent(f)); /* the first server still listens */
    snprintf(path, sizeof(path), "%s/control", f->directory);
    assert_int_equal(unlink(path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    sj_link_server_stop(f->server);
    f->server = NULL;
    assert_int_equal(access(path, F_OK), 0);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_the_server_goes_on_after_poll_fails),
        WITH_FIXTURE(test_the_server_ends_while_poll_fails),
        WITH_FIXTURE(test_whole_conversation),
        WITH_FIXTURE(a_process_that_waits_for_a_plan_holds_up_no_other),
        WITH_FIXTURE(test_system_libraries_and_unplannable_files_are_skipped),
        WITH_FIXTURE(the_recorder_uses_its_own_number_of_a_process),
        WITH_FIXTURE(test_second_start_of_a_pid_is_an_exec),
        WITH_FIXTURE(test_imports_come_with_the_policy_that_asks_for_them),
        WITH_FIXTURE(test_a_review_gives_what_has_no_hooks_yet),
        WITH_FIXTURE(test_policies_are_handed_over_and_answered),
        WITH_FIXTURE(test_marks_come_without_hello_and_are_checked),
        WITH_FIXTURE(test_bad_packets_cost_the_connection_and_nothing_else),
        WITH_FIXTURE(a_process_that_lacks_memory_to_join_is_counted_and_reported),
        WITH_FIXTURE(a_module_that_lacks_memory_for_its_plan_is_counted_and_reported),
        WITH_FIXTURE(the_last_report_has_the_whole_number),
        WITH_FIXTURE(test_a_server_leaves_the_socket_of_another_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
