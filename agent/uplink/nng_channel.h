/* NNG's channel (sj_channel_nng, channel.h): any address that NNG knows, TLS with the collector's
 * certificate, 14 and more threads. */
#ifndef SJ_AGENT_UPLINK_NNG_CHANNEL_H
#define SJ_AGENT_UPLINK_NNG_CHANNEL_H

#include "agent/uplink/channel.h"

extern const sj_channel_kind sj_channel_nng;

#endif
