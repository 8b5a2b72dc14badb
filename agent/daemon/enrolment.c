#include "agent/daemon/enrolment.h"

#include "agent/daemon/collector_client.h"
#include "agent/daemon/state_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MS = 15000, TOKEN_DIGITS = 64 };

static const char file_name[] = "collector.json";

/* Returns a member that is a text and not empty, or NULL. Borrowed from the object. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Appends one collector, which borrows the texts of `object`. Returns false if it is incomplete or
 * if there are too many. */
static bool read_collector(const json_t *object, sj_enrolment *enrolment)
{
    if (enrolment->count == SJ_COLLECTORS_MAX) {
        return false;
    }
    sj_session_collector *collector = &enrolment->collectors[enrolment->count++];
    *collector = (sj_session_collector){.url = text_of(object, "collector"),
                                        .token = text_of(object, "token"),
                                        .certificate = text_of(object, "certificate")};
    return collector->url != NULL && collector->token != NULL;
}

sj_status sj_enrolment_load(sj_enrolment *enrolment, sj_error *error)
{
    json_t *object = NULL;
    *enrolment = (sj_enrolment){0};
    const sj_status status = sj_state_file_load(file_name, &object, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "this device is not enrolled; run \"sojourn-device enroll --token-file "
                       "FILE\" with a file made by \"sojourn device invite\" on the collector");
    }
    SJ_TRY(status);
    enrolment->document = object;
    bool is_sound = read_collector(object, enrolment);
    size_t index;
    json_t *further;
    json_array_foreach(json_object_get(object, "more"), index, further)
    {
        is_sound = is_sound && read_collector(further, enrolment);
    }
    if (!is_sound) {
        sj_enrolment_deinit(enrolment);
        return sj_fail(error, SJ_ECORRUPT,
                       "%s has a collector without address or token, or more than %d collectors; "
                       "enrol again",
                       file_name, SJ_COLLECTORS_MAX);
    }
    return SJ_OK;
}

void sj_enrolment_deinit(sj_enrolment *enrolment)
{
    json_decref(enrolment->document);
    *enrolment = (sj_enrolment){0};
}

/* Copies the name and the tags of the enrolment to `*device`. */
static void copy_names(const json_t *object, sj_device *device)
{
    const char *key;
    json_t *value;
    const char *name = json_string_value(json_object_get(object, "name"));
    if (name != NULL && name[0] != '\0') {
        snprintf(device->name, sizeof(device->name), "%s", name);
    }
    json_object_foreach(json_object_get(object, "tags"), key, value)
    {
        if (json_is_string(value) && device->tag_count < SJ_DEVICE_TAGS) {
            snprintf(device->tags[device->tag_count++], SJ_DEVICE_TAG_BYTES, "%s=%s", key,
                     json_string_value(value));
        }
    }
}

sj_status sj_enrolment_device(sj_device *device, sj_error *error)
{
    json_t *object = NULL;
    SJ_TRY(sj_device_read(device, error));
    const sj_status status = sj_state_file_load(file_name, &object, error);
    copy_names(object, device);
    json_decref(object);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

static bool is_tag_key(const char *key, size_t size)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";
    return size != 0 && size <= 64 && strspn(key, letters) >= size;
}

/* Sets or removes one tag of the object "tags". */
static sj_status set_tag(json_t *tags, const char *text, sj_error *error)
{
    char key[65];
    const char *equals = strchr(text, '=');
    if (equals == NULL || !is_tag_key(text, (size_t)(equals - text)) ||
        strlen(text) >= SJ_DEVICE_TAG_BYTES) {
        return sj_fail(
            error, SJ_EINVAL,
            "the tag \"%.100s\" has to be KEY=VALUE of at most %d bytes; a key is made of "
            "letters, digits, . _ -",
            text, SJ_DEVICE_TAG_BYTES - 1);
    }
    snprintf(key, sizeof(key), "%.*s", (int)(equals - text), text);
    if (equals[1] == '\0') {
        json_object_del(tags, key);
        return SJ_OK;
    }
    json_t *value = json_string(equals + 1);
    if (value == NULL || json_object_set_new(tags, key, value) != 0) {
        return sj_fail(error, SJ_EINVAL, "the tag \"%.64s\" is not UTF-8", key);
    }
    return json_object_size(tags) <= SJ_DEVICE_TAGS
               ? SJ_OK
               : sj_fail(error, SJ_ELIMIT, "a device has at most %d tags", SJ_DEVICE_TAGS);
}

/* Writes name and tags to the stored object. */
static sj_status set_names(json_t *object, const sj_enrolment_names *names, sj_error *error)
{
    if (names->name != NULL) {
        json_t *name = json_string(names->name);
        const size_t size = strlen(names->name);
        if (name == NULL || size == 0 || size >= sizeof(((sj_device *)NULL)->name)) {
            json_decref(name);
            return sj_fail(error, SJ_EINVAL, "a device's name has 1 to 127 bytes of UTF-8");
        }
        SJ_TRY(sj_state_set(object, "name", name, error));
    }
    if (!json_is_object(json_object_get(object, "tags"))) {
        SJ_TRY(sj_state_set(object, "tags", json_object(), error));
    }
    for (size_t i = 0; i < names->tag_count; i++) {
        SJ_TRY(set_tag(json_object_get(object, "tags"), names->tags[i], error));
    }
    return SJ_OK;
}

sj_status sj_enrolment_rename(const sj_enrolment_names *names, sj_error *error)
{
    json_t *object = NULL;
    sj_status status = sj_state_file_load(file_name, &object, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, status, "this device is not enrolled");
    }
    if (status == SJ_OK) {
        status = set_names(object, names, error);
    }
    if (status == SJ_OK) {
        status = sj_state_file_keep(file_name, object, error);
    }
    json_decref(object);
    return status;
}

sj_status sj_invitation_check(const json_t *invitation, sj_error *error)
{
    const char *collector = json_string_value(json_object_get(invitation, "collector"));
    const char *token = json_string_value(json_object_get(invitation, "token"));
    const char *certificate = json_string_value(json_object_get(invitation, "certificate"));
    if (collector == NULL || strstr(collector, "://") == NULL) {
        return sj_fail(error, SJ_EINVAL,
                       "the invitation's \"collector\" is not an address such as "
                       "tls+tcp://collector:7655");
    }
    if (token == NULL || strlen(token) != TOKEN_DIGITS ||
        strspn(token, "0123456789abcdef") != TOKEN_DIGITS) {
        return sj_fail(error, SJ_EINVAL, "the invitation's \"token\" is not a token of %d digits",
                       TOKEN_DIGITS);
    }
    if (strncmp(collector, "tls+", 4) == 0 &&
        (certificate == NULL || strstr(certificate, "-----BEGIN CERTIFICATE-----") == NULL)) {
        return sj_fail(error, SJ_EINVAL,
                       "the invitation has no \"certificate\", which %.100s needs", collector);
    }
    return SJ_OK;
}

/* Sends the invitation's token, and writes the device's own token to `object`. */
static sj_status ask_collector(json_t *object, const sj_device *device, const char *token,
                               char *hint, sj_error *error)
{
    const char *collector = json_string_value(json_object_get(object, "collector"));
    sj_server_client *client = NULL;
    sj_server_reply reply = {0};
    uint8_t *frame = NULL;
    size_t size = 0;
    SJ_TRY(sj_server_client_open(
        collector, json_string_value(json_object_get(object, "certificate")), &client, error));
    sj_status status = sj_device_hello(device, token, (sj_slice){0}, &frame, &size);
    if (status == SJ_OK) {
        status = sj_server_client_retype(frame, size, SJ_FRAME_ENROL);
    }
    if (status != SJ_OK) {
        sj_fail(error, status, "cannot ask the collector: %s", sj_status_text(status));
    } else {
        status = sj_server_client_ask(client, (sj_slice){.data = frame, .size = size}, REPLY_MS,
                                      &reply, error);
    }
    if (status == SJ_OK && reply.enrolled == NULL) {
        status = sj_fail(error, SJ_EUNSUPPORTED, "%s is not a Sojourn collector with a fleet",
                         collector);
    } else if (status == SJ_OK && reply.enrolled->status != SJ_OK) {
        status = sj_fail(error, SJ_EPERM, "the collector refuses: %s", reply.enrolled->message);
    } else if (status == SJ_OK) {
        status = sj_state_set(object, "token", json_string(reply.enrolled->token), error);
        snprintf(hint, SJ_ERROR_TEXT_BYTES, "%s", reply.enrolled->message);
    }
    sj_server_reply_deinit(&reply);
    sj_server_client_close(client);
    free(frame);
    return status;
}

/* Returns the object in the enrolment that has the address, or NULL. Borrowed. `*index` is its
 * place in "more", or SIZE_MAX for the first collector. */
static json_t *find_collector(json_t *enrolment, const char *url, size_t *index)
{
    json_t *further;
    size_t at;
    const char *first = text_of(enrolment, "collector");
    *index = SIZE_MAX;
    if (first != NULL && strcmp(first, url) == 0) {
        return enrolment;
    }
    json_array_foreach(json_object_get(enrolment, "more"), at, further)
    {
        const char *there = text_of(further, "collector");
        if (there != NULL && strcmp(there, url) == 0) {
            *index = at;
            return further;
        }
    }
    return NULL;
}

static sj_status copy_collector(json_t *to, const json_t *from, sj_error *error)
{
    static const char *const keys[] = {"collector", "token", "certificate"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); ++i) {
        json_t *value = json_object_get(from, keys[i]);
        if (value != NULL) {
            SJ_TRY(sj_state_set(to, keys[i], json_incref(value), error));
        } else {
            json_object_del(to, keys[i]);
        }
    }
    return SJ_OK;
}

/* Reads the enrolment into `*object`, which the caller releases. Fails if the device cannot have
 * another collector at `url`. */
static sj_status begin_further(const char *url, json_t **object, sj_error *error)
{
    size_t index;
    sj_enrolment enrolment;
    SJ_TRY(sj_enrolment_load(&enrolment, error));
    *object = json_incref(enrolment.document);
    const bool is_known = url != NULL && find_collector(*object, url, &index) != NULL;
    const bool is_full = enrolment.count == SJ_COLLECTORS_MAX && !is_known;
    sj_enrolment_deinit(&enrolment);
    return is_full
               ? sj_fail(error, SJ_ELIMIT, "a device has at most %d collectors", SJ_COLLECTORS_MAX)
               : SJ_OK;
}

/* Adds the collector of an accepted invitation, or replaces the collector with the same address. */
static sj_status add_collector(json_t *object, const json_t *accepted, sj_error *error)
{
    size_t index;
    json_t *there = find_collector(object, text_of(accepted, "collector"), &index);
    if (there != NULL) {
        return copy_collector(there, accepted, error);
    }
    if (!json_is_array(json_object_get(object, "more"))) {
        SJ_TRY(sj_state_set(object, "more", json_array(), error));
    }
    json_t *added = json_object();
    if (added == NULL || json_array_append_new(json_object_get(object, "more"), added) != 0) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    return copy_collector(added, accepted, error);
}

/* Sends an invitation, with the names in `object`. If it is accepted, adds its collector to
 * `object`. */
static sj_status accept_invitation(json_t *invitation, json_t *object, sj_device *device,
                                   char *hint, sj_error *error)
{
    char token[TOKEN_DIGITS + 1];
    SJ_TRY(sj_invitation_check(invitation, error));
    snprintf(token, sizeof(token), "%s", text_of(invitation, "token"));
    copy_names(object, device);
    SJ_TRY(ask_collector(invitation, device, token, hint, error));
    if (text_of(object, "collector") != NULL) {
        return add_collector(object, invitation, error);
    }
    return copy_collector(object, invitation, error);
}

sj_status sj_enrolment_make(const char *invitation_path, const char *collector, bool is_further,
                            const sj_enrolment_names *names, char *hint, sj_error *error)
{
    json_t *invitation = NULL;
    json_t *object = NULL;
    sj_device device;
    hint[0] = '\0';
    SJ_TRY(sj_device_read(&device, error));
    SJ_TRY(sj_state_file_read(invitation_path, &invitation, error));
    sj_status status = SJ_OK;
    if (collector != NULL) {
        status = sj_state_set(invitation, "collector", json_string(collector), error);
    }
    if (status == SJ_OK && is_further) {
        status = begin_further(text_of(invitation, "collector"), &object, error);
    } else if (status == SJ_OK) {
        object = json_object();
        status = sj_state_set(object, "name", json_string(device.name), error);
    }
    if (status == SJ_OK) {
        status = set_names(object, names, error);
    }
    if (status == SJ_OK) {
        status = accept_invitation(invitation, object, &device, hint, error);
    }
    if (status == SJ_OK) {
        status = sj_state_file_keep(file_name, object, error);
    }
    json_decref(invitation);
    json_decref(object);
    return status;
}

/* Removes a collector from the document. The next one takes the place of the first. */
static sj_status remove_collector(json_t *object, const char *url, sj_error *error)
{
    size_t index;
    json_t *more = json_object_get(object, "more");
    if (find_collector(object, url, &index) == NULL) {
        return sj_fail(error, SJ_ENOTFOUND, "this device is not enrolled at %s", url);
    }
    if (index == SIZE_MAX && json_array_size(more) == 0) {
        return sj_fail(error, SJ_EINVAL, "%s is the device's only collector", url);
    }
    if (index == SIZE_MAX) {
        SJ_TRY(copy_collector(object, json_array_get(more, 0), error));
        index = 0;
    }
    json_array_remove(more, index);
    return SJ_OK;
}

sj_status sj_enrolment_forget(const char *url, sj_error *error)
{
    sj_enrolment enrolment;
    SJ_TRY(sj_enrolment_load(&enrolment, error));
    sj_status status = remove_collector(enrolment.document, url, error);
    if (status == SJ_OK) {
        status = sj_state_file_keep(file_name, enrolment.document, error);
    }
    sj_enrolment_deinit(&enrolment);
    return status;
}
