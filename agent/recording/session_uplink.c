#include "agent/recording/session_uplink.h"

#include "agent/uplink/chosen_channel.h"
#include "agent/uplink/spool_secret.h"

#include <stdlib.h>

/* Makes a HELLO frame for each collector. The caller frees `hellos`, also after an error. */
static sj_status make_places(const sj_session_uplink *session,
                             sj_collector_place places[SJ_COLLECTORS_MAX],
                             uint8_t *hellos[SJ_COLLECTORS_MAX], sj_error *error)
{
    uint8_t secret[SJ_SPOOL_SECRET_BYTES];
    SJ_TRY(sj_spool_secret_read(session->directory, secret, error));
    for (size_t i = 0; i < session->collector_count; ++i) {
        const sj_session_collector *collector = &session->collectors[i];
        size_t size = 0;
        if (sj_device_hello(session->device, collector->token,
                            (sj_slice){.data = secret, .size = sizeof(secret)}, &hellos[i],
                            &size) != SJ_OK) {
            return sj_fail(error, SJ_ENOMEM, "out of memory");
        }
        places[i] = (sj_collector_place){.url = collector->url,
                                         .certificate = collector->certificate,
                                         .hello = {.data = hellos[i], .size = size}};
    }
    return SJ_OK;
}

sj_status sj_session_uplink_start(const sj_session_uplink *session, sj_spool *spool,
                                  sj_uplink **uplink, sj_error *error)
{
    sj_collector_place places[SJ_COLLECTORS_MAX] = {0};
    uint8_t *hellos[SJ_COLLECTORS_MAX] = {0};
    if (session->collector_count == 0 || session->collector_count > SJ_COLLECTORS_MAX) {
        return sj_fail(error, SJ_EINVAL, "a session needs 1 to %d collectors", SJ_COLLECTORS_MAX);
    }
    sj_status status = make_places(session, places, hellos, error);
    if (status == SJ_OK) {
        const sj_collector_choice choice = {.kind = session->link.channel,
                                            .places = places,
                                            .count = session->collector_count,
                                            .directory = session->directory};
        sj_uplink_options link = session->link;
        link.url = places[0].url;
        link.certificate = places[0].certificate;
        link.hello = places[0].hello;
        if (session->is_chosen_once) {
            link.channel = &sj_channel_chosen;
            link.channel_context = &choice;
        }
        status = sj_uplink_start(spool, &link, uplink, error);
    }
    for (size_t i = 0; i < SJ_COLLECTORS_MAX; ++i) {
        free(hellos[i]);
    }
    return status;
}
