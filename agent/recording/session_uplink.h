/* The uplink of one session. Its HELLO frame contains the identity of the device and the session's
 * secret. */
#ifndef SJ_AGENT_RECORDING_SESSION_UPLINK_H
#define SJ_AGENT_RECORDING_SESSION_UPLINK_H

#include "agent/host/device.h"
#include "agent/uplink/uplink.h"

#include <stddef.h>

/* One collector of a device. */
typedef struct sj_session_collector {
    const char *url;
    const char *token;       /* NULL: none */
    const char *certificate; /* the collector's certificate (PEM), for tls+tcp://; NULL: none */
} sj_session_collector;

typedef struct sj_session_uplink {
    const sj_device *device;
    const char *directory;                  /* directory of the spool */
    const sj_session_collector *collectors; /* in order of preference */
    size_t collector_count;
    /* True: the session belongs to one of the collectors, whose address is kept beside the spool
     * (chosen_channel.h). False: only the first collector is used. */
    bool is_chosen_once;
    /* sj_session_uplink_start sets address, certificate, hello and context */
    sj_uplink_options link;
} sj_session_uplink;

/* Starts the uplink. All options are borrowed for the call. Reads or creates the session's secret
 * in `directory`. Returns SJ_EINVAL if there is no collector or an address is invalid; SJ_EIO or
 * SJ_ENOMEM. Blocks on the disk, not on the network. */
SJ_MUST_CHECK sj_status sj_session_uplink_start(const sj_session_uplink *session, sj_spool *spool,
                                                sj_uplink **uplink, sj_error *error);

#endif
