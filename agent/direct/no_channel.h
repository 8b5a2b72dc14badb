/* A channel without a receiver: all frames stay in the recording's files. */
#ifndef SJ_AGENT_DIRECT_NO_CHANNEL_H
#define SJ_AGENT_DIRECT_NO_CHANNEL_H

#include "agent/uplink/channel.h"

extern const sj_channel_kind sj_channel_none;

#endif
