/* Design notes
 *
 * One turn of the loop has these steps. First it serves devices, then strangers for a limited time,
 * so that many strangers cost devices little; epoll reports the rest again. Then it accepts new
 * connections and sends the answers of other threads. Four times a second, it closes overdue
 * connections. Every loop has a limit, and no call blocks. */
#include "collector-server/edge/edge_internal.h"

#include "proto/base/address_bucket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 250,
    EVENTS = 256,
    ACCEPTS = 64,            /* limit for one endpoint in a turn */
    STRANGERS_TURN_US = 500, /* limit for strangers in a turn */
    REPLY_ROUNDS = 4,
    RESERVED_DESCRIPTORS = 384,
    LEAST_CONNECTIONS = 64
};

#define WAKE_EVENT UINT64_MAX
#define ENDPOINT_EVENT (UINT64_MAX - 1 - SJ_EDGE_ENDPOINTS)

const sj_edge_limits sj_edge_default_limits = {
    .connections = 32768,
    .strangers = 2048,
    .strangers_per_address = 1024,
    .connections_per_device = 64,
    .pending = 64,
    .message_bytes = (8 << 20) + (128 << 10) + SJ_SP_WAY_BACK_MAX_BYTES,
    .stranger_message_bytes = 66 << 10,
    .stranger_bytes = 64 << 20,
    .reply_bytes = 512 << 10,
    .reading_bytes = 32 << 20,
    .stranger_reading_bytes = 16 << 20,
    .greeting_ms = 10000,
    .stranger_ms = 20000,
    .stall_ms = 30000,
    .grace_ms = 50,
};

static int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint32_t bucket_of(const sj_edge_peer *peer)
{
    return sj_address_bucket(peer->address, peer->family == AF_INET ? 4 : sizeof(peer->address),
                             SJ_EDGE_BUCKETS);
}

static void watch_endpoints(sj_edge *edge, bool is_watched)
{
    for (unsigned i = 0; i < edge->endpoint_count && edge->is_accepting != is_watched; i++) {
        struct epoll_event event = {.events = is_watched ? EPOLLIN : 0,
                                    .data.u64 = ENDPOINT_EVENT + i};
        (void)epoll_ctl(edge->epoll, EPOLL_CTL_MOD, edge->endpoints[i].descriptor, &event);
    }
    edge->is_accepting = is_watched;
}

static sj_connection *claim_slot(sj_edge *edge)
{
    if (edge->free_count > 0) {
        return &edge->slots[edge->free_slots[--edge->free_count]];
    }
    sj_connection *fresh = &edge->slots[edge->slots_used];
    fresh->index = edge->slots_used++;
    fresh->generation = 1;
    return fresh;
}

static void admit(sj_edge *edge, const sj_endpoint *endpoint, int descriptor,
                  const sj_edge_peer *peer, uint32_t bucket)
{
    const sj_slice greeting = {.data = sj_sp_rep_greeting, .size = SJ_SP_PEER_GREETING_BYTES};
    sj_connection *connection = claim_slot(edge);
    *connection = (sj_connection){
        .line.descriptor = descriptor,
        .state = endpoint->is_tls ? SJ_CONNECTION_SHAKING : SJ_CONNECTION_GREETING,
        .generation = connection->generation,
        .index = connection->index,
        .is_dirty = connection->is_dirty,
        .bucket = bucket,
        .wanted = EPOLLIN,
        .since_ms = edge->now_ms,
        .read_ms = edge->now_ms,
        .sent_ms = edge->now_ms,
        .sender.is_peer = true,
        .peer = *peer,
        .reader.is_ipc = endpoint->is_ipc,
    };
    edge->counters.accepted++;
    edge->counters.open++;
    sj_strangers_add(edge, connection);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = sj_connection_name(connection)};
    if (epoll_ctl(edge->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0 ||
        (endpoint->is_tls && sj_line_secure(&connection->line, &edge->identity) != SJ_OK)) {
        sj_connection_hang_up(edge, connection);
        return;
    }
    if (!endpoint->is_tls && sj_connection_put(edge, connection, greeting)) {
        (void)sj_connection_flush(edge, connection);
    }
}

/* Closes a stranger to make a new connection possible. Returns false if there are none. */
static bool make_way(sj_edge *edge)
{
    sj_connection *victim = sj_strangers_next_to_go(edge);
    if (victim == NULL) {
        return false;
    }
    edge->counters.displaced++;
    sj_connection_hang_up(edge, victim);
    return true;
}

static void accept_some(sj_edge *edge, const sj_endpoint *endpoint)
{
    for (int i = 0; i < ACCEPTS; i++) {
        sj_edge_peer peer;
        if (!sj_strangers_have_slot(edge)) {
            watch_endpoints(edge, false); /* new connections wait in the kernel's queue */
            return;
        }
        const int descriptor = sj_endpoint_accept(endpoint, &peer);
        if (descriptor == -2) { /* other parts of this process use up the reserved descriptors */
            (void)make_way(edge);
            watch_endpoints(edge, false);
            return;
        }
        if (descriptor < 0) {
            return;
        }
        if (!sj_strangers_are_full(edge) || make_way(edge)) {
            admit(edge, endpoint, descriptor, &peer, endpoint->is_ipc ? 0 : bucket_of(&peer));
        } else {
            close(descriptor); /* devices use all connections, so there is no stranger to
                                * displace */
        }
    }
}

static void serve_events(sj_edge *edge, const struct epoll_event *events, int count)
{
    const int64_t end_us = monotonic_us() + STRANGERS_TURN_US;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < count; i++) {
            const uint64_t name = events[i].data.u64;
            sj_connection *connection = name < ENDPOINT_EVENT ? sj_connection_of(edge, name) : NULL;
            if (connection == NULL || connection->is_stranger != (pass == 1)) {
                continue;
            }
            (void)sj_connection_serve(edge, connection, events[i].events);
            if (pass == 1 && monotonic_us() >= end_us) {
                return;
            }
        }
    }
}

static void accept_from_all(sj_edge *edge, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 >= ENDPOINT_EVENT && events[i].data.u64 != WAKE_EVENT) {
            accept_some(edge, &edge->endpoints[events[i].data.u64 - ENDPOINT_EVENT]);
        }
    }
}

static void send_reply(sj_edge *edge, const sj_reply *reply)
{
    const sj_slice bytes = {.data = (const uint8_t *)(reply + 1), .size = reply->size};
    sj_connection *connection = sj_connection_of(edge, reply->connection);
    if (connection == NULL) {
        edge->counters.late++;
        return;
    }
    connection->pending -= connection->pending > 0;
    if (sj_connection_put(edge, connection, bytes)) {
        connection->is_closing = connection->is_closing || reply->is_last;
        if (!connection->is_dirty) {
            connection->is_dirty = true;
            edge->dirty[edge->dirty_count++] = connection->index;
        }
    }
}

/* Sends the output of answered connections, which can then be read again. */
static void flush_dirty(sj_edge *edge)
{
    const uint32_t count = edge->dirty_count;
    edge->dirty_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        sj_connection *connection = &edge->slots[edge->dirty[i]];
        connection->is_dirty = false;
        if (connection->state == SJ_CONNECTION_FREE || connection->state == SJ_CONNECTION_SHAKING ||
            !sj_connection_flush(edge, connection)) {
            continue;
        }
        if (connection->stash_end != 0 || sj_line_holds_bytes(&connection->line)) {
            (void)sj_connection_serve(edge, connection, 0);
        } else {
            sj_connection_arm(edge, connection);
        }
    }
}

static void offer_held(sj_edge *edge)
{
    for (uint32_t i = 0; i < edge->slots_used; i++) {
        sj_connection *connection = &edge->slots[i];
        if (connection->state != SJ_CONNECTION_OPEN || connection->held == NULL ||
            !sj_connection_offer(edge, connection)) {
            continue;
        }
        if (!connection->is_blocked) {
            (void)sj_connection_serve(edge, connection, 0);
        }
    }
}

/* Sends answers of other threads, and offers held messages after sj_edge_resume. Returns true if
 * there was anything to do. */
static bool handle_replies(sj_edge *edge, bool *is_stopping)
{
    bool may_continue = false;
    sj_slice left = sj_replies_collect(&edge->replies, &may_continue, is_stopping);
    const bool any = left.size != 0 || may_continue;
    for (const sj_reply *reply; (reply = sj_reply_next(&left)) != NULL;) {
        send_reply(edge, reply);
    }
    flush_dirty(edge);
    if (may_continue) {
        offer_held(edge);
    }
    return any;
}

static void tick(sj_edge *edge)
{
    for (uint32_t i = 0; i < edge->slots_used; i++) {
        sj_connection *connection = &edge->slots[i];
        if (connection->state == SJ_CONNECTION_FREE) {
            continue;
        }
        if (sj_connection_is_overdue(edge, connection)) {
            edge->counters.timed_out++;
            sj_connection_hang_up(edge, connection);
        } else if (connection->is_blocked && connection->held == NULL) {
            connection->is_blocked = false; /* it waited for the account */
            (void)sj_connection_serve(edge, connection, 0);
        }
    }
    offer_held(edge);
    if (!edge->is_accepting) {
        watch_endpoints(edge, true);
    }
    pthread_mutex_lock(&edge->replies.lock);
    edge->shown = edge->counters;
    edge->shown.reading_bytes = edge->reading.used + edge->stranger_reading.used;
    pthread_mutex_unlock(&edge->replies.lock);
}

/* Returns the maximum sleep of the loop. It is short while new connections wait until the oldest
 * stranger may be displaced. */
static int sleep_ms(const sj_edge *edge)
{
    return edge->is_accepting ? TICK_MS : (int)edge->limits.grace_ms;
}

static void *run(void *argument)
{
    sj_edge *edge = argument;
    struct epoll_event events[EVENTS];
    int64_t ticked_ms = 0;
    bool is_stopping = false;
    bool is_busy = false;
    while (!is_stopping) {
        int count = epoll_wait(edge->epoll, events, EVENTS, is_busy ? 0 : sleep_ms(edge));
        uint64_t woken;
        count = count < 0 ? 0 : count;
        edge->now_ms = monotonic_us() / 1000;
        (void)!read(edge->replies.wake, &woken, sizeof(woken));
        serve_events(edge, events, count);
        accept_from_all(edge, events, count);
        is_busy = true; /* Answers cause new requests, so the number of rounds is limited. */
        for (int i = 0; i < REPLY_ROUNDS && is_busy && !is_stopping; i++) {
            is_busy = handle_replies(edge, &is_stopping);
        }
        if (!edge->is_accepting && sj_strangers_have_slot(edge)) {
            watch_endpoints(edge, true);
        }
        if (edge->now_ms - ticked_ms >= TICK_MS) {
            ticked_ms = edge->now_ms;
            tick(edge);
        }
    }
    return NULL;
}

/* Limits the connections to the process's descriptors, minus those that the rest of the process
 * needs. */
static void fit_limits(sj_edge *edge)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return;
    }
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    const rlim_t spare = files.rlim_cur > 2 * RESERVED_DESCRIPTORS + LEAST_CONNECTIONS
                             ? files.rlim_cur - RESERVED_DESCRIPTORS
                             : files.rlim_cur / 2;
    if (edge->limits.connections > spare) {
        edge->limits.connections = (uint32_t)spare;
    }
    if (edge->limits.strangers > edge->limits.connections / 2) {
        edge->limits.strangers = edge->limits.connections / 2;
    }
    if (edge->limits.strangers_per_address > edge->limits.strangers / 2) {
        edge->limits.strangers_per_address = edge->limits.strangers / 2;
    }
}

static sj_status allocate(sj_edge *edge, sj_error *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE_EVENT};
    fit_limits(edge);
    edge->reading.limit = edge->limits.reading_bytes;
    edge->stranger_reading.limit = edge->limits.stranger_reading_bytes;
    edge->slots = calloc(edge->limits.connections, sizeof(*edge->slots));
    edge->free_slots = calloc(edge->limits.connections, sizeof(*edge->free_slots));
    edge->dirty = calloc(edge->limits.connections, sizeof(*edge->dirty));
    edge->epoll = epoll_create1(EPOLL_CLOEXEC);
    const sj_status woken = sj_replies_init(&edge->replies);
    if (edge->slots == NULL || edge->free_slots == NULL || edge->dirty == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for %u connections", edge->limits.connections);
    }
    return woken == SJ_OK && edge->epoll >= 0 &&
                   epoll_ctl(edge->epoll, EPOLL_CTL_ADD, edge->replies.wake, &event) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot watch connections: %s", strerror(errno));
}

static sj_status open_endpoints(sj_edge *edge, const sj_edge_options *options, sj_error *error)
{
    if (options->url_count > SJ_EDGE_ENDPOINTS) {
        return sj_fail(error, SJ_ELIMIT, "at most %d addresses", (int)SJ_EDGE_ENDPOINTS);
    }
    if (options->certificate != NULL) {
        SJ_TRY(sj_line_identity_init(&edge->identity, options->certificate, options->key, error));
        edge->has_identity = true;
    }
    for (size_t i = 0; i < options->url_count; i++) {
        sj_endpoint *endpoint = &edge->endpoints[i];
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = ENDPOINT_EVENT + i};
        SJ_TRY(sj_endpoint_open(endpoint, options->urls[i], error));
        edge->endpoint_count++;
        if (endpoint->is_tls && !edge->has_identity) {
            return sj_fail(error, SJ_EINVAL, "%s needs a certificate", options->urls[i]);
        }
        if (epoll_ctl(edge->epoll, EPOLL_CTL_ADD, endpoint->descriptor, &event) != 0) {
            return sj_fail(error, SJ_EIO, "cannot watch %s: %s", options->urls[i], strerror(errno));
        }
    }
    return SJ_OK;
}

static void free_edge(sj_edge *edge)
{
    for (unsigned i = 0; i < edge->endpoint_count; i++) {
        sj_endpoint_close(&edge->endpoints[i]);
    }
    if (edge->epoll >= 0) {
        close(edge->epoll);
    }
    sj_replies_deinit(&edge->replies);
    sj_line_identity_deinit(&edge->identity);
    sj_hash_map_deinit(&edge->devices);
    free(edge->slots);
    free(edge->free_slots);
    free(edge->dirty);
    free(edge);
}

sj_status sj_edge_start(const sj_edge_options *options, sj_edge **edge, sj_error *error)
{
    sj_edge *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the collector's edge");
    }
    made->limits = options->limits != NULL ? *options->limits : sj_edge_default_limits;
    made->handle = options->handle;
    made->context = options->context;
    sj_strangers_init(made);
    made->is_accepting = true;
    sj_status status = allocate(made, error);
    if (status == SJ_OK) {
        status = open_endpoints(made, options, error);
    }
    *edge = made; /* set before messages can arrive, because `handle` may want to answer */
    if (status == SJ_OK && pthread_create(&made->thread, NULL, run, made) != 0) {
        status = sj_fail(error, SJ_EIO, "cannot start the thread of the edge");
    }
    if (status != SJ_OK) {
        *edge = NULL;
        free_edge(made);
        return status;
    }
    pthread_setname_np(made->thread, "edge"); /* shown by top and perf */
    return SJ_OK;
}

void sj_edge_reply(sj_edge *edge, const sj_edge_message *message, sj_slice body, bool is_last)
{
    uint8_t prefix[SJ_SP_PEER_PREFIX_BYTES];
    const size_t prefix_bytes =
        sj_sp_reply_prefix(message->is_ipc, message->way_back_bytes + body.size, prefix);
    const sj_slice parts[3] = {{.data = prefix, .size = prefix_bytes},
                               {.data = message->way_back, .size = message->way_back_bytes},
                               body};
    sj_replies_add(&edge->replies, message->connection, is_last, parts);
}

void sj_edge_flush(sj_edge *edge)
{
    sj_replies_wake(&edge->replies);
}

void sj_edge_resume(sj_edge *edge)
{
    pthread_mutex_lock(&edge->replies.lock);
    edge->replies.may_continue = true;
    pthread_mutex_unlock(&edge->replies.lock);
    sj_replies_wake(&edge->replies);
}

void sj_edge_stop(sj_edge *edge)
{
    if (edge == NULL) {
        return;
    }
    pthread_mutex_lock(&edge->replies.lock);
    edge->replies.is_stopping = true;
    pthread_mutex_unlock(&edge->replies.lock);
    sj_replies_wake(&edge->replies);
    pthread_join(edge->thread, NULL);
    for (uint32_t i = 0; i < edge->slots_used; i++) {
        if (edge->slots[i].state != SJ_CONNECTION_FREE) {
            sj_connection_hang_up(edge, &edge->slots[i]);
        }
    }
    free_edge(edge);
}

void sj_edge_get_counters(sj_edge *edge, sj_edge_counters *counters)
{
    pthread_mutex_lock(&edge->replies.lock);
    *counters = edge->shown;
    pthread_mutex_unlock(&edge->replies.lock);
}
