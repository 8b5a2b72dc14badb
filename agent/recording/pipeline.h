/* What a recording of any kind is made of: spool -> uplink -> frame writer -> registry -> drain ->
 * link, started in this order and stopped in the reverse order. Which processes are recorded, and
 * when it ends, is decided by its owner: recording.c or, inside the recorded process, agent/direct.
 *
 * One thread, but for what says otherwise. */
#ifndef SJ_AGENT_RECORDING_PIPELINE_H
#define SJ_AGENT_RECORDING_PIPELINE_H

#include "agent/link/link_server.h"
#include "agent/recording/recording.h"

/* What differs between recordings. */
typedef struct sj_pipeline_options {
    const sj_channel_kind *channel;
    const sj_recording_link *link; /* borrowed for the call */
    uint32_t resend_ms;            /* 0: the uplink's default */
    bool threadless; /* uplink, drain and link are given their steps by the caller's thread */
    /* see link_server.h; the context is the recording */
    sj_status (*joined)(void *context, const sj_link_process *process);
    sj_status (*policy)(void *context, sj_slice document, int fd);
} sj_pipeline_options;

/* How often a recording sends a pair of clock and time of day. */
#define SJ_CLOCK_PAIR_NS UINT64_C(1000000000)

/* sj_pipeline_new allocates a recording that has nothing yet, and notes the time as its start.
 * sj_pipeline_free stops what runs and removes its files, except for a spool that was closed with
 * sj_pipeline_close_spool. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_pipeline_new(const sj_recording_options *options,
                                        sj_recording **recording, sj_error *error);
void sj_pipeline_free(sj_recording *recording);

/* sj_pipeline_place gives the recording a session id, a device and directories; sj_pipeline_keep
 * makes the files that let others finish the session if this process is killed; sj_pipeline_start
 * starts everything and sends the start of the session, which reaches the collector once the uplink
 * is released. */
SJ_MUST_CHECK sj_status sj_pipeline_place(sj_recording *recording, sj_error *error);
SJ_MUST_CHECK sj_status sj_pipeline_keep(sj_recording *recording, sj_error *error);
SJ_MUST_CHECK sj_status sj_pipeline_start(sj_recording *recording, const sj_pipeline_options *means,
                                          sj_error *error);

/* sj_pipeline_send_clock sends a pair of clock and time of day. */
void sj_pipeline_send_clock(sj_recording *recording);

/* sj_pipeline_summarize fills the summary after the drain has finished; `how` it ended, a static
 * text. sj_pipeline_end_session sends the end of the session. sj_pipeline_close_spool stops the
 * uplink and removes the spool when everything was delivered. */
void sj_pipeline_summarize(sj_recording *recording, const char *how);
SJ_MUST_CHECK sj_status sj_pipeline_end_session(sj_recording *recording);
void sj_pipeline_close_spool(sj_recording *recording);

/* The parts of a recording that was started; borrowed, valid until sj_pipeline_free. */
sj_drain *sj_pipeline_drain(const sj_recording *recording);
sj_link_server *sj_pipeline_link(const sj_recording *recording);
sj_uplink *sj_pipeline_uplink(const sj_recording *recording);
sj_frame_writer *sj_pipeline_frame_writer(const sj_recording *recording);

const char *sj_pipeline_runtime_directory(const sj_recording *recording);
const char *sj_pipeline_spool_directory(const sj_recording *recording);

/* sj_pipeline_set_main_process names the process whose end is the recording's. Any thread. */
void sj_pipeline_set_main_process(sj_recording *recording, uint64_t process);

/* sj_pipeline_stop_collecting finishes the drain, then stops the link; `*link` is what it counted
 * until then. Blocking. */
void sj_pipeline_stop_collecting(sj_recording *recording, sj_link_server_counters *link);

/* sj_pipeline_end_main_process reports the end of the main process, if it ever joined. */
void sj_pipeline_end_main_process(sj_recording *recording, const sj_process_end *end);

/* sj_pipeline_set_traced_cpu and sj_pipeline_set_delivered fill in the summary: the CPU time of
 * what was recorded, and whether the collector has `answered` for every frame. Delivered is what
 * has no frames put aside either; the second returns the sentence about them, "": none. Borrowed
 * from the recording. */
void sj_pipeline_set_traced_cpu(sj_recording *recording, uint64_t cpu_ns);
const char *sj_pipeline_set_delivered(sj_recording *recording, bool answered);

#endif
