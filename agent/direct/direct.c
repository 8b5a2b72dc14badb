/* Design notes
 *
 * One round serves the agents' requests, reads the arenas and sends what can be sent. The thread
 * then sleeps until an agent sends a request, at most one or two milliseconds. Only this sleep and
 * the disk block.
 *
 * If nothing was recorded for a while, it sleeps longer, so that an idle program stays idle. A
 * program that then starts at full speed fills its ring before the thread wakes. The program then
 * waits some milliseconds, once. If the policy does not let the program wait, the sleep stays
 * short.
 *
 * If all other threads ended by pthread_exit, the process must end, too. So this thread checks four
 * times a second whether it is alone. */
#include "agent/direct/direct.h"

#include "agent/direct/no_channel.h"
#include "agent/direct/options.h"
#include "agent/direct/own_descriptors.h"
#include "agent/host/clock.h"
#include "agent/host/directories.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/ptrace/proc_status.h"
#include "agent/recording/pipeline.h"
#include "agent/uplink/sp_channel.h"
#include "proto/base/log.h"
#include "proto/base/units.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_WAIT_MS = 2000,
    MAX_WAIT_MS = 3600 * 1000,
    RESEND_MS = 60000,
    SLEEP_MS = 2,
    RESTING_SLEEP_MS = 8,
    RESTING_ROUNDS = 100,
    WAITING_MAX = 1000 /* metadata frames in memory */
};

#define LONELY_NS UINT64_C(250000000)

typedef struct direct {
    const sj_direct_settings *settings;
    sj_policy policy;
    sj_pipeline *pipeline;
    bool is_released;
    uint64_t next_pair_ns;
    uint64_t next_lonely_ns;
} direct;

uint64_t sj_direct_wait_ms(const sj_direct_settings *settings)
{
    uint64_t ns = 0;
    const bool is_time = sj_duration_parse(settings->wait, &ns) && ns / 1000000 <= MAX_WAIT_MS;
    return is_time ? ns / 1000000 : DEFAULT_WAIT_MS;
}

static sj_status process_joined(void *context, const sj_link_process *process)
{
    sj_pipeline *pipeline = context;
    if (process->pid == getpid()) {
        sj_pipeline_set_main_process(pipeline, process->number);
    }
    return sj_drain_add(sj_pipeline_drain(pipeline), process->number, process->pid,
                        process->arena_name);
}

static sj_status choose_log(const sj_direct_settings *settings, char *path, size_t capacity,
                            sj_error *error)
{
    char directory[PATH_MAX];
    if (settings->log[0] == '/') {
        snprintf(path, capacity, "%s", settings->log);
        return SJ_OK;
    }
    if (settings->log[0] != '\0') {
        return sj_fail(error, SJ_EINVAL, "SOJOURN_DIRECT_LOG needs an absolute path");
    }
    SJ_TRY(sj_state_directory("", directory, sizeof(directory), error));
    snprintf(path, capacity, "%.4000s/direct.log", directory);
    return SJ_OK;
}

static sj_status begin(direct *self, char **arguments, sj_error *error)
{
    sj_recording_options options;
    const sj_direct_settings *settings = self->settings;
    SJ_TRY(sj_direct_options(settings, arguments, &self->policy, &options, error));
    SJ_TRY(sj_pipeline_new(&options, &self->pipeline, error));
    SJ_TRY(sj_pipeline_place(self->pipeline, error));
    SJ_TRY(sj_pipeline_keep(self->pipeline, error));
    const sj_session_collector collector = {
        .url = settings->url, .token = settings->token[0] != '\0' ? settings->token : NULL};
    const sj_recording_link link = {.collectors = &collector, .collector_count = 1};
    const bool is_sent = sj_direct_folder(settings) == NULL;
    const sj_pipeline_options means = {.channel = is_sent ? &sj_channel_sp : &sj_channel_none,
                                       .link = &link,
                                       .resend_ms = RESEND_MS,
                                       .threadless = true,
                                       .context = self->pipeline,
                                       .joined = process_joined};
    return sj_pipeline_start(self->pipeline, &means, error);
}

/* Releases the uplink once the agent has completed its start. The collector then gets the
 * session. */
static void release(direct *self)
{
    sj_link_server_counters link;
    sj_link_server_get_counters(sj_pipeline_link(self->pipeline), &link);
    if (!self->is_released && link.ready != 0) {
        self->is_released = true;
        sj_uplink_release(sj_pipeline_uplink(self->pipeline));
    }
}

/* True if all other threads have ended. The first thread of a process stays as a zombie. */
static bool is_alone(void)
{
    sj_proc_thread first;
    return sj_proc_thread_read(getpid(), getpid(), &first) == SJ_OK && first.state == 'Z' &&
           first.threads == 2;
}

/* Sends a clock pair when one is due. Returns false if this thread is the last one of the
 * process. */
static bool keep_time(direct *self)
{
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (now_ns >= self->next_pair_ns) {
        sj_frame_writer_counters counters;
        self->next_pair_ns = now_ns + SJ_CLOCK_PAIR_NS;
        sj_frame_writer_get_counters(sj_pipeline_frame_writer(self->pipeline), &counters);
        if (counters.waiting_frames < WAITING_MAX) { /* a full disk must not fill the memory */
            sj_pipeline_send_clock(self->pipeline);
        }
    }
    if (now_ns < self->next_lonely_ns) {
        return true;
    }
    self->next_lonely_ns = now_ns + LONELY_NS;
    return !is_alone();
}

static void serve(direct *self, const atomic_bool *is_over)
{
    sj_pipeline *pipeline = self->pipeline;
    const int resting_ms = self->policy.drop_when_full ? SLEEP_MS : RESTING_SLEEP_MS;
    int idle_rounds = 0;
    int sleep_ms = 0;
    while (!atomic_load(is_over) && keep_time(self)) {
        bool busy = false;
        sj_link_server_step(sj_pipeline_link(pipeline), sleep_ms);
        release(self);
        if (sj_drain_step(sj_pipeline_drain(pipeline), &busy) != SJ_OK) {
            sj_log(SJ_LOG_ERROR, "drain", "out of memory: the recording ends here");
            return;
        }
        sj_uplink_step(sj_pipeline_uplink(pipeline));
        idle_rounds = busy ? 0 : idle_rounds + (idle_rounds < RESTING_ROUNDS);
        sleep_ms = idle_rounds == RESTING_ROUNDS ? resting_ms
                   : idle_rounds < SLEEP_MS      ? idle_rounds
                                                 : SLEEP_MS;
    }
}

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec used;
    clock_gettime(clock, &used);
    return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}

/* Writes the waiting frames to the recording's files. Logs how many could not be written. */
static void keep(direct *self)
{
    sj_pipeline *pipeline = self->pipeline;
    const size_t waiting = sj_frame_writer_retry(sj_pipeline_frame_writer(pipeline));
    (void)sj_pipeline_set_delivered(pipeline, false);
    if (waiting != 0) {
        sj_log(SJ_LOG_WARN, "unwritten", "%s could not be written to %s",
               SJ_COUNTED(waiting, "frame"), sj_pipeline_spool_directory(pipeline));
    }
}

/* Waits until the collector has acknowledged everything, at most sj_direct_wait_ms. The end of the
 * program is delayed until then. */
static void deliver(direct *self)
{
    sj_pipeline *pipeline = self->pipeline;
    sj_uplink_status uplink;
    const uint64_t end_ns =
        sj_clock_ns(CLOCK_MONOTONIC) + sj_direct_wait_ms(self->settings) * UINT64_C(1000000);
    sj_status status = SJ_ETIMEDOUT;
    size_t waiting = 1;
    for (uint64_t now_ns = 0; (status == SJ_ETIMEDOUT || waiting != 0) && now_ns < end_ns;
         now_ns = sj_clock_ns(CLOCK_MONOTONIC)) {
        waiting = sj_frame_writer_retry(sj_pipeline_frame_writer(pipeline));
        status = sj_uplink_drain(sj_pipeline_uplink(pipeline), 100);
    }
    sj_uplink_get_status(sj_pipeline_uplink(pipeline), &uplink);
    const bool is_answered = status == SJ_OK && waiting == 0;
    const char *set_aside = sj_pipeline_set_delivered(pipeline, is_answered);
    if (set_aside[0] != '\0') {
        sj_log(SJ_LOG_WARN, "refused", "%s does not have %s", self->settings->url, set_aside);
    }
    if (!is_answered) {
        sj_log(SJ_LOG_WARN, "undelivered",
               "%s has not taken everything%s%s: the rest is in %s; `sojourn flush` delivers it",
               self->settings->url, uplink.message[0] != '\0' ? ": " : "", uplink.message,
               sj_pipeline_spool_directory(pipeline));
    }
}

static void finish(direct *self)
{
    sj_pipeline *pipeline = self->pipeline;
    const sj_process_end end = {.ended_ticks = sj_clock_ticks()};
    sj_link_server_counters link;
    sj_pipeline_stop_collecting(pipeline, &link);
    if (!self->is_released) {
        return; /* the agent never connected, so the session stays unannounced */
    }
    sj_pipeline_end_main_process(pipeline, &end);
    sj_pipeline_set_traced_cpu(pipeline,
                               cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns(CLOCK_THREAD_CPUTIME_ID));
    sj_pipeline_summarize(pipeline, "completed");
    (void)!sj_pipeline_end_session(pipeline);
    if (sj_direct_folder(self->settings) != NULL) {
        keep(self);
    } else {
        deliver(self);
    }
    sj_pipeline_close_spool(pipeline);
}

/* Writes to the log with a descriptor of the program's table, which it closes at once. */
static void complain_outside(const char *log, const sj_error *error)
{
    const int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
        dprintf(file, "program=sojourn-direct event=start message=\"%s\"\n", error->text);
        close(file);
    }
}

void sj_direct_record(const sj_direct_settings *settings, char **arguments,
                      void (*announce)(const char *runtime), const atomic_bool *is_over)
{
    direct self = {.settings = settings};
    char log[PATH_MAX] = "/dev/null";
    sj_error error = {0};
    sj_recorder_exempt();
    (void)prctl(PR_SET_NAME, "sojourn");
    sj_log_open("sojourn-direct");
    sj_status status = choose_log(settings, log, sizeof(log), &error);
    if (status == SJ_OK) {
        status = sj_own_descriptors(log, &error);
    }
    if (status != SJ_OK) {
        complain_outside(log, &error);
        return;
    }
    status = begin(&self, arguments, &error);
    if (status == SJ_OK) {
        announce(sj_pipeline_runtime_directory(self.pipeline));
        serve(&self, is_over);
        finish(&self);
    } else {
        sj_log(SJ_LOG_ERROR, "start", "%s (%s is not recorded)", error.text, arguments[0]);
    }
    if (self.pipeline != NULL) {
        sj_pipeline_free(self.pipeline);
    }
    sj_policy_free(&self.policy);
}
