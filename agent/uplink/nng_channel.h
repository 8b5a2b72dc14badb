/* NNG's channel (sj_channel_nng, channel.h). It supports all addresses of NNG, and TLS with the
 * collector's certificate. It starts at least 14 threads. */
#ifndef SJ_AGENT_UPLINK_NNG_CHANNEL_H
#define SJ_AGENT_UPLINK_NNG_CHANNEL_H

#include "agent/uplink/channel.h"

extern const sj_channel_kind sj_channel_nng;

#endif
