#include "agent/daemon/command_kinds.h"
#include "agent/daemon/session_list.h"
#include "agent/link/link_requests.h"

#include <string.h>

/* A request to all recordings of a session prefix. */
typedef struct live_request {
    const char *session; /* Beginning of the session's id. "": all sessions. */
    sj_link_type type;
    bool is_end;
    const char *name;
    json_t *reached;
    bool is_incomplete; /* `reached` lacks a session. */
    sj_error refusal;   /* The latest refusal. */
} live_request;

static bool ask_session(void *context, const sj_listed_session *session)
{
    live_request *all = context;
    const sj_link_mark mark = {.end = all->is_end, .name_bytes = (uint32_t)strlen(all->name)};
    if (session->is_recording &&
        strncmp(session->session, all->session, strlen(all->session)) == 0 &&
        sj_link_request(session->session, all->type, &mark, sizeof(mark), all->name, NULL, 0,
                        &all->refusal) == SJ_OK) {
        all->is_incomplete |=
            json_array_append_new(all->reached, json_string(session->session)) != 0;
    }
    return true;
}

/* Sends the request. Fails if no recording accepts it. */
static sj_status send_to_all(const sj_device_command *command, live_request *all, json_t **result,
                             sj_error *error)
{
    const char *session = json_string_value(json_object_get(command->arguments, "session"));
    all->session = session != NULL ? session : "";
    if (all->name == NULL || all->name[0] == '\0' || strlen(all->name) > SJ_LINK_MARK_NAME_BYTES) {
        return sj_fail(error, SJ_EINVAL, "a name has 1 to %d bytes", SJ_LINK_MARK_NAME_BYTES);
    }
    all->reached = json_array();
    sj_status status = sj_session_list(command->context->spool_root, ask_session, all, error);
    if (status == SJ_OK && !all->is_incomplete && json_array_size(all->reached) == 0) {
        status = all->refusal.text[0] != '\0'
                     ? sj_fail(error, SJ_EPERM, "%s", all->refusal.text)
                     : sj_fail(error, SJ_ENOTFOUND, "nothing is being recorded%s%.40s",
                               all->session[0] != '\0' ? " as session " : "", all->session);
    }
    if (status != SJ_OK || all->is_incomplete) {
        json_decref(all->reached);
        return status;
    }
    *result = json_pack("{so}", "sessions", all->reached);
    return SJ_OK;
}

sj_status sj_device_command_run_mark(const sj_device_command *command, json_t **result,
                                     sj_error *error)
{
    live_request all = {.type = SJ_LINK_MARK,
                        .is_end = json_is_true(json_object_get(command->arguments, "end")),
                        .name = json_string_value(json_object_get(command->arguments, "mark"))};
    return send_to_all(command, &all, result, error);
}

sj_status sj_device_command_run_dump(const sj_device_command *command, json_t **result,
                                     sj_error *error)
{
    const char *trigger = json_string_value(json_object_get(command->arguments, "trigger"));
    live_request all = {.type = SJ_LINK_TRIGGER, .name = trigger != NULL ? trigger : "dump"};
    return send_to_all(command, &all, result, error);
}
