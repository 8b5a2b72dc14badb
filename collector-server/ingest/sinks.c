#include "collector-server/ingest/sinks.h"

sj_status sj_sinks_open(sj_sinks *sinks, const sj_sink_kind *kind, const sj_sink_options *options,
                        sj_error *error)
{
    if (sinks->count == SJ_MOST_SINKS) {
        return sj_fail(error, SJ_ELIMIT, "a collector has at most %d sinks", SJ_MOST_SINKS);
    }
    sj_open_sink *opened = &sinks->list[sinks->count];
    *opened = (sj_open_sink){.kind = kind};
    SJ_TRY(kind->open(options, &opened->sink, error));
    sinks->count++;
    return SJ_OK;
}

void sj_sinks_close(sj_sinks *sinks)
{
    while (sinks->count > 0) {
        const sj_open_sink *last = &sinks->list[--sinks->count];
        last->kind->close(last->sink);
    }
}

bool sj_sink_ends_batch(sj_status status)
{
    return status == SJ_EFULL || status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EAGAIN;
}

static void roll_back(const sj_sinks *sinks, size_t first, size_t end)
{
    for (size_t i = first; i < end; ++i) {
        sinks->list[i].kind->rollback(sinks->list[i].sink);
    }
}

sj_status sj_sinks_begin(const sj_sinks *sinks, sj_error *error)
{
    for (size_t i = 0; i < sinks->count; ++i) {
        const sj_status status = sinks->list[i].kind->begin(sinks->list[i].sink, error);
        if (status != SJ_OK) {
            roll_back(sinks, 0, i);
            return sj_sink_ends_batch(status) ? status : SJ_EIO;
        }
    }
    return SJ_OK;
}

sj_status sj_sinks_apply(const sj_sinks *sinks, const sj_frame_view *frame, const sj_sender *sender,
                         bool *duplicate, sj_error *error)
{
    const sj_open_sink *first = &sinks->list[0];
    SJ_TRY(first->kind->apply(first->sink, frame, sender, duplicate, error));
    for (size_t i = 1; i < sinks->count; ++i) {
        const sj_open_sink *other = &sinks->list[i];
        bool ignored = false;
        const sj_status status = other->kind->apply(other->sink, frame, sender, &ignored, error);
        if (sj_sink_ends_batch(status)) {
            return status;
        }
    }
    return SJ_OK;
}

sj_status sj_sinks_commit(const sj_sinks *sinks, sj_error *error)
{
    for (size_t i = 0; i < sinks->count; ++i) {
        const sj_status status = sinks->list[i].kind->commit(sinks->list[i].sink, error);
        if (status != SJ_OK) {
            roll_back(sinks, i + 1, sinks->count);
            return sj_sink_ends_batch(status) ? status : SJ_EIO;
        }
    }
    return SJ_OK;
}

void sj_sinks_rollback(const sj_sinks *sinks)
{
    roll_back(sinks, 0, sinks->count);
}

sj_status sj_sinks_check(const sj_sinks *sinks, sj_error *error)
{
    for (size_t i = 0; i < sinks->count; ++i) {
        SJ_TRY(sinks->list[i].kind->check(sinks->list[i].sink, error));
    }
    return SJ_OK;
}

bool sj_sinks_maintain(const sj_sinks *sinks)
{
    bool has_more = false;
    for (size_t i = 0; i < sinks->count; ++i) {
        has_more |= sinks->list[i].kind->maintain(sinks->list[i].sink);
    }
    return has_more;
}

void sj_sinks_recover(const sj_sinks *sinks)
{
    for (size_t i = 0; i < sinks->count; ++i) {
        sinks->list[i].kind->recover(sinks->list[i].sink);
    }
}
