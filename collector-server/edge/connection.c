/* Design notes
 *
 * A function that may end a connection returns false if it did; then its caller must not use the
 * connection any more. A connection is not read while it has `pending` unanswered messages, holds a
 * message that `handle` did not accept, or its byte account is used up. Bytes that were read but
 * cannot be parsed yet are stashed, because TLS bytes cannot stay in the socket. */
#include "collector-server/edge/edge_internal.h"

#include <stdlib.h>
#include <sys/epoll.h>

enum {
    TURN_BYTES = 1 << 20, /* limit of bytes that are read from one connection in a turn of the
                           * loop */
    STRANGER_READ_BYTES = 4096,
    KEPT_OUT_BYTES = 4096,
    SLOWEST_BYTES_PER_MS = 64
};

uint64_t sj_connection_name(const sj_connection *connection)
{
    return (uint64_t)connection->generation << 32 | connection->index;
}

sj_connection *sj_connection_of(sj_edge *edge, uint64_t name)
{
    const uint32_t index = (uint32_t)name;
    if (index >= edge->slots_used) {
        return NULL;
    }
    sj_connection *connection = &edge->slots[index];
    return connection->state != SJ_CONNECTION_FREE && sj_connection_name(connection) == name
               ? connection
               : NULL;
}

/* Returns the key of a device in the map of connected devices. The key has 95 bits of the
 * device's id. Two devices with equal keys would share the limit of connections. */
static sj_hash_entry key_of(const sj_sender *sender)
{
    uint64_t halves[2];
    memcpy(halves, sender->device, sizeof(halves));
    return (sj_hash_entry){.key = halves[0] ^ halves[1] * UINT64_C(0x9e3779b97f4a7c15),
                           .sub = (uint32_t)(halves[1] >> 32 ^ halves[1]) | 1};
}

static void forget_device(sj_edge *edge, const sj_connection *connection)
{
    const sj_hash_entry key = key_of(&connection->sender);
    sj_hash_entry *entry = sj_hash_map_find(&edge->devices, key.key, key.sub);
    if (entry != NULL && --entry->first == 0) {
        sj_hash_map_remove(&edge->devices, entry);
    }
}

static sj_byte_account *account_of(sj_edge *edge, const sj_connection *connection)
{
    return connection->is_stranger ? &edge->stranger_reading : &edge->reading;
}

/* Returns the bytes that a connection has charged to its account. */
static size_t charge_of(const sj_connection *connection)
{
    return connection->reader.capacity + connection->held_charge + connection->stash_end;
}

static void free_stash(sj_edge *edge, sj_connection *connection)
{
    account_of(edge, connection)->used -= connection->stash_end;
    free(connection->stash);
    connection->stash = NULL;
    connection->stash_at = connection->stash_end = 0;
}

static void free_held(sj_edge *edge, sj_connection *connection, bool with_memory)
{
    if (connection->held != NULL) {
        account_of(edge, connection)->used -= connection->held_charge;
        if (with_memory) {
            free(connection->held->memory);
        }
        free(connection->held);
        connection->held = NULL;
        connection->held_charge = 0;
    }
}

void sj_connection_hang_up(sj_edge *edge, sj_connection *connection)
{
    sj_line_close(&connection->line);
    sj_sp_peer_discard(&connection->reader, account_of(edge, connection));
    free_held(edge, connection, true);
    free_stash(edge, connection);
    free(connection->out);
    if (edge->grantee == sj_connection_name(connection)) {
        edge->grantee = 0;
    }
    if (connection->is_stranger) {
        sj_strangers_remove(edge, connection);
    } else {
        forget_device(edge, connection);
    }
    edge->counters.open--;
    *connection = (sj_connection){.line.descriptor = -1,
                                  .generation = connection->generation + 1,
                                  .index = connection->index,
                                  .is_dirty = connection->is_dirty};
    edge->free_slots[edge->free_count++] = connection->index;
}

static bool break_off(sj_edge *edge, sj_connection *connection, uint64_t *counter)
{
    ++*counter;
    sj_connection_hang_up(edge, connection);
    return false;
}

sj_status sj_edge_bind(sj_edge *edge, uint64_t name, const sj_sender *sender)
{
    sj_connection *connection = sj_connection_of(edge, name);
    sj_hash_entry entry = key_of(sender);
    if (connection == NULL) {
        return SJ_ENOTFOUND;
    }
    sj_edge_unbind(edge, name);
    const sj_hash_entry *known = sj_hash_map_find(&edge->devices, entry.key, entry.sub);
    entry.first = known != NULL ? known->first + 1 : 1;
    if (entry.first > edge->limits.connections_per_device) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_hash_map_put(&edge->devices, &entry));
    const size_t charge = charge_of(connection);
    edge->stranger_reading.used -= charge;
    edge->reading.used += charge;
    sj_strangers_remove(edge, connection);
    connection->sender = *sender;
    return SJ_OK;
}

void sj_edge_unbind(sj_edge *edge, uint64_t name)
{
    sj_connection *connection = sj_connection_of(edge, name);
    if (connection == NULL || connection->is_stranger) {
        return;
    }
    const size_t charge = charge_of(connection);
    forget_device(edge, connection);
    edge->reading.used -= charge;
    edge->stranger_reading.used += charge;
    connection->sender = (sj_sender){.is_peer = true};
    connection->since_ms = edge->now_ms;
    connection->stranger_bytes = 0;
    sj_strangers_add(edge, connection);
}

bool sj_connection_flush(sj_edge *edge, sj_connection *connection)
{
    while (connection->out_at < connection->out_end) {
        const ssize_t sent = sj_line_send(&connection->line, connection->out + connection->out_at,
                                          connection->out_end - connection->out_at);
        if (sent < 0) {
            return break_off(edge, connection, &edge->counters.broken);
        }
        if (sent == 0) {
            return true;
        }
        connection->out_at += (size_t)sent;
        connection->sent_ms = edge->now_ms;
    }
    connection->out_at = connection->out_end = 0;
    if (connection->out_capacity > KEPT_OUT_BYTES || connection->is_stranger) {
        free(connection->out);
        connection->out = NULL;
        connection->out_capacity = 0;
    }
    if (connection->is_closing) {
        sj_connection_hang_up(edge, connection);
        return false;
    }
    return true;
}

bool sj_connection_put(sj_edge *edge, sj_connection *connection, sj_slice bytes)
{
    const size_t unsent = connection->out_end - connection->out_at;
    if (unsent + bytes.size > edge->limits.reply_bytes) {
        return break_off(edge, connection, &edge->counters.slow);
    }
    if (connection->out_end + bytes.size > connection->out_capacity) {
        if (unsent != 0) {
            memmove(connection->out, connection->out + connection->out_at, unsent);
        }
        connection->out_at = 0;
        connection->out_end = unsent;
    }
    if (unsent + bytes.size > connection->out_capacity) {
        const size_t capacity = (unsent + bytes.size) * 2;
        uint8_t *moved = realloc(connection->out, capacity);
        if (moved == NULL) {
            return break_off(edge, connection, &edge->counters.broken);
        }
        connection->out = moved;
        connection->out_capacity = capacity;
    }
    if (unsent == 0) {
        connection->sent_ms = edge->now_ms;
    }
    memcpy(connection->out + connection->out_end, bytes.data, bytes.size);
    connection->out_end += bytes.size;
    return true;
}

bool sj_connection_may_read(const sj_edge *edge, const sj_connection *connection)
{
    const uint32_t pending = connection->is_stranger ? 1 : edge->limits.pending;
    return (connection->state == SJ_CONNECTION_OPEN ||
            connection->state == SJ_CONNECTION_GREETING) &&
           !connection->is_blocked && !connection->is_closing && connection->pending < pending;
}

void sj_connection_arm(sj_edge *edge, sj_connection *connection)
{
    const uint32_t wanted = (sj_connection_may_read(edge, connection) ? (uint32_t)EPOLLIN : 0) |
                            (connection->out_end > connection->out_at ? (uint32_t)EPOLLOUT : 0);
    if (connection->wanted != wanted) {
        struct epoll_event event = {.events = wanted, .data.u64 = sj_connection_name(connection)};
        (void)epoll_ctl(edge->epoll, EPOLL_CTL_MOD, connection->line.descriptor, &event);
        connection->wanted = wanted;
    }
}

bool sj_connection_offer(sj_edge *edge, sj_connection *connection)
{
    const uint64_t name = sj_connection_name(connection);
    sj_edge_message message = *connection->held;
    message.sender = connection->sender;
    message.is_stranger = connection->is_stranger;
    connection->pending++;
    const sj_edge_verdict verdict = edge->handle(edge->context, &message);
    connection = sj_connection_of(edge, name);
    if (connection == NULL) {
        return false;
    }
    if (verdict == SJ_EDGE_FULL) {
        connection->pending--;
        connection->is_blocked = true;
        return true;
    }
    free_held(edge, connection, verdict == SJ_EDGE_HANG_UP);
    if (verdict == SJ_EDGE_HANG_UP) {
        return break_off(edge, connection, &edge->counters.broken);
    }
    connection->is_blocked = false;
    edge->counters.messages++;
    return true;
}

/* Pops the complete message from the reader and offers it to `handle`. */
static bool accept_message(sj_edge *edge, sj_connection *connection)
{
    sj_sp_whole whole;
    sj_edge_message *message = malloc(sizeof(*message));
    if (message == NULL || sj_sp_peer_pop(&connection->reader, &whole) != SJ_OK) {
        free(message);
        return break_off(edge, connection, &edge->counters.broken);
    }
    if (edge->grantee == sj_connection_name(connection)) {
        edge->grantee = 0;
    }
    *message = (sj_edge_message){.connection = sj_connection_name(connection),
                                 .peer = connection->peer,
                                 .bucket = connection->bucket,
                                 .way_back_bytes = (uint8_t)whole.way_back_bytes,
                                 .is_ipc = connection->reader.is_ipc,
                                 .is_cut = whole.is_cut,
                                 .memory = whole.memory,
                                 .body = whole.body};
    memcpy(message->way_back, whole.memory, whole.way_back_bytes);
    connection->held = message;
    connection->held_charge = whole.charged;
    return sj_connection_offer(edge, connection);
}

/* True if the connection may exceed the account. One connection may, because otherwise all could
 * wait for memory that none of them frees. */
static bool may_exceed(sj_edge *edge, const sj_connection *connection)
{
    return !connection->is_stranger && edge->grantee == sj_connection_name(connection);
}

static bool handle_result(sj_edge *edge, sj_connection *connection, sj_sp_result result)
{
    switch (result) {
    case SJ_SP_MESSAGE:
        return accept_message(edge, connection);
    case SJ_SP_NO_SPACE:
        if (connection->is_stranger) {
            return break_off(edge, connection, &edge->counters.displaced);
        }
        if (edge->grantee == 0) {
            edge->grantee = sj_connection_name(connection);
        } else {
            connection->is_blocked = true; /* until the next tick */
        }
        return true;
    case SJ_SP_BROKEN:
        return break_off(edge, connection, &edge->counters.broken);
    default:
        return true;
    }
}

/* Parses `bytes` until none are left or the connection must not be read. */
static bool feed(sj_edge *edge, sj_connection *connection, sj_slice *bytes)
{
    const sj_sp_limits device = {.message_bytes = edge->limits.message_bytes,
                                 .kept_bytes = edge->limits.message_bytes};
    const sj_sp_limits stranger = {.message_bytes = edge->limits.message_bytes,
                                   .kept_bytes = edge->limits.stranger_message_bytes};
    while (bytes->size > 0 && sj_connection_may_read(edge, connection)) {
        const bool was_within = sj_sp_peer_is_within(&connection->reader);
        const sj_sp_result result =
            sj_sp_peer_feed(&connection->reader, connection->is_stranger ? &stranger : &device,
                            account_of(edge, connection), may_exceed(edge, connection), bytes);
        if (!was_within) {
            connection->begun_ms = edge->now_ms;
        }
        if (connection->reader.is_greeted) {
            connection->state = SJ_CONNECTION_OPEN;
        }
        if (!handle_result(edge, connection, result)) {
            return false;
        }
    }
    return true;
}

static bool stash(sj_edge *edge, sj_connection *connection, sj_slice bytes)
{
    connection->stash = malloc(bytes.size);
    if (connection->stash == NULL) {
        return break_off(edge, connection, &edge->counters.broken);
    }
    memcpy(connection->stash, bytes.data, bytes.size);
    connection->stash_end = (uint32_t)bytes.size;
    account_of(edge, connection)->used += bytes.size;
    return true;
}

static bool feed_stash(sj_edge *edge, sj_connection *connection)
{
    sj_slice bytes = {.data = connection->stash + connection->stash_at,
                      .size = connection->stash_end - connection->stash_at};
    if (!feed(edge, connection, &bytes)) {
        return false;
    }
    connection->stash_at = connection->stash_end - (uint32_t)bytes.size;
    if (bytes.size == 0) {
        free_stash(edge, connection);
    }
    return true;
}

/* Counts `got` bytes that were read. Returns false, with the connection closed, if a stranger has
 * sent too much. */
static bool note_read(sj_edge *edge, sj_connection *connection, size_t got)
{
    connection->read_ms = edge->now_ms;
    sj_strangers_mark_heard(edge, connection);
    if (!connection->is_stranger) {
        return true;
    }
    connection->stranger_bytes += got;
    return connection->stranger_bytes <= edge->limits.stranger_bytes ||
           break_off(edge, connection, &edge->counters.broken);
}

/* Reads once. `*got` is 0 if there were no bytes. Sets `*is_drained` to true if the socket has
 * no more. */
static bool read_once(sj_edge *edge, sj_connection *connection, size_t *got, bool *is_drained)
{
    sj_sp_result result;
    size_t capacity = 0;
    uint8_t *place = sj_sp_peer_reserve(&connection->reader, account_of(edge, connection),
                                        may_exceed(edge, connection), &capacity, &result);
    *got = 0;
    if (place == NULL && result != SJ_SP_MORE) {
        *is_drained = false;
        return handle_result(edge, connection, result);
    }
    uint8_t *into = place != NULL ? place : edge->scratch;
    if (place == NULL) {
        capacity = connection->is_stranger ? STRANGER_READ_BYTES : SJ_EDGE_SCRATCH_BYTES;
    }
    const ssize_t read = sj_line_receive(&connection->line, into, capacity);
    if (read < 0) {
        sj_connection_hang_up(edge, connection);
        return false;
    }
    *got = (size_t)read;
    *is_drained = read == 0 || (connection->line.tls == NULL && (size_t)read < capacity);
    if (read == 0) {
        return true;
    }
    if (!note_read(edge, connection, *got)) {
        return false;
    }
    if (place != NULL) {
        return handle_result(edge, connection, sj_sp_peer_commit(&connection->reader, *got));
    }
    sj_slice bytes = {.data = edge->scratch, .size = *got};
    return feed(edge, connection, &bytes) && (bytes.size == 0 || stash(edge, connection, bytes));
}

static bool read_turn(sj_edge *edge, sj_connection *connection)
{
    size_t taken = 0;
    bool is_drained = false;
    if (connection->stash_end != 0 && !feed_stash(edge, connection)) {
        return false;
    }
    while (!is_drained && taken < TURN_BYTES && connection->stash_end == 0 &&
           sj_connection_may_read(edge, connection)) {
        size_t got = 0;
        if (!read_once(edge, connection, &got, &is_drained)) {
            return false;
        }
        taken += got;
    }
    return true;
}

static bool shake(sj_edge *edge, sj_connection *connection)
{
    const sj_slice greeting = {.data = sj_sp_rep_greeting, .size = SJ_SP_PEER_GREETING_BYTES};
    const sj_line_result result = sj_line_handshake(&connection->line);
    if (result == SJ_LINE_OVER) {
        return break_off(edge, connection, &edge->counters.broken);
    }
    sj_strangers_mark_heard(edge, connection);
    if (result == SJ_LINE_DONE) {
        connection->state = SJ_CONNECTION_GREETING;
        return sj_connection_put(edge, connection, greeting) &&
               sj_connection_flush(edge, connection);
    }
    const uint32_t wanted = result == SJ_LINE_WRITE ? EPOLLOUT : EPOLLIN;
    if (connection->wanted != wanted) {
        struct epoll_event event = {.events = wanted, .data.u64 = sj_connection_name(connection)};
        (void)epoll_ctl(edge->epoll, EPOLL_CTL_MOD, connection->line.descriptor, &event);
        connection->wanted = wanted;
    }
    return true;
}

bool sj_connection_serve(sj_edge *edge, sj_connection *connection, uint32_t events)
{
    if ((events & (uint32_t)(EPOLLERR | EPOLLHUP)) != 0 && (events & (uint32_t)EPOLLIN) == 0) {
        sj_connection_hang_up(edge, connection);
        return false;
    }
    if (connection->state == SJ_CONNECTION_SHAKING) {
        if (!shake(edge, connection)) {
            return false;
        }
        if (connection->state == SJ_CONNECTION_SHAKING) {
            return true;
        }
    }
    if ((events & (uint32_t)EPOLLOUT) != 0 && !sj_connection_flush(edge, connection)) {
        return false;
    }
    do {
        if (sj_connection_may_read(edge, connection) && !read_turn(edge, connection)) {
            return false;
        }
        /* epoll does not report the bytes that TLS holds. It reports bytes that this turn left in
         * the socket. */
    } while (connection->stash_end == 0 && sj_connection_may_read(edge, connection) &&
             sj_line_holds_bytes(&connection->line));
    sj_connection_arm(edge, connection);
    return true;
}

bool sj_connection_is_overdue(const sj_edge *edge, sj_connection *connection)
{
    const sj_edge_limits *limits = &edge->limits;
    const int64_t now = edge->now_ms;
    const int64_t age = now - connection->since_ms;
    const int64_t stall = limits->stall_ms;
    if (connection->state != SJ_CONNECTION_OPEN) {
        return age > limits->greeting_ms;
    }
    if (connection->is_stranger && age > limits->stranger_ms) {
        return true;
    }
    if (connection->out_end > connection->out_at && now - connection->sent_ms > stall) {
        return true;
    }
    if (!sj_sp_peer_is_within(&connection->reader)) {
        return false;
    }
    if (!sj_connection_may_read(edge, connection)) { /* the edge makes the peer wait, so this
                                                      * time does not count */
        connection->begun_ms = connection->read_ms = now;
        return false;
    }
    return now - connection->read_ms > stall ||
           now - connection->begun_ms >
               stall + (int64_t)(connection->reader.size / SLOWEST_BYTES_PER_MS);
}
