/* Frames of a session whose policy leaves out paths or command lines (agent/policy/redaction.h). */
#ifndef SJ_AGENT_SESSION_REDACTED_FRAMES_H
#define SJ_AGENT_SESSION_REDACTED_FRAMES_H

#include "proto/base/status.h"
#include "proto/wire/frame.h"
#include "proto/wire/sojourn.pb-c.h"

/* Frames have this text instead of a command line. */
#define SJ_REDACTED_TEXT "(redacted)"

/* Returns the file name in a path; borrowed from `path`. */
const char *sj_redacted_path(const char *path);

/* Copies a text without the directories in it: leaves out everything from the beginning of the
 * first path to the last slash. `copy` must have strlen(text) + 1 bytes. */
void sj_redacted_text(const char *text, char *copy);

/* Copies a JSON text and leaves directories out of all its strings. `*copy` is from malloc. Returns
 * SJ_EINVAL if it is not JSON, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_redacted_json(const char *json, size_t bytes, char **copy);

/* A copy of a message. Texts that are not redacted are borrowed from the original. */
typedef struct sj_redacted_message {
    union {
        Sojourn__Session session;
        Sojourn__Process process;
        Sojourn__Module module;
        Sojourn__Stack stack;
        Sojourn__Policy policy;
    } as;
    char **paths; /* owned; NULL: none */
    char *text;   /* owned; NULL: none */
} sj_redacted_message;

/* Makes the message to send instead of `message`. `*sent` is `message` itself if `bits`
 * (SJ_REDACT_...) leave nothing out. Returns SJ_ENOMEM, or SJ_EINVAL for a list of texts that is
 * not JSON. Call sj_redacted_message_deinit even after an error. */
SJ_MUST_CHECK sj_status sj_redacted_message_make(sj_redacted_message *redacted, unsigned bits,
                                                 sj_frame_type type,
                                                 const ProtobufCMessage *message,
                                                 const ProtobufCMessage **sent);
void sj_redacted_message_deinit(sj_redacted_message *redacted);

#endif
