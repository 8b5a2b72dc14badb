/* The pipeline of every recording: spool -> uplink -> frame writer -> registry -> drain -> link.
 * Its parts start in this order and stop in the reverse order.
 *
 * The owner of a pipeline chooses the recorded processes and when the recording ends. The owner is
 * recording.c or, inside the recorded process, agent/direct. Not thread-safe, unless a function
 * says otherwise. */
#ifndef SJ_AGENT_RECORDING_PIPELINE_H
#define SJ_AGENT_RECORDING_PIPELINE_H

#include "agent/link/link_server.h"
#include "agent/recording/recording.h"

typedef struct sj_pipeline sj_pipeline;

/* Options that differ between the owners. */
typedef struct sj_pipeline_options {
    const sj_channel_kind *channel;
    const sj_recording_link *link; /* borrowed during the call */
    uint32_t resend_ms;            /* 0: the uplink's default */
    bool threadless;     /* the caller's thread runs the steps of uplink, drain and link */
    bool takes_policies; /* another process may request another policy */
    void *context;       /* passed to `joined` (link_server.h) */
    sj_status (*joined)(void *context, const sj_link_process *process);
} sj_pipeline_options;

/* Period in which a recording sends clock pairs. */
#define SJ_CLOCK_PAIR_NS UINT64_C(1000000000)

/* sj_pipeline_new allocates a pipeline without parts. Returns SJ_ENOMEM, SJ_EIO.
 *
 * sj_pipeline_free stops the parts and removes their files. It keeps a spool that
 * sj_pipeline_close_spool has closed. NULL is allowed. */
SJ_MUST_CHECK sj_status sj_pipeline_new(const sj_recording_options *options, sj_pipeline **pipeline,
                                        sj_error *error);
void sj_pipeline_free(sj_pipeline *pipeline);

/* sj_pipeline_place sets the recording's start time, session id, device and directories.
 *
 * sj_pipeline_keep creates the files that let another process finish the session if this process is
 * killed.
 *
 * sj_pipeline_start starts the parts and sends the start of the session. This frame reaches the
 * collector after sj_uplink_release.
 *
 * sj_pipeline_place returns an error of sj_device_read, sj_directory_make or sj_cache_directory.
 * sj_pipeline_keep returns SJ_EIO, or SJ_ELIMIT if a path is too long. sj_pipeline_start returns
 * SJ_EINVAL if an option is invalid, or the error of the part that did not start. */
SJ_MUST_CHECK sj_status sj_pipeline_place(sj_pipeline *pipeline, sj_error *error);
SJ_MUST_CHECK sj_status sj_pipeline_keep(sj_pipeline *pipeline, sj_error *error);
SJ_MUST_CHECK sj_status sj_pipeline_start(sj_pipeline *pipeline, const sj_pipeline_options *means,
                                          sj_error *error);

/* Sends a clock pair: the same moment on the clock of the records and as time of day. */
void sj_pipeline_send_clock(sj_pipeline *pipeline);

/* sj_pipeline_summarize fills the summary after the drain has finished. `how` says how the
 * recording ended (sj_recording_summary.how), and must be a static text.
 *
 * sj_pipeline_end_session sends the end of the session.
 *
 * sj_pipeline_close_spool stops the uplink, and removes the spool if everything was delivered.
 *
 * sj_pipeline_end_session returns an error of sj_frame_writer_send. */
void sj_pipeline_summarize(sj_pipeline *pipeline, const char *how);
SJ_MUST_CHECK sj_status sj_pipeline_end_session(sj_pipeline *pipeline);
void sj_pipeline_close_spool(sj_pipeline *pipeline);

/* Return the parts of a recording that was started. Borrowed, valid until sj_pipeline_free. */
sj_drain *sj_pipeline_drain(const sj_pipeline *pipeline);
sj_link_server *sj_pipeline_link(const sj_pipeline *pipeline);
sj_uplink *sj_pipeline_uplink(const sj_pipeline *pipeline);
sj_frame_writer *sj_pipeline_frame_writer(const sj_pipeline *pipeline);

const char *sj_pipeline_runtime_directory(const sj_pipeline *pipeline);
const char *sj_pipeline_spool_directory(const sj_pipeline *pipeline);

/* Sets the main process, by its number in the session. Any thread may call this. */
void sj_pipeline_set_main_process(sj_pipeline *pipeline, uint64_t process);

/* Finishes the drain, then stops the link. Writes the link's counters to `*link`. Blocks. */
void sj_pipeline_stop_collecting(sj_pipeline *pipeline, sj_link_server_counters *link);

/* Reports the end of the main process, if it ever joined. */
void sj_pipeline_end_main_process(sj_pipeline *pipeline, const sj_process_end *end);

/* sj_pipeline_set_traced_cpu stores the CPU time of the recorded program in the summary.
 *
 * sj_pipeline_set_delivered sets `answered` and `delivered` of the summary. `answered` is true if
 * the collector has replied to every frame. The recording is delivered if, in addition, no frame
 * was set aside (spool_aside.h). The function returns the sentence about frames set aside, or "" if
 * there are none. The text is borrowed from the pipeline. */
void sj_pipeline_set_traced_cpu(sj_pipeline *pipeline, uint64_t cpu_ns);
const char *sj_pipeline_set_delivered(sj_pipeline *pipeline, bool answered);

#endif
