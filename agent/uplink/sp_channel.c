/* Design notes
 *
 * The connection is DOWN until its next attempt, then CONNECTING. It is GREETING until the peer has
 * said that it is a REP, and then OPEN. A question is copied into its slot and written in its turn.
 * The copy is freed as soon as it is written. If the connection breaks, the owner asks again,
 * because it has the question in its spool. */
#include "agent/uplink/sp_channel.h"

#include "agent/uplink/backoff.h"
#include "agent/uplink/sp_address.h"
#include "agent/uplink/sp_wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

typedef enum line_state { LINE_DOWN, LINE_CONNECTING, LINE_GREETING, LINE_OPEN } line_state;
typedef enum slot_state { SLOT_IDLE, SLOT_WRITING, SLOT_ASKED, SLOT_FAILED } slot_state;

typedef struct slot {
    slot_state state;
    uint32_t request;
    uint8_t *bytes; /* Header and body while WRITING; owned. */
    size_t size;
    size_t written;
    int64_t asked_ms; /* Monotonic time. */
} slot;

struct sj_channel {
    sj_sp_address address;
    uint32_t resend_ms;
    uint32_t slot_count;
    int socket; /* -1: none. */
    line_state line;
    /* DOWN: time of the next attempt. CONNECTING and GREETING: time of their start. */
    int64_t since_ms;
    sj_backoff backoff;
    uint32_t last_request;
    size_t greeting_written;
    bool is_connected_unreported;
    bool is_disconnected_unreported;
    const char *why;                  /* Why the last connection ended. */
    uint32_t turns[SJ_CHANNEL_SLOTS]; /* Slots that are WRITING, in their order. */
    uint32_t turn_count;
    slot slots[SJ_CHANNEL_SLOTS];
    sj_sp_reader reader;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

static void forget_bytes(slot *used)
{
    free(used->bytes);
    used->bytes = NULL;
}

/* Ends the connection and all questions asked over it. */
static void hang_up(sj_channel *channel, const char *why)
{
    if (channel->socket >= 0) {
        close(channel->socket);
        channel->socket = -1;
    }
    channel->is_disconnected_unreported |= channel->line == LINE_OPEN;
    channel->is_connected_unreported = false;
    channel->line = LINE_DOWN;
    channel->since_ms = now_ms() + sj_backoff_next_ms(&channel->backoff);
    channel->why = why;
    channel->turn_count = 0;
    for (uint32_t i = 0; i < channel->slot_count; i++) {
        if (channel->slots[i].state != SLOT_IDLE) {
            forget_bytes(&channel->slots[i]);
            channel->slots[i].state = SLOT_FAILED;
        }
    }
}

static void begin_greeting(sj_channel *channel)
{
    channel->line = LINE_GREETING;
    channel->greeting_written = 0;
    channel->reader.is_greeted = false;
    channel->reader.used = 0;
    channel->reader.count = 0;
}

static void dial(sj_channel *channel)
{
    const int one = 1;
    const struct sockaddr *address = (const struct sockaddr *)&channel->address.socket;
    channel->socket = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (channel->socket < 0) {
        hang_up(channel, "no socket can be made");
        return;
    }
    if (!channel->address.is_ipc) {
        (void)setsockopt(channel->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    channel->line = LINE_CONNECTING;
    channel->since_ms = now_ms();
    if (connect(channel->socket, address, channel->address.bytes) == 0) {
        begin_greeting(channel);
    } else if (errno != EINPROGRESS) {
        hang_up(channel, "nobody listens at the collector's address");
    }
}

static void check_connecting(sj_channel *channel)
{
    struct pollfd polled = {.fd = channel->socket, .events = POLLOUT};
    int problem = 0;
    socklen_t size = sizeof(problem);
    if (poll(&polled, 1, 0) <= 0) {
        return;
    }
    if (getsockopt(channel->socket, SOL_SOCKET, SO_ERROR, &problem, &size) != 0 || problem != 0) {
        hang_up(channel, "nobody listens at the collector's address");
    } else {
        begin_greeting(channel);
    }
}

/* Writes from `written` on. Returns false if the connection is over or accepts no more bytes
 * now. */
static bool write_some(sj_channel *channel, const uint8_t *bytes, size_t size, size_t *written)
{
    while (*written < size) {
        const ssize_t sent =
            send(channel->socket, bytes + *written, size - *written, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                hang_up(channel, "the collector closed the connection");
            }
            return false;
        }
        *written += (size_t)sent;
    }
    return true;
}

static void write_pending(sj_channel *channel)
{
    uint8_t greeting[SJ_SP_GREETING_BYTES];
    sj_sp_greeting(greeting);
    if (!write_some(channel, greeting, sizeof(greeting), &channel->greeting_written)) {
        return;
    }
    while (channel->line == LINE_OPEN && channel->turn_count != 0) {
        slot *first = &channel->slots[channel->turns[0]];
        if (!write_some(channel, first->bytes, first->size, &first->written)) {
            return;
        }
        forget_bytes(first);
        first->state = SLOT_ASKED;
        channel->turn_count--;
        memmove(channel->turns, channel->turns + 1, channel->turn_count * sizeof(*channel->turns));
    }
}

/* Reads the bytes that have arrived, after all whole messages were consumed. */
static void read_some(sj_channel *channel)
{
    size_t space_bytes;
    uint8_t *space = sj_sp_reader_space(&channel->reader, &space_bytes);
    const ssize_t got =
        space_bytes != 0 ? recv(channel->socket, space, space_bytes, MSG_DONTWAIT) : -1;
    if (got > 0) {
        sj_sp_reader_fed(&channel->reader, (size_t)got);
    } else if (got == 0 ||
               (space_bytes != 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        hang_up(channel, "the collector closed the connection");
    }
}

static const char *describe(sj_status status)
{
    switch (status) {
    case SJ_EUNSUPPORTED:
        return "what answers there is not a collector: it does not speak SP's REP";
    case SJ_ELIMIT:
        return "the collector's answer is too long";
    default:
        return "the collector's answer is not a message of SP";
    }
}

static slot *find_asked(sj_channel *channel, uint32_t request)
{
    for (uint32_t i = 0; i < channel->slot_count; i++) {
        if (channel->slots[i].state == SLOT_ASKED && channel->slots[i].request == request) {
            return &channel->slots[i];
        }
    }
    return NULL;
}

/* Returns the next reply to a pending question. Other replies are late and dropped. */
static bool next_reply(sj_channel *channel, sj_channel_event *event)
{
    while (channel->line >= LINE_GREETING) {
        sj_sp_message message = {0};
        const sj_status status = sj_sp_reader_next(&channel->reader, &message);
        if (channel->line == LINE_GREETING && channel->reader.is_greeted) {
            channel->line = LINE_OPEN;
            channel->is_connected_unreported = true;
        }
        slot *asked = status == SJ_OK ? find_asked(channel, message.request) : NULL;
        if (asked != NULL) {
            asked->state = SLOT_IDLE;
            sj_backoff_reset(&channel->backoff);
            *event = (sj_channel_event){.type = SJ_CHANNEL_REPLIED,
                                        .slot = (uint32_t)(asked - channel->slots),
                                        .received_ns = clock_ns(CLOCK_BOOTTIME),
                                        .reply = message.body};
            return true;
        }
        if (status == SJ_EAGAIN) {
            return false;
        }
        if (status != SJ_OK) {
            hang_up(channel, describe(status));
        }
    }
    return false;
}

/* True if the peer has been silent for too long. */
static bool is_overdue(const sj_channel *channel)
{
    const int64_t limit_ms = now_ms() - channel->resend_ms;
    if (channel->line == LINE_CONNECTING || channel->line == LINE_GREETING) {
        return channel->since_ms < limit_ms;
    }
    for (uint32_t i = 0; i < channel->slot_count; i++) {
        const slot *asked = &channel->slots[i];
        if ((asked->state == SLOT_ASKED || asked->state == SLOT_WRITING) &&
            asked->asked_ms < limit_ms) {
            return true;
        }
    }
    return false;
}

/* Does everything that is possible without blocking. */
static void pump(sj_channel *channel)
{
    if (channel->line == LINE_DOWN && now_ms() >= channel->since_ms) {
        dial(channel);
    }
    if (channel->line == LINE_CONNECTING) {
        check_connecting(channel);
    }
    if (channel->line >= LINE_GREETING) {
        write_pending(channel);
    }
    if (channel->line >= LINE_GREETING) {
        read_some(channel);
    }
    if (channel->line != LINE_DOWN && is_overdue(channel)) {
        hang_up(channel, "the collector does not answer");
    }
}

/* Returns the next event of the connection or of a failed question. */
static bool next_news(sj_channel *channel, sj_channel_event *event)
{
    if (channel->is_disconnected_unreported) {
        channel->is_disconnected_unreported = false;
        *event = (sj_channel_event){.type = SJ_CHANNEL_DISCONNECTED};
        return true;
    }
    for (uint32_t i = 0; i < channel->slot_count; i++) {
        if (channel->slots[i].state == SLOT_FAILED) {
            channel->slots[i].state = SLOT_IDLE;
            *event = (sj_channel_event){.type = SJ_CHANNEL_FAILED, .slot = i, .why = channel->why};
            return true;
        }
    }
    if (channel->is_connected_unreported) {
        channel->is_connected_unreported = false;
        *event = (sj_channel_event){.type = SJ_CHANNEL_CONNECTED};
        return true;
    }
    return false;
}

static bool next_event(sj_channel *channel, sj_channel_event *event)
{
    if (next_news(channel, event) || next_reply(channel, event)) {
        return true;
    }
    pump(channel);
    return next_reply(channel, event) || next_news(channel, event);
}

static sj_status ask(sj_channel *channel, uint32_t number, sj_slice question)
{
    slot *idle = &channel->slots[number];
    uint8_t header[SJ_SP_HEADER_MAX_BYTES];
    if (channel->line != LINE_OPEN) {
        idle->state = SLOT_FAILED;
        return SJ_OK;
    }
    channel->last_request = (channel->last_request + 1) | SJ_SP_REQUEST_BIT;
    const size_t header_bytes =
        sj_sp_header(channel->address.is_ipc, channel->last_request, question.size, header);
    uint8_t *bytes = malloc(header_bytes + question.size);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    memcpy(bytes, header, header_bytes);
    memcpy(bytes + header_bytes, question.data, question.size);
    *idle = (slot){.state = SLOT_WRITING,
                   .request = channel->last_request,
                   .bytes = bytes,
                   .size = header_bytes + question.size,
                   .asked_ms = now_ms()};
    channel->turns[channel->turn_count++] = number;
    write_pending(channel);
    return SJ_OK;
}

/* Returns how long to wait: until `until`, the next attempt, or the time when the peer is
 * overdue. */
static int poll_ms(const sj_channel *channel, const struct timespec *until)
{
    int64_t end_ms = channel->line == LINE_DOWN ? channel->since_ms : now_ms() + channel->resend_ms;
    for (uint32_t i = 0; i < channel->slot_count; i++) {
        const slot *asked = &channel->slots[i];
        if (asked->state != SLOT_IDLE && asked->asked_ms + channel->resend_ms < end_ms) {
            end_ms = asked->asked_ms + channel->resend_ms;
        }
    }
    if (until != NULL) {
        const int64_t until_ms = (int64_t)until->tv_sec * 1000 + until->tv_nsec / 1000000 + 1;
        end_ms = until_ms < end_ms ? until_ms : end_ms;
    }
    const int64_t left_ms = end_ms - now_ms();
    return left_ms < 0 ? 0 : (int)(left_ms + 1);
}

static void wait_for_news(sj_channel *channel, const struct timespec *until)
{
    const bool writes =
        channel->line == LINE_CONNECTING || channel->turn_count != 0 ||
        (channel->line == LINE_GREETING && channel->greeting_written < SJ_SP_GREETING_BYTES);
    struct pollfd polled = {.fd = channel->socket,
                            .events = (short)(POLLIN | (writes ? POLLOUT : 0))};
    (void)poll(&polled, 1, poll_ms(channel, until));
}

/* Does nothing: there is no other thread that could wake a waiting one. */
static void wake(sj_channel *channel)
{
    (void)channel;
}

static void close_channel(sj_channel *channel)
{
    hang_up(channel, "");
    free(channel);
}

static sj_status open_channel(const sj_channel_options *options, sj_channel **channel,
                              sj_error *error)
{
    sj_channel *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->socket = -1;
    made->resend_ms = options->resend_ms;
    made->slot_count = options->slots < SJ_CHANNEL_SLOTS ? options->slots : SJ_CHANNEL_SLOTS;
    const sj_status status = sj_sp_address_read(options->url, &made->address, error);
    if (status != SJ_OK) {
        free(made);
        return status;
    }
    made->reader.is_ipc = made->address.is_ipc;
    if (getrandom(&made->last_request, sizeof(made->last_request), GRND_NONBLOCK) < 0 ||
        getrandom(&made->backoff.random, sizeof(made->backoff.random), GRND_NONBLOCK) < 0) {
        made->backoff.random = (uint64_t)clock_ns(CLOCK_MONOTONIC);
    }
    *channel = made;
    return SJ_OK;
}

const sj_channel_kind sj_channel_sp = {.open = open_channel,
                                       .ask = ask,
                                       .next_event = next_event,
                                       .wait = wait_for_news,
                                       .wake = wake,
                                       .close = close_channel};
