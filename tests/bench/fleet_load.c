/* Runs simulated devices against one collector. Measures acknowledgements, CPU, memory and loss.
 *
 *   fleet_load [devices] [blocks per second of each] [events per block] [seconds] [recording.db]
 *              [port] [number of the first device]
 *
 * The blocks are cut from a recording of `sojourn record`, the same for all devices, or made up.
 * The collector is a child process, whose CPU time wait4 returns. With a port, the devices send to
 * a collector that listens there, and end all sessions; forward.py or fleet_questions.py then
 * checks that collector. `-` stands for no recording. The devices are connections of one epoll
 * loop, which speaks SP over TCP without a library. Latency counts from the time when a block was
 * due, so it includes the delay of a sender that falls behind. At the end the bench checks that the
 * database holds every acknowledged block. */
#include "collector-server/ingest/ingest.h"
#include "collector-server/store/store.h"
#include "tests/bench/recorded_blocks.h"
#include "tests/collector-server/store/frame_maker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WINDOW = 8,
    INTRODUCTIONS = 3, /* HELLO, SESSION and MODULE, sent one after the other */
    LENGTH_BYTES = 8,
    HEAD_BYTES = LENGTH_BYTES + 4, /* SP over TCP: length, then REQ's id */
    INPUT_BYTES = 4096,
    OUTPUT_BYTES = 256 << 10
};

/* The bench waits this long for the last replies. A reply is lost if its connection ends. A real
 * device then sends the request again. A simulated device does not, so the store may hold blocks
 * that were not acknowledged to it. */
#define PATIENCE_NS UINT64_C(15000000000)
#define EARLY_NS UINT64_C(1000000000)

static const char database[] = "fleet_load.db";
static uint16_t port;

typedef struct device {
    frame_maker maker; /* its buffers are shared by all devices */
    int socket;
    unsigned introduced;
    bool ready; /* the collector has sent its greeting */
    uint64_t due_ns[WINDOW];
    uint32_t ids[WINDOW]; /* 0: free */
    uint32_t in_flight;
    uint32_t next_id;
    uint64_t next_due_ns;
    uint64_t acknowledged;
    uint64_t next_block; /* index in the recording */
    uint8_t input[INPUT_BYTES];
    size_t input_bytes;
    uint8_t *output;
    size_t output_bytes;
    size_t output_sent;
} device;

typedef struct fleet {
    device *devices;
    uint32_t count;
    uint32_t first_number;
    uint64_t interval_ns;
    uint32_t events;
    int epoll;
    pid_t collector;
    double collector_cpu_s; /* at the time when all devices had introduced themselves */
    uint64_t start_ns, end_ns;
    const recorded_blocks *recorded; /* NULL: blocks are made up */
    uint64_t calls;
    uint64_t sent, acknowledged, refused;
    uint64_t acknowledged_early; /* in the first second, in which all sessions begin at once */
    uint32_t *latencies_us;      /* in the order of the acknowledgements */
    size_t latency_capacity;
} fleet;

static void die(const char *what)
{
    fprintf(stderr, "fleet_load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Runs the collector in this process until `end` is closed. */
static void collect(int end, int ready)
{
    char url[64];
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", port);
    const char *urls[] = {url};
    const sj_store_options store_options = {
        .path = database, .create = true, .aggregates_delay_ms = SJ_AGGREGATES_DELAY_MS};
    const sj_ingest_options ingest_options = {.urls = urls, .url_count = 1};
    sj_error error = {0};
    sj_store *store = NULL;
    sj_ingest *ingest = NULL;
    char byte = 0;
    if (sj_store_open(&store_options, &store, &error) != SJ_OK ||
        sj_ingest_start(store, &ingest_options, &ingest, &error) != SJ_OK) {
        fprintf(stderr, "fleet_load: %s\n", error.text);
        _exit(1);
    }
    (void)!write(ready, &byte, 1);
    (void)!read(end, &byte, 1);
    sj_ingest_counters counters;
    sj_ingest_get_counters(ingest, &counters);
    sj_ingest_stop(ingest);
    sj_store_close(store);
    printf("collector: %llu commits, %llu duplicates, %llu refused, %llu rejected, queue peak %.1f "
           "MB\n",
           (unsigned long long)counters.commits, (unsigned long long)counters.duplicates,
           (unsigned long long)counters.refused, (unsigned long long)counters.rejected,
           (double)counters.queue_peak_bytes / 1e6);
    fflush(stdout);
    _exit(0);
}

static void want_output(const fleet *all, device *one, bool wanted)
{
    struct epoll_event event = {.events = EPOLLIN | (wanted ? EPOLLOUT : 0u), .data.ptr = one};
    epoll_ctl(all->epoll, EPOLL_CTL_MOD, one->socket, &event);
}

static void push_output(const fleet *all, device *one)
{
    while (one->output_sent < one->output_bytes) {
        const ssize_t sent = send(one->socket, one->output + one->output_sent,
                                  one->output_bytes - one->output_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            want_output(all, one, true);
            return;
        }
        if (sent <= 0) {
            die("a connection broke");
        }
        one->output_sent += (size_t)sent;
    }
    one->output_bytes = 0;
    one->output_sent = 0;
}

static void put_request(fleet *all, device *one, sj_slice frame, uint64_t due_ns)
{
    sj_writer writer =
        sj_writer_of(one->output + one->output_bytes, OUTPUT_BYTES - one->output_bytes);
    unsigned slot = 0;
    while (one->ids[slot] != 0) {
        slot++;
    }
    one->next_id++;
    const uint32_t id = UINT32_C(0x80000000) | one->next_id;
    const uint64_t length = frame.size + 4;
    uint8_t head[HEAD_BYTES];
    for (int i = 0; i < 8; i++) {
        head[i] = (uint8_t)(length >> (56 - 8 * i));
    }
    for (int i = 0; i < 4; i++) {
        head[8 + i] = (uint8_t)(id >> (24 - 8 * i));
    }
    sj_write_bytes(&writer, head, sizeof(head));
    sj_write_bytes(&writer, frame.data, frame.size);
    if (writer.bad) {
        die("a frame is too long for the simulated device");
    }
    one->output_bytes += sj_writer_used(&writer);
    one->ids[slot] = id;
    one->due_ns[slot] = due_ns;
    one->in_flight++;
    push_output(all, one);
}

static bool has_space(const fleet *all, const device *one)
{
    return one->in_flight < WINDOW && one->output_bytes + (size_t)all->events * 8 < OUTPUT_BYTES;
}

static sj_slice next_block(fleet *all, device *one)
{
    if (all->recorded == NULL) {
        const uint64_t calls_before = one->maker.next_call;
        const sj_slice made = frame_maker_block(&one->maker, all->events, 0);
        all->calls += one->maker.next_call - calls_before;
        return made;
    }
    const recorded_block *block = &all->recorded->blocks[one->next_block++];
    sj_session_id session;
    memset(session.bytes, one->maker.session_tag, sizeof(session.bytes));
    memcpy(session.bytes + 12, &one->maker.session_number, sizeof(one->maker.session_number));
    if (sj_block_set_session(block->bytes, block->size, &session) != SJ_OK) {
        die("a recorded block is none");
    }
    all->calls += block->calls;
    return frame_maker_wrap(&one->maker, SJ_FRAME_BLOCK, (sj_slice){0},
                            (sj_slice){.data = block->bytes, .size = block->size});
}

static void send_due(fleet *all, device *one, uint64_t now)
{
    if (!one->ready) {
        return;
    }
    if (one->introduced < INTRODUCTIONS) {
        if (one->in_flight == 0) {
            const sj_slice frames[] = {one->introduced == 0   ? frame_maker_hello(&one->maker)
                                       : one->introduced == 1 ? frame_maker_session(&one->maker)
                                                              : frame_maker_module(&one->maker)};
            put_request(all, one, frames[0], now);
        }
        return;
    }
    while (one->next_due_ns <= now && one->next_due_ns < all->end_ns && has_space(all, one)) {
        put_request(all, one, next_block(all, one), one->next_due_ns);
        one->next_due_ns += all->interval_ns;
        all->sent++;
    }
}

static void handle_reply(fleet *all, device *one, const uint8_t *bytes, size_t size, uint64_t now)
{
    sj_frame_view view;
    unsigned slot = 0;
    const uint32_t id =
        (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    while (slot < WINDOW && one->ids[slot] != id) {
        slot++;
    }
    if (slot == WINDOW ||
        sj_frame_read((sj_slice){.data = bytes + 4, .size = size - 4}, &view) != SJ_OK) {
        die("an answer makes no sense");
    }
    /* Field 1 of an Ack is the status. It is omitted if it is 0. */
    const bool is_refused = view.header.size > 0 && view.header.data[0] == 0x08;
    one->ids[slot] = 0;
    one->in_flight--;
    if (is_refused) {
        all->refused++;
    } else if (one->introduced < INTRODUCTIONS) {
        one->introduced++;
    } else {
        if (all->acknowledged < all->latency_capacity) {
            all->latencies_us[all->acknowledged] = (uint32_t)((now - one->due_ns[slot]) / 1000);
        }
        one->acknowledged++;
        all->acknowledged++;
        if (now < all->start_ns + EARLY_NS) {
            all->acknowledged_early = all->acknowledged;
        }
    }
}

static void connect_device(fleet *all, device *one)
{
    static const uint8_t hello[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0}; /* REQ, version 0 */
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int yes = 1;
    one->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (one->socket < 0 ||
        connect(one->socket, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        die("cannot connect");
    }
    setsockopt(one->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (send(one->socket, hello, sizeof(hello), 0) != (ssize_t)sizeof(hello) ||
        fcntl(one->socket, F_SETFL, O_NONBLOCK) != 0) {
        die("cannot begin");
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    if (epoll_ctl(all->epoll, EPOLL_CTL_ADD, one->socket, &event) != 0) {
        die("epoll");
    }
}

static void read_input(fleet *all, device *one, uint64_t now)
{
    const ssize_t got =
        recv(one->socket, one->input + one->input_bytes, sizeof(one->input) - one->input_bytes, 0);
    if (got <= 0) {
        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (one->ready) {
            die("a connection broke");
        }
        close(one->socket); /* a collector that opens its listener again drops connections without a
                               greeting */
        connect_device(all, one);
        return;
    }
    one->input_bytes += (size_t)got;
    size_t at = 0;
    if (!one->ready && one->input_bytes >= 8) {
        one->ready = true;
        at = 8;
    }
    while (one->input_bytes - at >= HEAD_BYTES) {
        uint64_t length = 0;
        for (int i = 0; i < LENGTH_BYTES; i++) {
            length = length << 8 | one->input[at + (size_t)i];
        }
        if (length > INPUT_BYTES - LENGTH_BYTES || length < 4) {
            die("an answer is too long");
        }
        if (one->input_bytes - at < LENGTH_BYTES + length) {
            break;
        }
        handle_reply(all, one, one->input + at + LENGTH_BYTES, length, now);
        at += LENGTH_BYTES + length;
    }
    memmove(one->input, one->input + at, one->input_bytes - at);
    one->input_bytes -= at;
}

static double process_cpu_s(pid_t pid)
{
    struct timespec spent = {0};
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) != 0) {
        die("the collector's clock");
    }
    return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

/* Returns the present memory of a process in kB. */
static uint64_t resident_kb(pid_t pid)
{
    char name[64];
    unsigned long long pages = 0;
    snprintf(name, sizeof(name), "/proc/%d/statm", (int)pid);
    FILE *file = fopen(name, "re");
    if (file == NULL || fscanf(file, "%*s %llu", &pages) != 1) {
        die("the collector's memory");
    }
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static bool is_introduced(const fleet *all)
{
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->devices[i].introduced < INTRODUCTIONS) {
            return false;
        }
    }
    return true;
}

static bool is_over(const fleet *all, uint64_t now)
{
    if (now < all->end_ns) {
        return false;
    }
    if (now >= all->end_ns + PATIENCE_NS) {
        return true;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        const device *one = &all->devices[i];
        if (one->in_flight != 0 || one->next_due_ns < all->end_ns) {
            return false;
        }
    }
    return true;
}

static void serve_events(fleet *all)
{
    struct epoll_event events[256];
    const int count = epoll_wait(all->epoll, events, 256, 2);
    const uint64_t now = now_ns();
    for (int i = 0; i < count; i++) {
        device *one = events[i].data.ptr;
        if ((events[i].events & EPOLLOUT) != 0) {
            want_output(all, one, false);
            push_output(all, one);
        }
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
            read_input(all, one, now);
        }
    }
}

static void make_fleet(fleet *all)
{
    frame_maker base;
    frame_maker_init(&base, 0x5a);
    /* A large block first: the shared buffers then never grow again. */
    (void)frame_maker_block(&base, all->events + 4096, 0);
    for (uint32_t i = 0; i < all->count; i++) {
        device *one = &all->devices[i];
        one->maker = (frame_maker){.session_tag = 0x5a,
                                   .session_number = all->first_number + i,
                                   .encoder = base.encoder,
                                   .block = base.block,
                                   .block_capacity = base.block_capacity * 2,
                                   .frame = base.frame,
                                   .frame_capacity = base.frame_capacity,
                                   .events = base.events,
                                   .ticks = FRAME_MAKER_STARTED_TICKS,
                                   .random = 2463534242u + i,
                                   .function_count =
                                       all->recorded != NULL ? all->recorded->function_count : 0,
                                   .steady = true};
        one->output = malloc(OUTPUT_BYTES);
        if (one->output == NULL) {
            die("memory");
        }
        connect_device(all, one);
    }
}

static void run_fleet(fleet *all, uint64_t seconds)
{
    while (!is_introduced(all)) {
        serve_events(all);
        for (uint32_t i = 0; i < all->count; i++) {
            send_due(all, &all->devices[i], 0);
        }
    }
    const uint64_t start = now_ns();
    all->start_ns = start;
    all->collector_cpu_s = all->collector != 0 ? process_cpu_s(all->collector) : 0;
    all->end_ns = start + seconds * UINT64_C(1000000000);
    for (uint32_t i = 0; i < all->count; i++) {
        all->devices[i].next_due_ns = start + all->interval_ns * i / all->count;
    }
    for (uint64_t now = start; !is_over(all, now); now = now_ns()) {
        for (uint32_t i = 0; i < all->count; i++) {
            send_due(all, &all->devices[i], now);
        }
        serve_events(all);
    }
}

/* Sends the end of each session once its window has a free slot. Waits for all replies. */
static void end_sessions(fleet *all)
{
    bool *is_ended = calloc(all->count, sizeof(*is_ended));
    if (is_ended == NULL) {
        die("memory");
    }
    for (bool is_over = false; !is_over;) {
        is_over = true;
        for (uint32_t i = 0; i < all->count; i++) {
            device *one = &all->devices[i];
            if (!is_ended[i] && one->in_flight < WINDOW) {
                put_request(all, one, frame_maker_end(&one->maker), now_ns());
                is_ended[i] = true;
            }
            is_over = is_over && is_ended[i] && one->in_flight == 0;
        }
        serve_events(all);
    }
    free(is_ended);
}

static int compare_latencies(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void print_latencies(const char *when, uint32_t *latencies_us, uint64_t count)
{
    if (count == 0) {
        printf("no block was acknowledged%s\n", when);
        return;
    }
    qsort(latencies_us, count, sizeof(*latencies_us), compare_latencies);
    printf("%llu blocks acknowledged%s after p50 %.1f ms, p99 %.1f ms, max %.1f ms\n",
           (unsigned long long)count, when, (double)latencies_us[count / 2] / 1e3,
           (double)latencies_us[count * 99 / 100] / 1e3, (double)latencies_us[count - 1] / 1e3);
}

static double cpu_s(const struct rusage *usage)
{
    return (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec / 1e6 +
           (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec / 1e6;
}

/* Returns how many devices lack an acknowledged block in the database, or have blocks there that
 * they never sent. */
static uint64_t count_missing(const fleet *all)
{
    static const char sql[] = "SELECT substr(uuid, 13), (SELECT count(*) FROM streams JOIN blocks "
                              "USING (stream_id) WHERE streams.session_id = s.session_id) "
                              "FROM sessions AS s";
    sqlite3 *opened = NULL;
    sqlite3_stmt *row = NULL;
    uint64_t right = 0;
    if (sqlite3_open_v2(database, &opened, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(opened, sql, -1, &row, NULL) != SQLITE_OK) {
        die("the database");
    }
    while (sqlite3_step(row) == SQLITE_ROW) {
        uint32_t number = 0;
        memcpy(&number, sqlite3_column_blob(row, 0), sizeof(number));
        const uint64_t stored = (uint64_t)sqlite3_column_int64(row, 1);
        const device *one = number - 1 < all->count ? &all->devices[number - 1] : NULL;
        right += one != NULL && stored >= one->acknowledged &&
                 stored <= one->acknowledged + one->in_flight;
    }
    sqlite3_finalize(row);
    sqlite3_close(opened);
    return all->count - right;
}

/* Returns a port that is free now. */
static uint16_t choose_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0 || bind(probe, (const struct sockaddr *)&address, size) != 0 ||
        getsockname(probe, (struct sockaddr *)&address, &size) != 0) {
        die("no free port");
    }
    close(probe);
    return ntohs(address.sin_port);
}

static pid_t start_collector(int *end)
{
    int ends[2];
    int ready[2];
    char byte;
    if (pipe(ends) != 0 || pipe(ready) != 0) {
        die("pipe");
    }
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        collect(ends[0], ready[1]);
    }
    close(ends[0]);
    close(ready[1]);
    if (pid < 0 || read(ready[0], &byte, 1) != 1) {
        die("the collector did not start");
    }
    *end = ends[1];
    return pid;
}

int main(int argc, char **argv)
{
    fleet all = {.count = argc > 1 ? (uint32_t)atol(argv[1]) : 1000,
                 .interval_ns = UINT64_C(1000000000) / (argc > 2 ? (uint64_t)atol(argv[2]) : 10),
                 .events = argc > 3 ? (uint32_t)atol(argv[3]) : 8192,
                 .first_number = argc > 7 ? (uint32_t)atol(argv[7]) : 1};
    const uint64_t seconds = argc > 4 ? (uint64_t)atol(argv[4]) : 10;
    recorded_blocks recorded;
    struct rusage own;
    struct rusage collector;
    struct rlimit files = {.rlim_cur = 16384, .rlim_max = 16384};
    int end = -1;
    if (system("rm -f fleet_load.db*") != 0) {
        return 1;
    }
    setrlimit(RLIMIT_NOFILE, &files);
    const bool is_own = argc <= 6;
    port = is_own ? choose_port() : (uint16_t)atol(argv[6]);
    const pid_t pid = is_own ? start_collector(&end) : 0;
    all.latency_capacity = (size_t)(all.count * seconds * UINT64_C(1000000000) / all.interval_ns);
    all.devices = calloc(all.count, sizeof(*all.devices));
    all.latencies_us = calloc(all.latency_capacity + 1, sizeof(*all.latencies_us));
    all.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (all.devices == NULL || all.latencies_us == NULL || all.epoll < 0) {
        die("memory");
    }
    all.collector = pid;
    if (argc > 5 && strcmp(argv[5], "-") != 0) {
        recorded_blocks_load(argv[5], all.events,
                             seconds * UINT64_C(1000000000) / all.interval_ns + 1,
                             FRAME_MAKER_STARTED_TICKS, &recorded);
        all.recorded = &recorded;
    }
    make_fleet(&all);
    run_fleet(&all, seconds);
    const double took = (double)(now_ns() - all.start_ns) / 1e9;
    print_latencies(" later than the first second", all.latencies_us + all.acknowledged_early,
                    all.acknowledged - all.acknowledged_early);
    print_latencies("", all.latencies_us, all.acknowledged);
    fflush(stdout);
    if (!is_own) {
        end_sessions(&all);
        printf("%u devices, %.0f blocks/s, %.2f M calls/s; sent %llu, refused %llu\n", all.count,
               (double)all.acknowledged / took, (double)all.calls / took / 1e6,
               (unsigned long long)all.sent, (unsigned long long)all.refused);
        return all.refused != 0;
    }
    const uint64_t serving_kb = resident_kb(pid);
    const double serving_s = process_cpu_s(pid) - all.collector_cpu_s;
    getrusage(RUSAGE_SELF, &own);
    close(end);
    if (wait4(pid, NULL, 0, &collector) != pid) {
        die("wait");
    }
    const uint64_t missing = count_missing(&all);
    printf("%u devices, %.0f blocks/s, %.2f M calls/s stored\n", all.count,
           (double)all.acknowledged / took, (double)all.calls / took / 1e6);
    printf("sent %llu, acknowledged %llu, refused %llu, devices whose blocks are not all stored "
           "once: %llu\n",
           (unsigned long long)all.sent, (unsigned long long)all.acknowledged,
           (unsigned long long)all.refused, (unsigned long long)missing);
    printf("collector CPU %.0f %% of a core, %.1f us a block (%.1f with start and end), %.0f MB "
           "(%.0f MB at most), "
           "generator %.0f %% of a core, %.1f us a block\n",
           100 * serving_s / took, 1e6 * serving_s / (double)all.acknowledged,
           1e6 * cpu_s(&collector) / (double)all.acknowledged, (double)serving_kb / 1e3,
           (double)collector.ru_maxrss / 1e3, 100 * cpu_s(&own) / took,
           1e6 * cpu_s(&own) / (double)all.acknowledged);
    const uint64_t unanswered = all.sent - all.acknowledged - all.refused;
    printf("unanswered %llu\n", (unsigned long long)unanswered);
    return system("rm -f fleet_load.db*") != 0 || missing != 0 || unanswered > all.sent / 1000;
}
