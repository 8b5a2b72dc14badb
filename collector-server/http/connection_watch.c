/* Design: this component only shuts sockets down, and never closes them. It does so under the
 * lock that libmicrohttpd's closing notification takes to remove a socket. So a descriptor
 * cannot belong to another file meanwhile. The library then sees the end of the stream and
 * closes the socket on its own thread. */
#include "collector-server/http/connection_watch.h"

#include "proto/base/address_bucket.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

/* hash buckets of addresses; a shared bucket only makes the limit stricter */
enum { BUCKETS = 1024 };

/* In the order in which connections are displaced. */
typedef enum sj_phase {
    SJ_PHASE_REQUEST,
    SJ_PHASE_RESPONSE,
    SJ_PHASE_STREAM,
    SJ_PHASE_GONE /* shut down: libmicrohttpd closes it soon */
} sj_phase;

typedef struct watched {
    struct MHD_Connection *connection; /* NULL: unused entry */
    int socket;
    uint64_t deadline_ns;
    uint64_t since_ns; /* start of this phase */
    sj_phase phase;
    unsigned bucket; /* bucket of its address */
} watched;

struct sj_connection_watch {
    pthread_mutex_t lock;
    watched entries[SJ_HTTP_CONNECTIONS_AT_ONCE];
    unsigned open;             /* entries that are not gone */
    unsigned open_of[BUCKETS]; /* the same by bucket */
};

/* Returns CLOCK_MONOTONIC in ns, plus `seconds`. */
static uint64_t in_seconds(unsigned seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec + seconds) * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

sj_status sj_connection_watch_new(sj_connection_watch **watch)
{
    sj_connection_watch *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    pthread_mutex_init(&made->lock, NULL);
    *watch = made;
    return SJ_OK;
}

void sj_connection_watch_free(sj_connection_watch *watch)
{
    if (watch != NULL) {
        pthread_mutex_destroy(&watch->lock);
        free(watch);
    }
}

static watched *find_entry(sj_connection_watch *watch, const struct MHD_Connection *connection)
{
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_AT_ONCE; i++) {
        if (watch->entries[i].connection == connection) {
            return &watch->entries[i];
        }
    }
    return NULL;
}

static unsigned bucket_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info != NULL ? info->client_addr : NULL;
    if (address != NULL && address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        return sj_address_bucket(&v4->sin_addr, sizeof(v4->sin_addr), BUCKETS);
    }
    if (address != NULL && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        return sj_address_bucket(&v6->sin6_addr, sizeof(v6->sin6_addr), BUCKETS);
    }
    return 0;
}

/* Adds `change` to the numbers of open connections. */
static void count(sj_connection_watch *watch, const watched *entry, int change)
{
    watch->open += (unsigned)change;
    watch->open_of[entry->bucket] += (unsigned)change;
}

/* Shuts a connection down. It keeps its entry until libmicrohttpd has closed it. */
static void end_connection(sj_connection_watch *watch, watched *entry)
{
    shutdown(entry->socket, SHUT_RDWR);
    entry->deadline_ns = UINT64_MAX;
    entry->phase = SJ_PHASE_GONE;
    count(watch, entry, -1);
}

/* True if the connection is not a stream and its address has too many connections. */
static bool is_crowding(const sj_connection_watch *watch, const watched *entry)
{
    return entry->phase <= SJ_PHASE_RESPONSE &&
           watch->open_of[entry->bucket] > SJ_HTTP_CONNECTIONS_OF_ADDRESS;
}

/* True if the connection `one` is displaced before `other`. NULL is displaced last. */
static bool goes_before(const sj_connection_watch *watch, const watched *one, const watched *other)
{
    if (other == NULL || is_crowding(watch, one) != is_crowding(watch, other)) {
        return other == NULL || is_crowding(watch, one);
    }
    return one->phase < other->phase ||
           (one->phase == other->phase && one->since_ns < other->since_ns);
}

/* If there are too many connections, ends the first one in the order of displacement. */
static void make_way(sj_connection_watch *watch)
{
    watched *first = NULL;
    if (watch->open < SJ_HTTP_CONNECTIONS_MAX) {
        return;
    }
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_AT_ONCE; i++) {
        watched *entry = &watch->entries[i];
        if (entry->connection != NULL && entry->phase != SJ_PHASE_GONE &&
            goes_before(watch, entry, first)) {
            first = entry;
        }
    }
    if (first != NULL) {
        end_connection(watch, first);
    }
}

void sj_connection_watch_notify(void *context, struct MHD_Connection *connection,
                                void **socket_context, enum MHD_ConnectionNotificationCode code)
{
    sj_connection_watch *watch = context;
    (void)socket_context;
    pthread_mutex_lock(&watch->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        make_way(watch);
        watched *free_entry = find_entry(watch, NULL);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (free_entry != NULL && info != NULL) {
            *free_entry = (watched){.connection = connection,
                                    .socket = info->connect_fd,
                                    .since_ns = in_seconds(0),
                                    .deadline_ns = in_seconds(SJ_HTTP_REQUEST_SECONDS),
                                    .bucket = bucket_of(connection)};
            count(watch, free_entry, 1);
        }
    } else {
        watched *entry = find_entry(watch, connection);
        if (entry != NULL) {
            count(watch, entry, entry->phase != SJ_PHASE_GONE ? -1 : 0);
            *entry = (watched){0};
        }
    }
    pthread_mutex_unlock(&watch->lock);
}

static void enter_phase(sj_connection_watch *watch, const struct MHD_Connection *connection,
                        sj_phase phase, uint64_t deadline_ns)
{
    pthread_mutex_lock(&watch->lock);
    watched *entry = find_entry(watch, connection);
    if (entry != NULL && entry->phase != SJ_PHASE_GONE) {
        entry->phase = phase;
        entry->since_ns = in_seconds(0);
        entry->deadline_ns = deadline_ns;
    }
    pthread_mutex_unlock(&watch->lock);
}

void sj_connection_watch_answering(sj_connection_watch *watch, struct MHD_Connection *connection,
                                   int unlimited)
{
    enter_phase(watch, connection, unlimited ? SJ_PHASE_STREAM : SJ_PHASE_RESPONSE,
                unlimited ? UINT64_MAX : in_seconds(SJ_HTTP_RESPONSE_SECONDS));
}

void sj_connection_watch_answered(sj_connection_watch *watch, struct MHD_Connection *connection)
{
    enter_phase(watch, connection, SJ_PHASE_REQUEST, in_seconds(SJ_HTTP_REQUEST_SECONDS));
}

void sj_connection_watch_sweep(sj_connection_watch *watch, uint64_t now_ns)
{
    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < SJ_HTTP_CONNECTIONS_AT_ONCE; i++) {
        watched *entry = &watch->entries[i];
        if (entry->connection != NULL && now_ns > entry->deadline_ns) {
            end_connection(watch, entry);
        }
    }
    pthread_mutex_unlock(&watch->lock);
}
