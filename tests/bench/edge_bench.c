/* Measures the collector's edge with hostile peers, and with many idle devices.
 *
 *   edge_bench storm SECONDS        every kind of attack at once, beside a good sender over TLS
 *   edge_bench handshakes SECONDS   peers that only make TLS handshakes, beside the good sender
 *   edge_bench idle DEVICES [tls]   devices that have sent HELLO and then wait for half a minute
 *
 * `sojournd` of the same build runs as a child. Every 10 ms the good sender sends a block of 100
 * events and waits for its acknowledgement, which follows COMMIT. Then it sends a PING, which the
 * edge answers by itself. It does so for SECONDS without attackers and for SECONDS with them.
 * Afterwards the bench waits until descriptors are free again, and prints the memory. */
#include "tests/collector-server/store/frame_maker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS = 100,
    BLOCK_EVERY_MS = 10,
    ATTACKERS = 4,
    ATTACKERS_NICE = 10,
    HEAD_BYTES = 12,
    IDLE_SECONDS = 30,
    BACK_SECONDS = 30,
    SAMPLES_MAX = 1 << 20,
    SHOWN_KINDS = 8
};

static const uint8_t greeting[8] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
static char folder[] = "/tmp/edge_bench.XXXXXX";
static pid_t server;
static uint16_t tls_port, tcp_port, http_port;
static uint32_t *samples_us, *pings_us;
static gnutls_certificate_credentials_t trust;

/* Number of attacks of each kind, in memory that is shared with the attackers. */
static struct attacks {
    uint64_t counts[SHOWN_KINDS];
} * attacks;

typedef struct peer {
    int socket;
    gnutls_session_t tls; /* NULL: plain */
} peer;

static void die(const char *what)
{
    fprintf(stderr, "edge_bench: %s: %s\n", what, strerror(errno));
    if (server > 0) {
        kill(server, SIGKILL);
    }
    exit(1);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint16_t free_port(void)
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

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 10};
    const int yes = 1;
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (made >= 0 && connect(made, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(made);
        return -1;
    }
    return made;
}

/* ---- peers ---- */

static void peer_close(peer *one)
{
    if (one->tls != NULL) {
        gnutls_deinit(one->tls);
    }
    if (one->socket >= 0) {
        close(one->socket);
    }
    *one = (peer){.socket = -1};
}

static bool peer_open(peer *one, bool is_tls)
{
    *one = (peer){.socket = connect_to(is_tls ? tls_port : tcp_port)};
    if (one->socket < 0 || !is_tls) {
        return one->socket >= 0;
    }
    gnutls_init(&one->tls, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS);
    gnutls_set_default_priority(one->tls);
    gnutls_credentials_set(one->tls, GNUTLS_CRD_CERTIFICATE, trust);
    gnutls_transport_set_int(one->tls, one->socket);
    if (gnutls_handshake(one->tls) != GNUTLS_E_SUCCESS) {
        peer_close(one);
        return false;
    }
    return true;
}

static bool peer_say(const peer *one, const void *bytes, size_t size)
{
    return one->tls != NULL ? gnutls_record_send(one->tls, bytes, size) == (ssize_t)size
                            : send(one->socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool peer_hear(const peer *one, uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = one->tls != NULL ? gnutls_record_recv(one->tls, bytes + at, size - at)
                                             : recv(one->socket, bytes + at, size - at, 0);
        if (got <= 0) {
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

static bool peer_tell(const peer *one, sj_slice frame)
{
    uint8_t head[HEAD_BYTES] = {0};
    for (int i = 0; i < 8; i++) {
        head[i] = (uint8_t)((uint64_t)(frame.size + 4) >> (56 - 8 * i));
    }
    head[8] = 0x80;
    return peer_say(one, head, sizeof(head)) && peer_say(one, frame.data, frame.size);
}

static bool peer_ask(const peer *one, sj_slice frame)
{
    uint8_t head[HEAD_BYTES];
    uint8_t body[4096];
    sj_frame_view reply;
    if (!peer_tell(one, frame) || !peer_hear(one, head, sizeof(head))) {
        return false;
    }
    const size_t size = ((size_t)head[6] << 8 | head[7]) - 4;
    return size <= sizeof(body) && peer_hear(one, body, size) &&
           sj_frame_read((sj_slice){.data = body, .size = size}, &reply) == SJ_OK &&
           reply.type == SJ_FRAME_ACK && reply.header.size > 0 && reply.header.data[0] != 0x08;
}

static bool peer_greet(const peer *one)
{
    uint8_t reply[sizeof(greeting)];
    return peer_say(one, greeting, sizeof(greeting)) && peer_hear(one, reply, sizeof(reply));
}

/* ---- the collector ---- */

static void start_server(const char *program)
{
    char path[512];
    char urls[2][64];
    char http[32];
    char database[64];
    tls_port = free_port();
    tcp_port = free_port();
    http_port = free_port();
    snprintf(path, sizeof(path), "%.400s/../bin/sojournd", program);
    snprintf(urls[0], sizeof(urls[0]), "tls+tcp://127.0.0.1:%u", tls_port);
    snprintf(urls[1], sizeof(urls[1]), "tcp://127.0.0.1:%u", tcp_port);
    snprintf(http, sizeof(http), "127.0.0.1:%u", http_port);
    snprintf(database, sizeof(database), "%s/lab.db", folder);
    server = fork();
    if (server == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(126);
        }
        execl(path, "sojournd", "--database", database, "--listen", urls[0], "--listen", urls[1],
              "--http", http, (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 1000; i++) {
        const int probe = connect_to(http_port);
        if (probe >= 0) {
            close(probe);
            return;
        }
        usleep(10000);
    }
    die("the collector does not listen");
}

static unsigned resident_kb(void)
{
    char name[64];
    unsigned long long pages = 0;
    snprintf(name, sizeof(name), "/proc/%d/statm", (int)server);
    FILE *file = fopen(name, "re");
    if (file == NULL || fscanf(file, "%*s %llu", &pages) != 1) {
        die("the collector has ended");
    }
    fclose(file);
    return (unsigned)(pages * (unsigned long long)sysconf(_SC_PAGESIZE) / 1024);
}

static unsigned descriptors(void)
{
    char command[64];
    unsigned count = 0;
    snprintf(command, sizeof(command), "ls /proc/%d/fd | wc -l", (int)server);
    FILE *told = popen(command, "re");
    if (told == NULL || fscanf(told, "%u", &count) != 1) {
        die("the collector's descriptors");
    }
    pclose(told);
    return count;
}

static double server_cpu_s(void)
{
    struct timespec spent = {0};
    clockid_t clock;
    if (clock_getcpuclockid(server, &clock) != 0 || clock_gettime(clock, &spent) != 0) {
        die("the collector's CPU");
    }
    return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

static void stop_server(void)
{
    int status = 0;
    const uint64_t asked = now_us();
    kill(server, SIGTERM);
    if (waitpid(server, &status, 0) != server || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        die("the collector did not end well");
    }
    printf("SIGTERM: %.2f s\n", (double)(now_us() - asked) / 1e6);
    server = 0;
}

/* ---- the good sender ---- */

static frame_maker maker;

static void begin_session(peer *good)
{
    frame_maker_init(&maker, 0x5a);
    maker.steady = true;
    if (!peer_open(good, true) || !peer_greet(good) || !peer_ask(good, frame_maker_hello(&maker)) ||
        !peer_ask(good, frame_maker_session(&maker)) ||
        !peer_ask(good, frame_maker_module(&maker)) ||
        !peer_ask(good, frame_maker_thread(&maker))) {
        die("the good sender is refused");
    }
}

static int compare(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void print_latencies(const char *what, uint32_t *latencies_us, size_t count)
{
    qsort(latencies_us, count, sizeof(*latencies_us), compare);
    printf("%s p50 %.2f ms, p99 %.2f ms, longest %.1f ms; ", what, latencies_us[count / 2] / 1e3,
           latencies_us[count * 99 / 100] / 1e3, latencies_us[count - 1] / 1e3);
}

/* Sends a frame. Returns the microseconds until the reply. */
static uint32_t time_of(const peer *good, sj_slice frame)
{
    const uint64_t asked = now_us();
    if (!peer_ask(good, frame)) {
        die("the good sender was hung up on");
    }
    return (uint32_t)(now_us() - asked);
}

static sj_slice make_frame(uint16_t type, const void *header, size_t size, uint8_t *space,
                           size_t space_bytes)
{
    size_t written = 0;
    const sj_slice head = {.data = header, .size = size};
    if (sj_frame_write(type, head, (sj_slice){0}, space, space_bytes, &written) != SJ_OK) {
        die("a frame");
    }
    return (sj_slice){.data = space, .size = written};
}

/* Sends for `seconds`, and prints how late the acknowledgements were. Returns the largest memory of
 * the collector in kB. */
static unsigned send_for(const peer *good, unsigned seconds, const char *name)
{
    const uint64_t start = now_us();
    const double cpu_s = server_cpu_s();
    uint8_t space[64];
    const sj_slice ping = make_frame(SJ_FRAME_PING, NULL, 0, space, sizeof(space));
    size_t count = 0;
    unsigned largest = 0;
    for (uint64_t due = start; due < start + seconds * UINT64_C(1000000) && count < SAMPLES_MAX;
         due += BLOCK_EVERY_MS * 1000) {
        const sj_slice block = frame_maker_block(&maker, EVENTS, 0);
        const uint64_t now = now_us();
        if (now < due) {
            usleep((useconds_t)(due - now));
        } else {
            due = now; /* a late reply delays all later blocks */
        }
        samples_us[count] = time_of(good, block);
        pings_us[count++] = time_of(good, ping);
        if (count % 64 == 0) {
            const unsigned now_kb = resident_kb();
            largest = now_kb > largest ? now_kb : largest;
        }
    }
    printf("%-8s %zu blocks: ", name, count);
    print_latencies("acknowledged after", samples_us, count);
    print_latencies("PING", pings_us, count);
    printf("collector %.0f %% of a core\n",
           100 * (server_cpu_s() - cpu_s) / ((double)(now_us() - start) / 1e6));
    return largest;
}

/* ---- attackers ---- */

static void only_shake(void)
{
    peer one;
    (void)peer_open(&one, true);
    peer_close(&one);
}

static void never_read(void)
{
    uint8_t space[64];
    peer one;
    const sj_slice ping = make_frame(SJ_FRAME_PING, NULL, 0, space, sizeof(space));
    if (peer_open(&one, rand() % 2 == 0) && peer_say(&one, greeting, sizeof(greeting))) {
        for (int i = 0; i < 40 && peer_tell(&one, ping); i++) {
        }
    }
    peer_close(&one);
}

static void stay_silent(void)
{
    int crowd[64];
    for (int i = 0; i < 64; i++) {
        crowd[i] = connect_to(i % 2 == 0 ? tls_port : tcp_port);
    }
    usleep(20000);
    for (int i = 0; i < 64; i++) {
        close(crowd[i]);
    }
}

static void enrol_in_vain(void)
{
    static uint8_t header[60000];
    static uint8_t space[sizeof(header) + 64];
    peer one;
    header[0] = 0x0a; /* a device id, followed by tags up to the end */
    header[1] = 16;
    for (size_t i = 18; i + 1 < sizeof(header); i += 2) {
        header[i] = 0x4a;
    }
    const sj_slice frame = make_frame(SJ_FRAME_ENROL, header, sizeof(header), space, sizeof(space));
    if (peer_open(&one, rand() % 2 == 0) && peer_say(&one, greeting, sizeof(greeting))) {
        for (int i = 0; i < 16 && peer_tell(&one, frame); i++) {
        }
    }
    peer_close(&one);
}

static void speak_cleartext(void)
{
    const int one = connect_to(tls_port);
    (void)!send(one, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    close(one);
}

static void send_garbage(void)
{
    uint8_t noise[4096];
    peer one;
    for (size_t i = 0; i < sizeof(noise); i++) {
        noise[i] = (uint8_t)rand();
    }
    if (peer_open(&one, false)) {
        (void)peer_say(&one, greeting, sizeof(greeting));
        (void)peer_say(&one, noise, sizeof(noise));
    }
    peer_close(&one);
}

static void break_off(void)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    peer one;
    if (peer_open(&one, false)) {
        (void)peer_say(&one, greeting, (size_t)rand() % sizeof(greeting));
        setsockopt(one.socket, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    }
    peer_close(&one);
}

static void ask_http_slowly(void)
{
    int crowd[32];
    for (int i = 0; i < 32; i++) {
        crowd[i] = connect_to(http_port);
        (void)!send(crowd[i], "GET /healthz HTTP/1.1\r\nX: ", 26, MSG_NOSIGNAL);
    }
    usleep(50000);
    for (int i = 0; i < 32; i++) {
        close(crowd[i]);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} kinds[SHOWN_KINDS] = {
    {"handshakes", only_shake},    {"unread answers", never_read}, {"silent crowds", stay_silent},
    {"enrolments", enrol_in_vain}, {"cleartext", speak_cleartext}, {"nonsense", send_garbage},
    {"resets", break_off},         {"slow HTTP", ask_http_slowly},
};

static void attack(unsigned seed, unsigned kind_count, uint64_t end_us)
{
    srand(seed);
    /* Attackers stand for other machines, so they run with a lower priority than the collector. */
    const struct sched_param ordinary = {0};
    (void)sched_setscheduler(0, SCHED_OTHER, &ordinary);
    (void)!nice(ATTACKERS_NICE);
    while (now_us() < end_us) {
        const unsigned kind = (unsigned)rand() % kind_count;
        kinds[kind].run();
        __atomic_add_fetch(&attacks->counts[kind], 1, __ATOMIC_RELAXED);
    }
    _exit(0);
}

static void run_storm(unsigned seconds, unsigned kind_count)
{
    pid_t attackers[ATTACKERS];
    peer good;
    begin_session(&good);
    (void)send_for(&good, 5, "warm-up");
    unsigned before_kb = send_for(&good, seconds, "alone");
    const unsigned before = descriptors();
    const uint64_t end_us = now_us() + seconds * UINT64_C(1000000);
    for (unsigned i = 0; i < ATTACKERS; i++) {
        attackers[i] = fork();
        if (attackers[i] == 0) {
            close(good.socket);
            attack(i + 1, kind_count, end_us);
        }
    }
    const unsigned largest = send_for(&good, seconds, "beside");
    for (unsigned i = 0; i < ATTACKERS; i++) {
        waitpid(attackers[i], NULL, 0);
    }
    const uint64_t over = now_us();
    unsigned after = descriptors();
    while (after > before && now_us() - over < BACK_SECONDS * UINT64_C(1000000)) {
        usleep(100000);
        after = descriptors();
    }
    printf("descriptors %u before, %u after %.1f s; memory %u kB before, %u at most", before, after,
           (double)(now_us() - over) / 1e6, before_kb, largest);
    (void)send_for(&good, 5, "\nafter");
    usleep(BACK_SECONDS * 1000000 - 5000000);
    printf("memory %u kB half a minute later\n", resident_kb());
    for (unsigned i = 0; i < kind_count; i++) {
        printf("%s%s %llu", i == 0 ? "" : ", ", kinds[i].name,
               (unsigned long long)attacks->counts[i]);
    }
    printf("\n");
    peer_close(&good);
}

static void run_idle(unsigned count, bool is_tls)
{
    peer *devices = calloc(count, sizeof(*devices));
    const unsigned before_kb = resident_kb();
    const uint64_t start = now_us();
    frame_maker_init(&maker, 0x5a);
    for (unsigned i = 0; devices != NULL && i < count; i++) {
        maker.session_number = i + 1;
        if (!peer_open(&devices[i], is_tls) || !peer_greet(&devices[i]) ||
            !peer_ask(&devices[i], frame_maker_hello(&maker))) {
            die("a device is refused");
        }
    }
    printf("%u devices%s connected in %.1f s; memory %u kB before, %u kB", count,
           is_tls ? " over TLS" : "", (double)(now_us() - start) / 1e6, before_kb, resident_kb());
    fflush(stdout);
    const double cpu_s = server_cpu_s();
    usleep(IDLE_SECONDS * 1000000);
    printf(", %u kB half a minute later; %.2f %% of a core\n", resident_kb(),
           100 * (server_cpu_s() - cpu_s) / IDLE_SECONDS);
    for (unsigned i = 0; i < count; i += count / 100 + 1) {
        maker.session_number = i + 1;
        if (!peer_ask(&devices[i], frame_maker_hello(&maker))) {
            die("an idle device was hung up on");
        }
    }
}

int main(int argc, char **argv)
{
    const struct rlimit files = {.rlim_cur = 20000, .rlim_max = 20000};
    const char *what = argc > 2 ? argv[1] : "";
    const unsigned many = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    char command[64];
    char *slash = strrchr(argv[0], '/');
    if (many == 0 || slash == NULL || mkdtemp(folder) == NULL) {
        fprintf(stderr, "edge_bench storm|handshakes SECONDS, or edge_bench idle DEVICES [tls]\n");
        return 2;
    }
    *slash = '\0';
    setrlimit(RLIMIT_NOFILE, &files);
    samples_us = malloc(SAMPLES_MAX * sizeof(*samples_us));
    pings_us = malloc(SAMPLES_MAX * sizeof(*pings_us));
    attacks =
        mmap(NULL, sizeof(*attacks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (samples_us == NULL || pings_us == NULL || attacks == MAP_FAILED ||
        gnutls_certificate_allocate_credentials(&trust) != GNUTLS_E_SUCCESS) {
        die("memory");
    }
    start_server(argv[0]);
    if (strcmp(what, "idle") == 0) {
        run_idle(many, argc > 3);
    } else {
        run_storm(many, strcmp(what, "handshakes") == 0 ? 1 : SHOWN_KINDS);
    }
    stop_server();
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) != 0;
}
