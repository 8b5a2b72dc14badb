/* Design notes
 *
 * The choice is open until the first frame that is neither HELLO nor a clock. Until then a
 * collector that does not reply is replaced: its connection is closed, and its questions fail. The
 * uplink then says hello to the next collector, as after any lost connection.
 *
 * The uplink's thread owns all members. Any thread may call `wake`, so the mutex protects `inner`
 * while it is replaced. */
#include "agent/uplink/chosen_channel.h"

#include "agent/uplink/moment.h"
#include "agent/uplink/spool_collector.h"
#include "proto/wire/frame.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { AWAY_MS = 2000, AWAY_MAX_MS = 30000 };

typedef struct place {
    char *url;
    char *certificate;
    uint8_t *hello;
    size_t hello_bytes;
} place;

struct sj_channel {
    const sj_channel_kind *kind;
    place places[SJ_COLLECTORS_MAX];
    size_t count;
    size_t current;
    char *directory;
    uint32_t slots, resend_ms;
    pthread_mutex_t mutex;
    sj_channel *inner;
    bool is_settled;  /* The session belongs to the current collector. */
    bool is_answered; /* The current collector has replied over the present connection. */
    uint32_t away_ms;
    struct timespec away_at; /* The collector is away if it has not replied by then. */
    bool is_lost;            /* A replaced connection is to be reported as lost. */
    bool is_asked[SJ_CHANNEL_SLOTS];
    bool is_failed[SJ_CHANNEL_SLOTS]; /* Questions of a replaced connection, to be reported. */
};

static sj_status copy_place(const sj_collector_place *from, place *to)
{
    to->url = strdup(from->url);
    to->certificate = from->certificate != NULL ? strdup(from->certificate) : NULL;
    to->hello = malloc(from->hello.size);
    if (to->url == NULL || to->hello == NULL ||
        (from->certificate != NULL && to->certificate == NULL)) {
        return SJ_ENOMEM;
    }
    memcpy(to->hello, from->hello.data, from->hello.size);
    to->hello_bytes = from->hello.size;
    return SJ_OK;
}

static sj_status connect_to(const sj_channel *channel, size_t number, sj_channel **inner,
                            sj_error *error)
{
    const sj_channel_options options = {.url = channel->places[number].url,
                                        .certificate = channel->places[number].certificate,
                                        .slots = channel->slots,
                                        .resend_ms = channel->resend_ms};
    return channel->kind->open(&options, inner, error);
}

static void expect_reply(sj_channel *channel)
{
    channel->is_answered = false;
    channel->away_at = sj_moment_after_ms(channel->away_ms);
}

static void close_channel(sj_channel *channel)
{
    if (channel->inner != NULL) {
        channel->kind->close(channel->inner);
    }
    for (size_t i = 0; i < channel->count; ++i) {
        free(channel->places[i].url);
        free(channel->places[i].certificate);
        free(channel->places[i].hello);
    }
    pthread_mutex_destroy(&channel->mutex);
    free(channel->directory);
    free(channel);
}

/* Copies the choice. Reads which collector the session belongs to, if it was sent to one before. */
static sj_status copy_choice(sj_channel *channel, const sj_collector_choice *choice)
{
    char url[SJ_SPOOL_COLLECTOR_BYTES];
    channel->kind = choice->kind;
    channel->away_ms = choice->away_ms != 0 ? choice->away_ms : AWAY_MS;
    channel->directory = strdup(choice->directory);
    for (size_t i = 0; i < choice->count && i < SJ_COLLECTORS_MAX; ++i) {
        channel->count++;
        SJ_TRY(copy_place(&choice->places[i], &channel->places[i]));
    }
    if (channel->directory == NULL) {
        return SJ_ENOMEM;
    }
    const bool is_kept = sj_spool_collector_read(channel->directory, url);
    for (size_t i = 0; is_kept && !channel->is_settled && i < channel->count; ++i) {
        channel->is_settled = strcmp(channel->places[i].url, url) == 0;
        channel->current = channel->is_settled ? i : 0;
    }
    return SJ_OK;
}

static sj_status open_channel(const sj_channel_options *options, sj_channel **channel,
                              sj_error *error)
{
    const sj_collector_choice *choice = options->context;
    if (choice == NULL || choice->count == 0 || choice->count > SJ_COLLECTORS_MAX) {
        return sj_fail(error, SJ_EINVAL, "a session needs 1 to %d collectors", SJ_COLLECTORS_MAX);
    }
    sj_channel *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->mutex, NULL);
    made->slots = options->slots;
    made->resend_ms = options->resend_ms;
    sj_status status = copy_choice(made, choice);
    if (status != SJ_OK) {
        sj_fail(error, status, "out of memory");
    } else {
        status = connect_to(made, made->current, &made->inner, error);
    }
    if (status != SJ_OK) {
        close_channel(made);
        return status;
    }
    expect_reply(made);
    *channel = made;
    return SJ_OK;
}

static bool may_choose(const sj_channel *channel)
{
    return !channel->is_settled && !channel->is_answered && channel->count > 1;
}

/* Replaces the connection by one to the next collector. If that fails, tries again later. */
static void choose_next(sj_channel *channel)
{
    const size_t next = (channel->current + 1) % channel->count;
    sj_channel *opened = NULL;
    sj_error ignored = {0};
    expect_reply(channel);
    if (connect_to(channel, next, &opened, &ignored) != SJ_OK) {
        return;
    }
    pthread_mutex_lock(&channel->mutex);
    sj_channel *replaced = channel->inner;
    channel->inner = opened;
    pthread_mutex_unlock(&channel->mutex);
    channel->kind->close(replaced);
    channel->current = next;
    channel->is_lost = true;
    for (size_t i = 0; i < SJ_CHANNEL_SLOTS; ++i) {
        channel->is_failed[i] |= channel->is_asked[i];
        channel->is_asked[i] = false;
    }
    if (next == 0) {
        channel->away_ms = channel->away_ms < AWAY_MAX_MS / 2 ? channel->away_ms * 2 : AWAY_MAX_MS;
    }
    expect_reply(channel);
}

/* Returns the next event of a replaced connection. */
static bool report_replaced(sj_channel *channel, sj_channel_event *event)
{
    if (channel->is_lost) {
        channel->is_lost = false;
        *event = (sj_channel_event){.type = SJ_CHANNEL_DISCONNECTED};
        return true;
    }
    for (uint32_t i = 0; i < SJ_CHANNEL_SLOTS; ++i) {
        if (channel->is_failed[i]) {
            channel->is_failed[i] = false;
            *event = (sj_channel_event){
                .type = SJ_CHANNEL_FAILED, .slot = i, .why = "the collector is away"};
            return true;
        }
    }
    return false;
}

static bool next_event(sj_channel *channel, sj_channel_event *event)
{
    if (may_choose(channel) && sj_moment_has_passed(&channel->away_at)) {
        choose_next(channel);
    }
    if (report_replaced(channel, event)) {
        return true;
    }
    if (!channel->kind->next_event(channel->inner, event)) {
        return false;
    }
    if (event->type == SJ_CHANNEL_REPLIED) {
        channel->is_answered = true;
    } else if (event->type == SJ_CHANNEL_DISCONNECTED && channel->is_answered) {
        expect_reply(channel);
    }
    if (event->type == SJ_CHANNEL_REPLIED || event->type == SJ_CHANNEL_FAILED) {
        channel->is_asked[event->slot] = false;
    }
    return true;
}

static uint16_t type_of(sj_slice frame)
{
    sj_reader reader = sj_reader_of(frame.data, frame.size);
    sj_read_bytes(&reader, 6);
    return sj_read_u16(&reader);
}

static sj_status ask(sj_channel *channel, uint32_t slot, sj_slice question)
{
    const place *current = &channel->places[channel->current];
    const uint16_t type = type_of(question);
    if (type == SJ_FRAME_HELLO) {
        question = (sj_slice){.data = current->hello, .size = current->hello_bytes};
    } else if (type != SJ_FRAME_DEVICE_CLOCK && !channel->is_settled) {
        sj_error ignored = {0};
        SJ_TRY(sj_spool_collector_keep(channel->directory, current->url, &ignored));
        channel->is_settled = true;
    }
    SJ_TRY(channel->kind->ask(channel->inner, slot, question));
    channel->is_asked[slot] = true;
    return SJ_OK;
}

static void wait_for_event(sj_channel *channel, const struct timespec *until)
{
    const bool is_first =
        may_choose(channel) && (until == NULL || sj_moment_is_before(&channel->away_at, until));
    channel->kind->wait(channel->inner, is_first ? &channel->away_at : until);
}

static void wake(sj_channel *channel)
{
    pthread_mutex_lock(&channel->mutex);
    channel->kind->wake(channel->inner);
    pthread_mutex_unlock(&channel->mutex);
}

const sj_channel_kind sj_channel_chosen = {.open = open_channel,
                                           .ask = ask,
                                           .next_event = next_event,
                                           .wait = wait_for_event,
                                           .wake = wake,
                                           .close = close_channel};
